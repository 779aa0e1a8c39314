"""One row a person's verdict on an attempt."""

import sqlite3
from collections.abc import Iterator

from events import benchmarks as facts
from events.base import Recorded
from projections.base import Row, find, projection, stamp


@projection(
    key=("run", "attempt", "reviewer"),
    columns={
        "run": str,
        "attempt": str,
        "task": str,
        "reviewer": str,
        "correct": bool,
        "reason": str,
        "reviewed": str,
    },
    events=(facts.TaskReviewed,),
)
def reviews(e: Recorded) -> Iterator[Row]:
    """The last word of each reviewer; ``correct`` NULL means that it cannot be told."""
    x = e.event
    assert isinstance(x, facts.TaskReviewed)  # noqa: S101 - declared above
    yield {"run": e.run, **x.model_dump(), "reviewed": stamp(e)}


def list_reviews(db: sqlite3.Connection, run: str) -> list[Row]:
    """Reviews of a run's attempts."""
    return find(db, "SELECT * FROM reviews", {"run": run}, "attempt, reviewer")
