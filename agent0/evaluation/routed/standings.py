"""A checkpoint that is evaluated through a strategy, beside itself alone and the other model alone: accuracy, cost, and
paired differences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

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
class Standing:
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


def standing(way: Way, items: Sequence[ItemScored], costs: Mapping[str, Sequence[int | None]]) -> Standing:
    """Sum up ``items`` of one way; ``costs`` has those of all calls by the token of their attempt."""
    right = sum(one.correct is True for one in items)
    spent = [cost for one in items for cost in costs.get(one.facts[ATTEMPT], ())]
    by: dict[str, int] = {}
    for one in items:
        by[one.facts[MODEL]] = by.get(one.facts[MODEL], 0) + 1
    return Standing(
        way,
        len(items),
        right,
        sum(one.correct is None for one in items),
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
    told = {one.item: float(one.correct is True) for one in routed}
    before = {one.item: float(one.correct is True) for one in other if one.item in told}
    found = compare([*before.values()], [told[item] for item in before])
    return Paired(against, found, costs[0] / costs[1] if costs[1] else None)


def as_row(one: Standing) -> dict[str, Any]:
    """A way as a row of a table; cost in nano-dollars."""
    low, high = one.accuracy95
    answered = ", ".join(f"{model} {count}" for model, count in one.by.items())
    row: dict[str, Any] = {"way": one.way, "tasks": one.tasks, "right": one.right, "undecided": one.undecided}
    return {**row, "accuracy": one.accuracy, "low": low, "high": high, "cost": one.cost, "answered": answered} | (
        {"unpriced": one.unpriced} if one.unpriced else {}
    )


def paired_row(one: Paired) -> dict[str, Any]:
    """A comparison as a row of a table."""
    found = one.difference
    verdict = found.claimed(found.p)
    row: dict[str, Any] = {"routed_less": one.against, "tasks": found.items, "gained": found.gained, "lost": found.lost}
    row |= {"difference": found.mean, "low": found.lower95, "high": found.upper95, "p": found.p, "verdict": verdict}
    return {**row, "cost_share": one.cost_share}
