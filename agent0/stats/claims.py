"""What may be claimed of a series of scores: "improved" only where the paired test on the same items allows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from agent0.stats.paired_tests import Difference, agreeing, compare, holm


@dataclass(frozen=True)
class Scored:
    """One score to compare: ``outcomes`` has one character per item of a set, in set order, "1" where it is right."""

    name: str
    outcomes: str


@dataclass(frozen=True)
class Claim:
    """A score compared with an earlier one. ``adjusted`` is Holm's p over all claims made together."""

    name: str
    against: str
    difference: Difference
    adjusted: float

    @property
    def verdict(self) -> str:
        """The verdict on the difference: improved, fell, or no difference shown."""
        return self.difference.claimed(self.adjusted)


def claims(pairs: Sequence[tuple[Scored, Scored]]) -> list[Claim | None]:
    """Compare each (earlier, later) pair on its items, with Holm's correction; None where the items are not
    the same set. The interval is that of the test itself, corrected alike: it excludes 0 where the verdict says that
    there is a difference, and nowhere else."""
    differences = [_difference(earlier, later) for earlier, later in pairs]
    adjusted = iter(holm([difference.p for difference in differences if difference]))
    return [
        _claim(later.name, earlier.name, difference, next(adjusted)) if difference else None
        for (earlier, later), difference in zip(pairs, differences, strict=True)
    ]


def _claim(name: str, against: str, difference: Difference, adjusted: float) -> Claim:
    return Claim(name, against, agreeing(difference, adjusted), adjusted)


def step_by_step(scores: Sequence[Scored]) -> list[tuple[Claim | None, Claim | None]]:
    """For each score: against the one before it, and against the first. The first has neither. Each of the two columns
    is corrected for its own length."""
    before = claims(list(pairwise(scores)))
    first = claims([(scores[0], later) for later in scores[1:]]) if scores else []
    return [(None, None), *zip(before, first, strict=True)] if scores else []


def _difference(earlier: Scored, later: Scored) -> Difference | None:
    if not earlier.outcomes or len(earlier.outcomes) != len(later.outcomes):
        return None
    return compare([float(c == "1") for c in earlier.outcomes], [float(c == "1") for c in later.outcomes], rounds=0)
