"""What an experiment changed: the same deeds, paid before and after, side by side."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal, Self

from agent0.errors import ConfigError
from events.base import TOKEN, Event, effect_id, sha256
from events.experiments import PREFIX, ExperimentStarted
from events.tasks import RewardAssigned
from events.values import Role


@dataclass(frozen=True, slots=True)
class Receipt:
    """What is kept of a receipt until all are compared: whom and what it pays, and its data as stored. An event has
    many times that size."""

    role: Role
    task: str
    total: float
    data: str

    @classmethod
    def of(cls, reward: RewardAssigned) -> Self:
        """That of ``reward``."""
        return cls(reward.role, reward.task, reward.total, reward.model_dump_json())

    @property
    def reward(self) -> RewardAssigned:
        """The whole of it."""
        return RewardAssigned.model_validate_json(self.data)


@dataclass(frozen=True, slots=True)
class Repaid:
    """One receipt before and after; None where there is none."""

    before: Receipt | None
    after: Receipt | None

    @property
    def of(self) -> Receipt:
        """Whichever there is."""
        found = self.after or self.before
        assert found is not None  # noqa: S101 - one of them is there
        return found

    @property
    def same(self) -> bool:
        """To the byte."""
        if self.before is None or self.after is None:
            return False
        return self.before.data == self.after.data


def experiment_id(name: str) -> str:
    """The run token of the experiment ``name``.

    Raises:
        ConfigError: a name that cannot be part of a subject.
    """
    token = f"{PREFIX}{name.removeprefix(PREFIX)}"
    if not TOKEN.fullmatch(token):
        raise ConfigError(
            f"An experiment cannot be named {name[:80]!r}.", fix="Use letters, digits, '_' and '-', at most 60."
        )
    return token


def start_of(
    kind: Literal["rescore", "reverify"], name: str, run: str, until: int, policy: Mapping[str, Any]
) -> ExperimentStarted:
    """The first event of an experiment on ``run`` up to ``until``, in which something is decided again."""
    return ExperimentStarted(
        name=name,
        kind=kind,
        source=run,
        run=run,
        until=until,
        policy=dict(policy),
        policy_sha=sha256(str(sorted(policy.items()))),
    )


def told_id(experiment: str, cause: str, number: int) -> str:
    """The id of what ``experiment`` says about ``cause``: the same however often it is run."""
    return effect_id(cause, experiment, number)


def digest(told: Iterable[Event]) -> str:
    """sha256 over the canonical data of what was told, in order."""
    return sha256("\n".join(json.dumps(each.model_dump(mode="json"), sort_keys=True) for each in told))


def spearman(before: Sequence[float], after: Sequence[float]) -> float | None:
    """Rank correlation with mean ranks for ties (Spearman 1904); None where either side does not vary."""
    left, right = _ranks(before), _ranks(after)
    middle = (len(left) + 1) / 2
    top = sum((x - middle) * (y - middle) for x, y in zip(left, right, strict=True))
    spread = sum((x - middle) ** 2 for x in left) * sum((y - middle) ** 2 for y in right)
    return top / float(spread) ** 0.5 if spread else None


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=lambda place: values[place])
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for place in order[start : end + 1]:
            ranks[place] = (start + end) / 2 + 1
        start = end + 1
    return ranks


def summary(pairs: Sequence[Repaid]) -> dict[str, Any]:
    """Counts, means and rank correlation by role, and the tasks that changed sides: whose teacher was paid more than
    the mean of its run before and not after, or the other way round."""
    roles = {role: _role([p for p in pairs if p.of.role == role]) for role in ("student", "teacher")}
    return {
        "receipts": len(pairs),
        "changed": sum(not p.same for p in pairs),
        "identical": all(p.same for p in pairs),
        "only_before": sum(p.after is None for p in pairs),
        "only_after": sum(p.before is None for p in pairs),
        **{role: told for role, told in roles.items() if told},
        "changed_sides": changed_sides(pairs),
    }


def _role(pairs: Sequence[Repaid]) -> dict[str, Any]:
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


def changed_sides(pairs: Sequence[Repaid]) -> list[str]:
    """Tasks whose teacher's pay crossed the mean."""
    both = {
        p.of.task: (p.before.total, p.after.total) for p in pairs if p.of.role == "teacher" and p.before and p.after
    }
    if not both:
        return []
    old_mean, new_mean = fmean(old for old, _ in both.values()), fmean(new for _, new in both.values())
    return sorted(task for task, (old, new) in both.items() if (old > old_mean) != (new > new_mean))
