"""One row per reviewer and attempt: the reviewer's verdict; and what waits for one."""

import sqlite3
from collections.abc import Iterator

from agent0.errors import NotFoundError
from agent0.events import benchmarks as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, find, projection, select, stamp


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
    """The last verdict of each reviewer; ``correct`` NULL means that it cannot be decided."""
    x = e.event
    assert isinstance(x, facts.TaskReviewed)  # noqa: S101 - declared above
    yield {"run": e.run, **x.model_dump(), "reviewed": stamp(e)}


def list_reviews(db: sqlite3.Connection, run: str, task: str = "") -> list[Row]:
    """List the reviews of a run's attempts, of one task where it is named."""
    return find(db, "SELECT * FROM reviews", {"run": run, "task": task}, "attempt, reviewer")


_JUDGED = """
SELECT a.task, a.attempt, a.status, t.question, a.answer, v.correct, v.verifier, v.reason, v.votes,
 coalesce((SELECT max(json_extract(value, '$.correct') IS 1) AND max(json_extract(value, '$.correct') IS 0)
  FROM json_each(v.votes)), 0) AS disputed,
 (SELECT count(*) FROM reviews r WHERE r.run = a.run AND r.attempt = a.attempt) AS reviews
 FROM attempts a JOIN tasks t USING (run, task)
 LEFT JOIN verdicts v ON v.run = a.run AND v.attempt = a.attempt AND v.verifier <> 'person'
 WHERE a.run = ?
"""


def awaiting(db: sqlite3.Connection, run: str, limit: int = -1) -> list[Row]:
    """List answers that no reviewer has judged: undecided ones first, then disputed ones, then the rest.

    ``correct`` and ``votes`` are the verifier's; ``correct`` NULL: undecided, or not verified yet.
    """
    order = " AND a.answer IS NOT NULL AND reviews = 0 ORDER BY v.correct IS NOT NULL, NOT disputed, a.task, a.number"
    return select(db, f"{_JUDGED}{order} LIMIT ?", (run, limit), parse=("votes",))


def judged(db: sqlite3.Connection, run: str, name: str) -> list[Row]:
    """The attempts of a task, or one attempt, as in ``awaiting``, whatever became of them.

    Raises:
        NotFoundError: the run has neither a task nor an attempt of this name that was ever begun.
    """
    rows = select(db, f"{_JUDGED} AND ? IN (a.task, a.attempt) ORDER BY a.number", (run, name), parse=("votes",))
    if not rows:
        why = f"Run {run} has no task or attempt {name[:80]!r} that was tried."
        raise NotFoundError(why, fix=f"`agent0 task review {run}` shows what awaits a verdict.")
    return rows
