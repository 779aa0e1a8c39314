"""One row an iteration: what its tasks and attempts came to before anything was trained on them."""

import sqlite3
from collections.abc import Iterator

from agent0.measures import MEANING
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
    """A column for each measure of ``agent0.measures.MEANING``; None where it could not be known."""
    x = e.event
    assert isinstance(x, facts.IterationMeasured)  # noqa: S101 - declared above
    told = {name: x.measures.get(name) for name in MEANING}
    who = {"iteration": x.iteration, "student": x.student, "teacher": x.teacher}
    yield {"run": e.run, **who, **told, "measured": stamp(e)}


def list_iterations(db: sqlite3.Connection, run: str) -> list[Row]:
    """In order."""
    return select(db, "SELECT * FROM iterations WHERE run = ? ORDER BY iteration", (run,))
