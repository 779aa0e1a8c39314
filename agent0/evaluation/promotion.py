"""The promotion gate: compares a candidate's validation score with the present student's and the best one's, in
accuracy and in calibration.

The best is compared beside the present student because small steps down, none of which is a proven loss, add up. By
default no step goes down at all.

A new teacher's first proposals are compared with those of the teacher promoted before it, in the newest iteration in
which that one proposed. Both made as many proposals, to requests of their own, so nothing can be paired: Fisher's exact
test takes the place of McNemar's at the same level. See docs/design/decisions/009-promotion-is-a-paired-test.md.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from agent0.events.values import PairedTest
from agent0.settings import EvaluationConfig
from agent0.state.measurements import Proposals
from agent0.state.run_state import Checkpoint, ValidationScore
from agent0.stats.intervals import fisher
from agent0.stats.paired_tests import FELL, LEVEL, Difference, agreeing, compare, holm, outcomes


@dataclass(frozen=True)
class PromotionVerdict:
    """The gate's decision. ``against`` is the accuracy of the checkpoint compared with, None for a first score.

    ``test`` is the paired test against it, None where there was nothing to pair; ``improved``: a gain over the best is
    proven.
    """

    promoted: bool
    reason: str
    against: float | None = None
    test: PairedTest | None = None
    improved: bool = False


@dataclass(frozen=True)
class _Rival:
    """Whom the candidate is compared with. ``difference`` None: their scores are not of the same items. ``sureness`` is
    that of Brier scores, less being worse; None where no item has both confidences."""

    id: str
    role: str
    accuracy: float
    difference: Difference | None
    sureness: Difference | None


def judge(candidate: ValidationScore, promoted: Sequence[Checkpoint], plan: EvaluationConfig) -> PromotionVerdict:
    """Decide whether a candidate with this score becomes the student. ``promoted`` ends with the present student.

    ``no_worse`` refuses a proven loss against the present student or the best, an accuracy more than ``margin`` below
    the best's (0: a lower one, not an equal one), and without a proven gain a Brier score that is more than
    ``calibration`` above theirs by its whole interval. ``better`` requires a proven gain over the best. ``open``
    refuses none, for students that must get worse before they get better. Undecided items count as wrong, and do not
    count for calibration.
    """
    rivals = _rivals(candidate, promoted)
    if not rivals:
        return PromotionVerdict(True, f"first score, nothing to compare with{_undecided(candidate)}")
    best = rivals[0]
    improved = best.difference is not None and best.difference.improved
    if plan.gate == "open":
        return _verdict(True, best, candidate, "the gate is open")
    if plan.gate == "better":
        return _verdict(improved, best, candidate, "a proven gain" if improved else "no gain is proven")
    if refused := _refusal(candidate, rivals, plan):
        return _verdict(False, refused[0], candidate, refused[1])
    if improved:
        return _verdict(True, best, candidate, "a proven gain")
    surer = (rival for rival in rivals if rival.sureness and rival.sureness.upper95 < -plan.calibration)
    if rival := next(surer, None):
        return _verdict(False, rival, candidate, "its confidence is proven to be worth less, and no gain is proven")
    return _verdict(True, best, candidate, "no loss is proven, nor a gain")


JUDGES = (judge,)
"""Versions of the rule ``promotion``, the first one first."""


def lost_benchmark(candidate: Checkpoint, promoted: Sequence[Checkpoint]) -> PromotionVerdict | None:
    """Refuse a candidate that is proven worse on a benchmark than the last promoted checkpoint or the base (exact
    paired test on the same items, Holm's correction over all of these comparisons); None where it is not."""
    pairs = [
        (key, rival, paired)
        for key, score in candidate.benchmarks.items()
        for rival in _scored_on(key, promoted)
        if (paired := _difference(rival.benchmarks[key], score)) is not None
    ]
    adjusted = holm([paired.p for _, _, paired in pairs])
    for (key, rival, paired), p in zip(pairs, adjusted, strict=True):
        if paired.claimed(p) == FELL:
            accuracy, against = candidate.benchmarks[key].accuracy, rival.benchmarks[key].accuracy
            about = f"{key.partition('/')[0]} {accuracy:.3f} against {against:.3f} of {rival.id}"
            return PromotionVerdict(False, f"{about}: a proven loss on a benchmark; {_evidence(paired)}", against)
    return None


def _scored_on(key: str, promoted: Sequence[Checkpoint]) -> list[Checkpoint]:
    """The last promoted checkpoint that was scored on the items ``key``, and the base where that is another."""
    scored = [checkpoint for checkpoint in promoted if key in checkpoint.benchmarks]
    return [scored[-1], *(scored[:1] if scored[0] is promoted[0] and len(scored) > 1 else [])] if scored else []


def _refusal(candidate: ValidationScore, rivals: Sequence[_Rival], plan: EvaluationConfig) -> tuple[_Rival, str] | None:
    """Whom the candidate falls behind in accuracy, the best first, and how far."""
    for rival in rivals:
        if rival.difference and rival.difference.worsened:
            return rival, "a proven loss"
    if candidate.accuracy >= rivals[0].accuracy - plan.margin:
        return None
    return rivals[
        0
    ], f"more than the margin of {plan.margin:g} below it" if plan.margin else "lower, though no loss is proven"


def _rivals(candidate: ValidationScore, promoted: Sequence[Checkpoint]) -> list[_Rival]:
    """The best so far, the latest of equals; and the present student where that is another."""
    scored = [(checkpoint.score.accuracy, n, checkpoint) for n, checkpoint in enumerate(promoted) if checkpoint.score]
    if not scored:
        return []
    best = max(scored)[-1]
    roles = {"the best so far": best} | ({} if best is promoted[-1] else {"the student": promoted[-1]})
    return [
        _Rival(checkpoint.id, role, score.accuracy, _difference(score, candidate), _sureness(score, candidate))
        for role, checkpoint in roles.items()
        if (score := checkpoint.score)
    ]


def _difference(before: ValidationScore, after: ValidationScore) -> Difference | None:
    if not before.outcomes or len(before.outcomes) != len(after.outcomes):
        return None
    difference = compare(outcomes(before.outcomes), outcomes(after.outcomes), rounds=0)
    return agreeing(difference, difference.p)


def _sureness(before: ValidationScore, after: ValidationScore) -> Difference | None:
    """Of 1 - (c - o)^2 on items whose confidence c and outcome o both scores tell."""
    if not len(before.confidences) == len(after.confidences) == 2 * len(before.outcomes) == 2 * len(after.outcomes):
        return None
    pairs = [(old, new) for old, new in zip(_worth(before), _worth(after), strict=True) if None not in (old, new)]
    return compare(*zip(*pairs, strict=True)) if pairs else None


def _worth(score: ValidationScore) -> list[float | None]:
    percents = (score.confidences[start : start + 2] for start in range(0, len(score.confidences), 2))
    return [
        None if percent == "--" or outcome == "?" else 1 - (int(percent) / 100 - float(outcome)) ** 2
        for percent, outcome in zip(percents, score.outcomes, strict=True)
    ]


def _verdict(promoted: bool, rival: _Rival, candidate: ValidationScore, finding: str) -> PromotionVerdict:
    paired = rival.difference
    about = f"validation {candidate.accuracy:.3f} against {rival.accuracy:.3f} of {rival.id}, {rival.role}: {finding}"
    reason = f"{about}; {_evidence(paired)}{_confidence(rival.sureness)}{_undecided(candidate)}"
    test = _paired_test(rival.id, paired) if paired else None
    return PromotionVerdict(promoted, reason, rival.accuracy, test, promoted and paired is not None and paired.improved)


def _paired_test(against: str, paired: Difference) -> PairedTest:
    fields = {name: value for name, value in asdict(paired).items() if name != "size"}
    return PairedTest.model_validate({"against": against, **fields})


def _evidence(paired: Difference | None) -> str:
    if paired is None:
        return "not scored on the same items, so nothing can be tested"
    return (
        f"{paired.gained} of {paired.items} items gained, {paired.lost} lost, {100 * paired.mean:+.1f} points "
        f"({100 * paired.lower95:+.1f} to {100 * paired.upper95:+.1f}), p {paired.p:.2g}; "
        f"a difference below {100 * paired.detectable:.1f} points would mostly stay unseen"
    )


def _confidence(paired: Difference | None) -> str:
    """Turned round: a Brier score is better where it is less."""
    if paired is None:
        return ""
    change = f"{-paired.mean:+.3f} ({-paired.upper95:+.3f} to {-paired.lower95:+.3f})"
    return f"; Brier score of its confidences {change} on {paired.items} item{'s' * (paired.items != 1)}"


def _undecided(candidate: ValidationScore) -> str:
    number = candidate.outcomes.count("?")
    return f"; {number} undecided {'item counts' if number == 1 else 'items count'} as wrong" if number else ""


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
