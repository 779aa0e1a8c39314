"""What charts of many runs are made of: each metric that runs keep, over steps, time or tokens learned from. Metrics
have the names that `agent0 run export` gives them."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import accumulate
from math import isfinite
from typing import Literal

from agent0.projections.base import Row
from agent0.projections.checkpoints import training_times
from agent0.projections.evaluations import validations, validations_with_shared
from agent0.projections.iterations import iteration_values
from agent0.projections.training_steps import step_values, tokens_learned
from agent0.report.charts.training_steps import METRICS
from agent0.run.iteration_measures import MEANING

AxisName = Literal["step", "time", "tokens"]
VALIDATION, ITERATION, TRAINING = "curve/validation", "iteration", "training"
ROLES = ("student", "teacher")
_SHARES = ("share", "mean share", "mean verified", "accuracy")
"""How the meaning of a measure begins that lies between 0 and 1."""


@dataclass(frozen=True)
class Metric:
    """A metric: ``name`` in addresses, ``title`` for people, ``group`` of the list that offers it. ``share``: it lies
    between 0 and 1, and is shown in percent."""

    name: str
    title: str
    group: str
    share: bool = False

    @property
    def by_iteration(self) -> bool:
        """Whether it has a value an iteration, not one a step of the optimiser."""
        return not self.name.startswith(TRAINING)


@cache
def metrics() -> Mapping[str, Metric]:
    """Every metric that a chart can show, by name: validation first, then measures, then steps."""
    first = Metric(VALIDATION, "validation accuracy", "By iteration", share=True)
    measures = [
        Metric(f"{ITERATION}/{name}", name.replace("_", " "), first.group, meaning.startswith(_SHARES))
        for name, meaning in MEANING.items()
        if name != "validation"
    ]
    steps = [
        Metric(f"{TRAINING}/{role}/{name}", title if role == ROLES[0] else f"{role}: {title}", f"By step, {role}")
        for role in ROLES
        for name, title in METRICS.items()
    ]
    return {metric.name: metric for metric in (first, *measures, *steps)}


@dataclass(frozen=True)
class Series:
    """One run's values ``ys`` at ``xs``, which grow: iterations done or steps, seconds since its start, or tokens that
    its student (of the training of a role: that role) learned from."""

    xs: Sequence[float]
    ys: Sequence[float]


def series(db: sqlite3.Connection, row: Row, metric: Metric, axis: AxisName) -> Series:
    """The values of ``metric`` of the run of ``row``; what is not known or no finite number is left out. By iteration
    the validations of a fork begin with those that it shares with its parents."""
    if row["parent"] and metric.name == VALIDATION and axis == "step":
        shared = validations_with_shared(db, str(row["run"]))
        return _known([score["iteration"] + 1 for score in shared], [score["accuracy"] for score in shared])
    return _known(*_points(db, str(row["run"]), _seconds(row["started"]), metric, axis))


def _known(xs: Sequence[float | None], ys: Sequence[float | None]) -> Series:
    """All points where nothing is missing, which is looked at without a loop in Python."""
    if None not in ys and None not in xs and all(map(isfinite, ys)):  # type: ignore[arg-type]
        return Series(xs, ys)  # type: ignore[arg-type]
    kept = [(x, y) for x, y in zip(xs, ys, strict=True) if x is not None and y is not None and isfinite(y)]
    return Series([x for x, _ in kept], [y for _, y in kept])


Points = tuple[Sequence[float | None], Sequence[float | None]]


def _points(db: sqlite3.Connection, run: str, began: float, metric: Metric, axis: AxisName) -> Points:
    if not metric.by_iteration:
        return _by_step(db, run, began, metric.name, axis)
    trained = metric.name == VALIDATION
    rows = validations(db, run) if trained else iteration_values(db, run, metric.name.partition("/")[2])
    iterations, stamps, values = zip(*rows, strict=True) if rows else ((), (), ())
    if axis == "step":
        return [iteration + 1 for iteration in iterations], values
    if axis == "time":
        return [_seconds(stamp) - began for stamp in stamps], values
    learned = tokens_learned(db, run)
    if not learned:
        return (), ()
    sums = [0, *accumulate(learned.get(iteration, 0) for iteration in range(max(*learned, *iterations, 0) + 1))]
    return [sums[max(0, iteration + trained)] for iteration in iterations], values  # others are measured before it


def _by_step(db: sqlite3.Connection, run: str, began: float, name: str, axis: AxisName) -> Points:
    _, role, metric = name.split("/")
    trainings = step_values(db, run, role, metric)
    values = [value for _, of in trainings for value in of]
    if axis == "tokens":
        return [*accumulate(count or 0 for _, of in step_values(db, run, role, "tokens") for count in of)], values
    if axis == "step":
        return range(1, len(values) + 1), values
    times, places, last = training_times(db, run, role), list[float | None](), 0.0
    for checkpoint, of in trainings:  # its steps lie evenly in the time that it took
        if checkpoint not in times:
            places += [None] * len(of)
            continue
        stamp, seconds = times[checkpoint]
        end = max(last, _seconds(stamp) - began)
        begin, last = max(last, end - seconds), end
        places += [begin + n * (end - begin) / len(of) for n in range(1, len(of) + 1)]
    return places, values


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
