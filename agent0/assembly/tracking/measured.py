"""Part of the rim: everything that a run measured, as points of named series."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from agent0.config.setting_entries import leaves
from agent0.projections.base import Row
from agent0.projections.evaluations import curve_with_shared, list_evaluations
from agent0.projections.iterations import list_iterations
from agent0.projections.runs import iterations_made, show_run
from agent0.projections.training_steps import list_training_steps

NOT_MEASURED = ("iteration", "run", "student", "teacher", "measured", "checkpoint")

NOT_STEPPED = ("step", "run", "role", "kind", "checkpoint", "recorded")
"""Columns of a step that are no values of it."""

TRAINING = "training/"
"""How the series of the optimiser's steps begin."""


@dataclass(frozen=True)
class Point:
    """One value of a series. ``step`` 0 is the untrained student, n is after n iterations; ``time`` is in
    seconds since 1970."""

    series: str
    step: int
    time: float
    value: float


@dataclass(frozen=True)
class RunSeries:
    """What a run measured: its settings by dotted key, its points by iteration, and those of its ``trainings``, whose
    ``step`` counts the optimiser's steps of a role, from 1 through all of its trainings."""

    run: str
    name: str
    settings: Mapping[str, object]
    points: tuple[Point, ...]
    trainings: tuple[Point, ...] = ()

    def rows(self) -> list[dict[str, float | None]]:
        """A row for each iteration done: ``step``, then every series, None where it has no value there."""
        return _rows(self.points)

    def training_rows(self) -> list[dict[str, float | None]]:
        """The same for each step of the optimiser."""
        return _rows(self.trainings)

    def all_rows(self) -> list[dict[str, float | None]]:
        """The rows of the iterations, then those of the optimiser's steps, each with every series."""
        rows = [*self.rows(), *self.training_rows()]
        names = dict.fromkeys(name for row in rows for name in row)
        return [{name: row.get(name) for name in names} for row in rows]


def picked(rows: Sequence[Row], columns: Sequence[str]) -> list[Row]:
    """``columns`` of ``rows`` that have every series, behind ``step``: without the optimiser's steps where none of
    their series is asked for, and without the iterations where all are of theirs."""
    kinds = {column.startswith(TRAINING) for column in columns}
    return [
        {name: row[name] for name in ("step", *columns)}
        for row in rows
        if any(
            value is not None and name.startswith(TRAINING) in kinds for name, value in row.items() if name != "step"
        )
    ]


def _rows(points: Sequence[Point]) -> list[dict[str, float | None]]:
    names = sorted({point.series for point in points})
    steps: dict[int, dict[str, float | None]] = {}
    for point in points:
        steps.setdefault(point.step, dict.fromkeys(names))[point.series] = point.value
    return [{"step": step, **row} for step, row in sorted(steps.items())]


def measured(db: sqlite3.Connection, run: str) -> RunSeries:
    """Collect the learning curve (``curve/…``), the measures of each iteration (``iteration/…``), the test scores
    (``test/…``) and every step of the trainings (``training/ROLE/…``) of ``run`` from the tables.

    Raises:
        NotFoundError: there is no such run.
    """
    row = show_run(db, run)
    name, iterations = str(row["run"]), list_iterations(db, str(row["run"]))
    times = {iteration["iteration"]: _seconds(iteration["measured"]) for iteration in iterations}
    began, last = _seconds(row["started"]), iterations_made(row)
    points = [
        *_points("curve", curve_with_shared(db, name), times, began),
        *_points("iteration", iterations, times, began),
    ]
    for evaluation in list_evaluations(db, name):
        if evaluation["split"] == "test" and evaluation["status"] == "evaluated":
            step = last if evaluation["evaluation"].endswith("-final") else 0
            series = "test/forced_tool" if evaluation["forced_tool"] else "test/accuracy"
            points.append(Point(series, step, _seconds(evaluation["evaluated"]), float(evaluation["accuracy"])))
    points.sort(key=lambda point: (point.step, point.series))
    return RunSeries(name, str(row["name"]), dict(leaves(row["config"])), tuple(points), tuple(_trainings(db, name)))


def _points(group: str, rows: list[Row], times: Mapping[int, float], began: float) -> Iterator[Point]:
    for row in rows:
        for column, value in row.items():
            if column not in NOT_MEASURED and isinstance(value, int | float):
                time = times.get(row["iteration"], began)
                yield Point(f"{group}/{column}", int(row["iteration"]) + 1, time, float(value))


def _trainings(db: sqlite3.Connection, run: str) -> Iterator[Point]:
    taken: Counter[str] = Counter()
    for row in list_training_steps(db, run):
        taken[row["role"]] += 1
        for column, value in row.items():
            if column not in NOT_STEPPED and isinstance(value, int | float):
                name = "replay_loss" if column == "loss" and row["kind"] == "replay" else column
                series = f"{TRAINING}{row['role']}/{name}"
                yield Point(series, taken[row["role"]], _seconds(row["recorded"]), float(value))


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
