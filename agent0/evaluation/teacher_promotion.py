"""The teacher's gate: compares what the first proposals of a new teacher came to with those of the teacher promoted
before it, in the newest iteration in which that one proposed.

Both made as many proposals, to requests of their own, so nothing can be paired: Fisher's exact test takes the place of
McNemar's at the same level. See docs/design/decisions/009-promotion-is-a-paired-test.md.
"""

from dataclasses import dataclass

from agent0.state.run_state import Proposals
from agent0.stats.independent_tests import fisher
from agent0.stats.paired_tests import LEVEL, holm


@dataclass(frozen=True)
class TeacherVerdict:
    """The gate's decision; ``readable_p`` and ``accepted_p`` are two-sided and corrected for both tests (Holm), None
    where a teacher has no screened proposals."""

    promoted: bool
    reason: str
    readable_p: float | None = None
    accepted_p: float | None = None


def judge_proposals(candidate: Proposals, before: Proposals, against: str) -> TeacherVerdict:
    """Decide whether a teacher with these proposals stays. ``before`` are those of the teacher ``against``.

    A share of readable or of accepted proposals that has fallen beyond chance refuses it. No fall is proven by too few
    proposals, which promotes as it does a student.
    """
    if not candidate.screened or not before.screened:
        return TeacherVerdict(True, f"no proposals of {against} and it to compare")
    shares = (("readable", candidate.readable, before.readable), ("accepted", candidate.accepted, before.accepted))
    adjusted = holm([fisher(later, candidate.screened, then, before.screened) for _, later, then in shares])
    findings, fallen = [], []
    for (name, later, then), p in zip(shares, adjusted, strict=True):
        findings.append(f"{name} {later} of {candidate.screened} against {then} of {before.screened}, p {p:.2g}")
        if p < LEVEL and later / candidate.screened < then / before.screened:
            fallen.append(name)
    finding = f"a proven fall of {' and '.join(fallen)} proposals" if fallen else "no fall is proven"
    return TeacherVerdict(not fallen, f"{finding} against {against}: {'; '.join(findings)}", *adjusted)
