"""A checkpoint that is evaluated through a strategy, beside itself alone and the other model alone: accuracy, cost, and
paired differences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agent0.events.benchmarks import ItemScored
from agent0.stats.intervals import wilson
from agent0.stats.paired_tests import Difference, compare

Way = Literal["local", "routed", "cloud", "plain", "compressed"]
WAYS: tuple[Way, ...] = ("local", "routed", "cloud")
"""The checkpoint alone, through the strategy, and the first of the models that stand in alone. Prompts are measured as
they are and compressed."""
MODEL, ATTEMPT = "model", "attempt"
"""Facts of an item: the model of its last turn, and the token that its calls are noted under."""


@dataclass(frozen=True)
class WayScore:
    """How one way did. ``by`` counts answers by the model that gave them; ``cost`` in nano-dollars, of which
    ``unpriced`` calls are left out, since what they cost is unknown."""

    way: Way
    tasks: int
    right: int
    undecided: int
    accuracy95: tuple[float, float]
    by: Mapping[str, int]
    cost: int
    unpriced: int

    @property
    def accuracy(self) -> float:
        """The share of right answers; undecided ones are not."""
        return self.right / self.tasks if self.tasks else 0.0


@dataclass(frozen=True)
class Paired:
    """``routed`` less another way on the tasks that both answered, and its share of that one's cost; None: that one
    cost nothing."""

    against: Way
    difference: Difference
    cost_share: float | None


def standing(way: Way, items: Sequence[ItemScored], costs: Mapping[str, Sequence[int | None]]) -> WayScore:
    """Sum up ``items`` of one way; ``costs`` has those of all calls by the token of their attempt."""
    right = sum(item.correct is True for item in items)
    spent = [cost for item in items for cost in costs.get(item.facts[ATTEMPT], ())]
    by: dict[str, int] = {}
    for item in items:
        by[item.facts[MODEL]] = by.get(item.facts[MODEL], 0) + 1
    return WayScore(
        way,
        len(items),
        right,
        sum(item.correct is None for item in items),
        wilson(right, len(items)),
        dict(sorted(by.items())),
        sum(cost or 0 for cost in spent),
        sum(cost is None for cost in spent),
    )


def paired(routed: Sequence[ItemScored], other: Sequence[ItemScored], costs: tuple[int, int], against: Way) -> Paired:
    """Compare one way, ``routed``, with another, task by task; ``costs``: of both.

    Raises:
        ValueError: they have no task in common.
    """
    after = {item.item: float(item.correct is True) for item in routed}
    before = {item.item: float(item.correct is True) for item in other if item.item in after}
    difference = compare([*before.values()], [after[item] for item in before])
    return Paired(against, difference, costs[0] / costs[1] if costs[1] else None)


def as_row(score: WayScore) -> dict[str, str | float]:
    """A way as a row of a table; cost in nano-dollars."""
    unpriced = {"unpriced": score.unpriced} if score.unpriced else {}
    return {
        "way": score.way,
        "tasks": score.tasks,
        "right": score.right,
        "undecided": score.undecided,
        "accuracy": score.accuracy,
        "low": score.accuracy95[0],
        "high": score.accuracy95[1],
        "cost": score.cost,
        "answered": ", ".join(f"{model} {count}" for model, count in score.by.items()),
        **unpriced,
    }


def paired_row(comparison: Paired) -> dict[str, str | float | None]:
    """A comparison as a row of a table."""
    difference = comparison.difference
    return {
        "routed_less": comparison.against,
        "tasks": difference.items,
        "gained": difference.gained,
        "lost": difference.lost,
        "difference": difference.mean,
        "low": difference.lower95,
        "high": difference.upper95,
        "p": difference.p,
        "verdict": difference.claimed(difference.p),
        "cost_share": comparison.cost_share,
    }
