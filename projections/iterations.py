"""One row per iteration: the measures of its tasks and attempts before anything was trained on them."""

import sqlite3
from collections.abc import Iterator

from agent0.run.monitors.iteration_metrics import MEANING
from events import runs as facts
from events.base import Recorded
from projections.base import Row, projection, select, stamp


@projection(
    key=("run", "iteration"),
    columns={
        "run": str,
        "iteration": int,
        "student": str,
        "teacher": str,
        **dict.fromkeys(MEANING, float),
        "measured": str,
    },
    events=(facts.IterationMeasured,),
)
def iterations(e: Recorded) -> Iterator[Row]:
    """A column for each measure of ``agent0.run.monitors.iteration_metrics.MEANING``; None where it could not be
    known."""
    x = e.event
    assert isinstance(x, facts.IterationMeasured)  # noqa: S101 - declared above
    measures = {name: x.measures.get(name) for name in MEANING}
    who = {"iteration": x.iteration, "student": x.student, "teacher": x.teacher}
    yield {"run": e.run, **who, **measures, "measured": stamp(e)}


def list_iterations(db: sqlite3.Connection, run: str) -> list[Row]:
    """List the measures of a run's iterations, oldest first."""
    return select(db, "SELECT * FROM iterations WHERE run = ? ORDER BY iteration", (run,))


def list_slots(db: sqlite3.Connection, run: str) -> list[Row]:
    """List what a run requested by domain, family and level: tasks, their attempts and how many were right."""
    return select(db, _SLOTS.format(by="", order="t.domain, t.family, t.level"), (run,))


def slots_by_iteration(db: sqlite3.Connection, run: str) -> list[Row]:
    """List what each iteration requested by domain, family and level, as ``list_slots`` does."""
    return select(db, _SLOTS.format(by=", t.iteration", order="t.iteration, t.domain, t.family, t.level"), (run,))


_SLOTS = """
SELECT t.domain, t.family, t.level{by}, count(DISTINCT t.task) AS asked,
       count(DISTINCT CASE WHEN t.status = 'accepted' THEN t.task END) AS tasks,
       count(a.attempt) AS tried, coalesce(sum(a.correct), 0) AS solved,
       avg(a.correct) AS solve_rate, avg(a.turns) AS turns, avg(a.tool_calls) AS calls, avg(t.novelty) AS novelty,
       max(t.iteration) AS last
FROM tasks t LEFT JOIN attempts a ON a.run = t.run AND a.task = t.task AND a.correct IS NOT NULL
WHERE t.run = ? GROUP BY t.domain, t.family, t.level{by} ORDER BY {order}
"""
