"""What may be said of a row of scores: "improved" only where the paired test on the same items allows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from agent0.stats.paired_tests import Difference, compare, holm


@dataclass(frozen=True)
class Scored:
    """One score: ``outcomes`` has a character an item of a set in its order, 1 where it is right."""

    name: str
    outcomes: str


@dataclass(frozen=True)
class Claim:
    """A score against an earlier one. ``adjusted`` is Holm's p over all claims that were made together."""

    name: str
    against: str
    difference: Difference
    adjusted: float

    @property
    def word(self) -> str:
        """The most that may be said."""
        return self.difference.claimed(self.adjusted)


def claims(pairs: Sequence[tuple[Scored, Scored]]) -> list[Claim | None]:
    """Each (earlier, later) pair compared on its items; None where the two are not scores of one set."""
    found = [_difference(earlier, later) for earlier, later in pairs]
    adjusted = iter(holm([difference.p for difference in found if difference]))
    return [
        Claim(later.name, earlier.name, difference, next(adjusted)) if difference else None
        for (earlier, later), difference in zip(pairs, found, strict=True)
    ]


def step_by_step(scores: Sequence[Scored]) -> list[tuple[Claim | None, Claim | None]]:
    """For each score: against the one before it, and against the first. The first has neither. Each of the two columns
    is corrected for its own length."""
    before = claims(list(pairwise(scores)))
    first = claims([(scores[0], later) for later in scores[1:]]) if scores else []
    return [(None, None), *zip(before, first, strict=True)] if scores else []


def _difference(earlier: Scored, later: Scored) -> Difference | None:
    if not earlier.outcomes or len(earlier.outcomes) != len(later.outcomes):
        return None
    return compare([float(c == "1") for c in earlier.outcomes], [float(c == "1") for c in later.outcomes])
