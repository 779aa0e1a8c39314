"""Cost and accuracy of strategies on recorded answers of two models, with intervals over tasks.

A workload has one list of tasks a seed. Each task holds the answers of ``HOME``, which cost nothing, and of ``CLOUD``;
keys of answers say whether they are right.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from agent0.routing.strategies import Rules, strategies
from agent0.routing.walk import RecordedQuestion, walk_all

HOME, CLOUD = "tiny", "cloud"
ROUNDS = 1000
"""Bootstrap samples of an interval."""


@dataclass(frozen=True)
class Seed:
    """The tasks of one seed, ``names[i]`` identifying ``tasks[i]``, and the threshold that was fitted on others."""

    names: Sequence[str]
    tasks: Sequence[RecordedQuestion]
    threshold: float

    @property
    def whole(self) -> int:
        """What asking the cloud alone costs, in nano-dollars."""
        return sum(task.answers[CLOUD].cost or 0 for task in self.tasks)


Outcome = tuple[bool, int]
"""Of one task: whether the given answer is right, and what all that were asked for cost, in nano-dollars."""


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Standing:
    """Where a strategy stands: ``cost`` as a share of the cloud's alone, ``accuracy``, ``gained`` accuracy over random
    routing of the same cost, and ``lost`` accuracy against the cloud alone."""

    cost: Estimate
    accuracy: Estimate
    gained: Estimate
    lost: Estimate


def is_right(task: RecordedQuestion, model: str) -> bool:
    """Whether ``model`` answered ``task`` right."""
    return task.answers[model].key == "True"


def outcomes(name: str, seeds: Sequence[Seed], rules: Callable[[Seed], Rules]) -> list[list[Outcome]]:
    """Replay the strategy ``name`` on every seed, under the rules that each gets."""
    walked = (walk_all(strategies()[name].decide, seed.tasks, rules(seed)) for seed in seeds)
    return [[(one.key == "True", one.cost) for one in routed] for routed in walked]


def alone(seeds: Sequence[Seed]) -> list[list[Outcome]]:
    """The cloud is asked every question, and nobody else is."""
    return [[(is_right(task, CLOUD), task.answers[CLOUD].cost or 0) for task in seed.tasks] for seed in seeds]


def oracle(seeds: Sequence[Seed]) -> list[list[Outcome]]:
    """The cloud is asked where it alone is right: no strategy that asks these two is right more often."""
    found = []
    for seed in seeds:
        pays = [is_right(task, CLOUD) and not is_right(task, HOME) for task in seed.tasks]
        cost = [task.answers[CLOUD].cost or 0 for task in seed.tasks]
        found.append([(is_right(t, HOME) or p, p * c) for t, p, c in zip(seed.tasks, pays, cost, strict=True)])
    return found


def best_at_each_cost(seeds: Sequence[Seed]) -> list[tuple[float, float]]:
    """The most accuracy that any strategy can reach, over the share of the cloud's cost: the tasks that the cloud alone
    solves, the cheapest first. One point for each, from the local model alone to the whole cost."""
    tasks, whole = [task for seed in seeds for task in seed.tasks], sum(seed.whole for seed in seeds)
    gains = [task.answers[CLOUD].cost or 0 for task in tasks if is_right(task, CLOUD) and not is_right(task, HOME)]
    right, spent = sum(is_right(task, HOME) for task in tasks), 0
    points = [(0.0, right / len(tasks))]
    for cost in sorted(gains):
        right, spent = right + 1, spent + cost
        points.append((spent / whole, right / len(tasks)))
    return [*points, (1.0, right / len(tasks))]


class Workload:
    """All seeds together. Intervals are over different tasks: a task that several seeds drew counts as one draw."""

    def __init__(self, seeds: Sequence[Seed], rounds: int = ROUNDS) -> None:
        self.seeds = seeds
        place = {name: number for number, name in enumerate(dict.fromkeys(n for s in seeds for n in s.names))}
        self._places = np.array([place[name] for seed in seeds for name in seed.names])
        self.different = len(place)
        drawn = np.random.default_rng(0).multinomial(self.different, [1 / self.different] * self.different, rounds)
        self._weights = np.vstack([np.ones(self.different), drawn])
        tasks = [task for seed in seeds for task in seed.tasks]
        self._count = self._sums([1.0] * len(tasks))
        self._whole = self._sums([task.answers[CLOUD].cost or 0 for task in tasks])
        self._home = self._sums([is_right(task, HOME) for task in tasks]) / self._count
        self._cloud = self._sums([is_right(task, CLOUD) for task in tasks]) / self._count

    def _sums(self, values: Sequence[float]) -> np.ndarray:
        """Sums over all tasks, then over those of each bootstrap sample."""
        return self._weights @ np.bincount(self._places, weights=values, minlength=self.different)

    def standing(self, found: Sequence[Sequence[Outcome]]) -> Standing:
        """Where a strategy with the outcomes ``found`` stands, a list a seed."""
        flat = [one for seed in found for one in seed]
        accuracy = self._sums([right for right, _ in flat]) / self._count
        cost = self._sums([spent for _, spent in flat]) / self._whole
        chance = self._home + (self._cloud - self._home) * cost
        return Standing(*map(_estimate, (cost, accuracy, accuracy - chance, self._cloud - accuracy)))


def _estimate(found: np.ndarray) -> Estimate:
    low, high = np.quantile(found[1:], (0.025, 0.975))
    return Estimate(float(found[0]), float(low), float(high))
