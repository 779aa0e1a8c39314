"""The conclusion of a paired test, in words that a reader of statistics knows."""

from agent0.experiments.compare_runs import ClaimRow, claim_row
from agent0.projections.base import Row
from agent0.stats.claims import Claim, Scored
from agent0.stats.paired_tests import FELL, IMPROVED, UNSHOWN


class ClaimAgainst(ClaimRow):
    """A claim with the name of the score that it is made ``against``."""

    against: str


def claim_against(claim: Claim | None) -> ClaimAgainst | None:
    """Turn a claim into JSON values; None where there is none."""
    return {"against": claim.against, **claim_row(claim)} if claim else None


def scored(evaluation: Row) -> Scored:
    """The score of an evaluation as it is compared."""
    return Scored(evaluation["checkpoint"], evaluation["outcomes"] or "")


_WORDS = {IMPROVED: "improved", FELL: "decreased", UNSHOWN: "not significant"}


def conclusion(verdict: str, adjusted_p: float | None = None, detectable: float | None = None) -> str:
    """Name the conclusion of a paired test: improved, decreased or not significant.

    ``verdict`` is what ``agent0.stats.paired_tests.claimed`` returned; any other text is returned as it is. Where the
    difference is not significant, the p after Holm's correction and the smallest detectable effect (a share, shown in
    points) follow, as far as they are given.
    """
    if verdict != UNSHOWN:
        return _WORDS.get(verdict, verdict)
    numbers = [] if adjusted_p is None else [f"adjusted p {adjusted_p:.2g}"]
    if detectable is not None:
        numbers.append(f"smallest detectable effect {100 * detectable:.1f} points")
    return f"{_WORDS[verdict]} ({', '.join(numbers)})" if numbers else _WORDS[verdict]
