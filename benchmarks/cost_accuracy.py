"""Cost and accuracy of strategies on recorded answers of two models, with intervals over tasks; and a
picture of accuracy over cost: strategies, random routing and the best that is possible.

A workload has one list of tasks a seed. Each task holds the answers of ``HOME``, which cost nothing, and of ``CLOUD``;
keys of answers say whether they are right.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.ticker import PercentFormatter

from agent0.report.charts.plots import SERIES, STAND_IN, STYLE, canvas, svg
from agent0.routing.strategies import Rules, strategies
from agent0.routing.walk import RecordedQuestion, walk_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


MARKS, DASHES = "osD^vPXd<", ("-", (0, (4, 2.5)), (0, (1, 2)), (0, (5, 2, 1, 2)))


@dataclass(frozen=True)
class Curve:
    """Where a strategy stands over the values of its setting, cheapest first, and the one value of the table."""

    swept: Sequence[Standing]
    chosen: Standing


@matplotlib.rc_context(STYLE)
def picture(curves: Mapping[str, Curve], cloud: Standing, best: Sequence[tuple[float, float]]) -> Markup:
    """Draw a line with a mark for each of ``curves``; what has no setting is a mark. ``best`` is the oracle's line, of
    (cost, accuracy); random routing goes straight from its first point to ``cloud``."""
    figure, axes = canvas(7.2, 5.0)
    home = best[0][1]
    axes.plot(
        [0, 1], [home, cloud.accuracy.value], ls=DASHES[1], lw=1.5, color=STAND_IN["quiet"], label="random routing"
    )
    axes.plot(*zip(*best, strict=True), lw=1.5, color=STAND_IN["ink"], label="oracle")
    for number, (name, curve) in enumerate(curves.items()):
        _draw(axes, number, name, curve)
    _mark(axes, cloud, len(curves), "cloud alone", {"color": STAND_IN["ink"], "marker": "*"})
    axes.set_xlabel("cost, as a share of the cloud's alone", color=STAND_IN["quiet"])
    axes.set_ylabel("accuracy", color=STAND_IN["quiet"])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.grid(color=STAND_IN["line"], linewidth=1)
    axes.tick_params(colors=STAND_IN["quiet"], labelsize=9)
    for spine in axes.spines.values():
        spine.set_color(STAND_IN["line"])
    figure.legend(loc="outside lower left", ncols=4, frameon=False, labelcolor=STAND_IN["quiet"], fontsize=9)
    points = [_point(name, curve.chosen) for name, curve in curves.items()]
    return svg(figure, "accuracy over cost by strategy, with 95 % intervals", [*points, _point("cloud alone", cloud)])


def _draw(axes: "Axes", number: int, name: str, curve: Curve) -> None:
    style: dict[str, Any] = {"color": STAND_IN[f"c{number % SERIES}"], "marker": MARKS[number % len(MARKS)]}
    if curve.swept:
        at = [one.cost.value for one in curve.swept]
        axes.plot(
            at,
            [one.accuracy.value for one in curve.swept],
            color=style["color"],
            lw=1.8,
            ls=DASHES[(number + number // SERIES) % 4],
        )
    if curve.swept and number == 0:  # bands of several would hide one another
        low, high = ([getattr(one.accuracy, edge) for one in curve.swept] for edge in ("low", "high"))
        axes.fill_between(at, low, high, color=style["color"], alpha=0.15, linewidth=0)
    _mark(axes, curve.chosen, number, name, style)


def _mark(axes: "Axes", one: Standing, number: int, name: str, style: dict[str, Any]) -> None:
    """The point of a strategy with both of its intervals."""
    cost, accuracy = one.cost, one.accuracy
    axes.vlines(cost.value, accuracy.low, accuracy.high, colors=style["color"], lw=1)
    axes.hlines(accuracy.value, cost.low, cost.high, colors=style["color"], lw=1)
    size, above = (60, 4) if number else (36, 5)  # the first is seen where another strategy comes to the same
    where: Any = {"gid": f"tip{number}", "zorder": above, "clip_on": False, "edgecolors": STAND_IN["paper"]}
    axes.scatter([cost.value], [accuracy.value], s=size, label=name, **where, **style)


def _point(name: str, one: Standing) -> str:
    return f"{name}: cost {one.cost.value:.0%}, accuracy {one.accuracy.value:.1%}"
