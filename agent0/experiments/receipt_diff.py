"""Compares the receipts of an experiment with those of its run: the same trajectories, rewarded before and after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Generic, Self, TypeVar

from agent0.events.tasks import RewardAssigned
from agent0.events.values import Role


@dataclass(frozen=True, slots=True)
class Receipt:
    """What is kept of a receipt until all are compared: whom it rewards, its total, and its data as stored. An event
    has many times that size."""

    role: Role
    task: str
    total: float
    data: str

    @classmethod
    def of(cls, reward: RewardAssigned) -> Self:
        """Reduce ``reward`` to what is kept."""
        return cls(reward.role, reward.task, reward.total, reward.model_dump_json())

    @property
    def reward(self) -> RewardAssigned:
        """Rebuild the whole event."""
        return RewardAssigned.model_validate_json(self.data)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """One thing before and after an experiment; None where there is none."""

    before: T | None
    after: T | None

    @property
    def of(self) -> T:
        """Whichever there is, the later one of both."""
        side = self.before if self.after is None else self.after
        assert side is not None  # noqa: S101 - one of them is there
        return side

    @property
    def same(self) -> bool:
        """Whether there are both, with the same data to the byte."""
        sides = [self.data(side) for side in (self.before, self.after) if side is not None]
        return len(sides) == 2 and sides[0] == sides[1]

    @staticmethod
    def data(side: Any) -> str:
        """The data of a side as it is stored."""
        return str(side.model_dump_json())


class ReceiptPair(Change[Receipt]):
    """One receipt before and after; None where there is none."""

    __slots__ = ()

    @staticmethod
    def data(receipt: Receipt) -> str:
        """As the receipt keeps it."""
        return receipt.data


def spearman(before: Sequence[float], after: Sequence[float]) -> float | None:
    """Rank correlation with mean ranks for ties (Spearman 1904); None where either side does not vary."""
    left, right = _ranks(before), _ranks(after)
    middle = (len(left) + 1) / 2
    top = sum((x - middle) * (y - middle) for x, y in zip(left, right, strict=True))
    spread = sum((x - middle) ** 2 for x in left) * sum((y - middle) ** 2 for y in right)
    return top / float(spread) ** 0.5 if spread else None


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=lambda index: values[index])
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for index in order[start : end + 1]:
            ranks[index] = (start + end) / 2 + 1
        start = end + 1
    return ranks


def summary(pairs: Sequence[ReceiptPair]) -> dict[str, object]:
    """Counts, means and rank correlation by role, and the tasks that changed sides.

    A task changed sides where its teacher's reward was above the mean of its run before and not after, or the reverse.
    """
    roles = {role: _role([p for p in pairs if p.of.role == role]) for role in ("student", "teacher")}
    return {
        "receipts": len(pairs),
        "changed": sum(not p.same for p in pairs),
        "identical": all(p.same for p in pairs),
        "only_before": sum(p.after is None for p in pairs),
        "only_after": sum(p.before is None for p in pairs),
        **{role: counts for role, counts in roles.items() if counts},
        "changed_sides": changed_sides(pairs),
    }


def _role(pairs: Sequence[ReceiptPair]) -> dict[str, float | None]:
    both = [(p.before.total, p.after.total) for p in pairs if p.before and p.after]
    if not both:
        return {}
    before, after = [old for old, _ in both], [new for _, new in both]
    return {
        "n": len(both),
        "changed": sum(old != new for old, new in both),
        "mean_before": fmean(before),
        "mean_after": fmean(after),
        "rank_correlation": spearman(before, after),
    }


def changed_sides(pairs: Sequence[ReceiptPair]) -> list[str]:
    """Tasks whose teacher reward crossed the mean between the two sets of receipts."""
    teachers = (p for p in pairs if p.of.role == "teacher")
    return crossed_mean({p.of.task: (p.before.total, p.after.total) for p in teachers if p.before and p.after})


def crossed_mean(totals: Mapping[str, tuple[float, float]]) -> list[str]:
    """Names whose total, in ``totals`` (before, after), is above the mean of its side in one of both only, sorted."""
    if not totals:
        return []
    old_mean, new_mean = (fmean(side) for side in zip(*totals.values(), strict=True))
    return sorted(name for name, (old, new) in totals.items() if (old > old_mean) != (new > new_mean))
