"""One row per verdict: whether an attempt's answer is right, by which verifier and why."""

import sqlite3
from collections.abc import Iterator

from agent0.events import tasks as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, as_json, projection, select, stamp


@projection(
    key=("run", "attempt", "verifier"),
    columns={
        "run": str,
        "attempt": str,
        "verifier": str,
        "task": str,
        "iteration": int,
        "correct": bool,
        "reason": str,
        "expected": str,
        "got": str,
        "subgoals": str,
        "credit": float,
        "votes": str,
        "time": str,
    },
    events=(facts.ResultVerified,),
)
def verdicts(e: Recorded) -> Iterator[Row]:
    """``correct`` NULL means undecided, which is not false. ``subgoals`` is the JSON list of a long task's verdicts and
    ``credit`` the share that is right; both are NULL for a short one, as ``votes`` is where there was one check."""
    x = e.event
    assert isinstance(x, facts.ResultVerified)  # noqa: S101 - declared above
    yield {
        "run": e.run,
        "attempt": e.attempt,
        "verifier": x.verifier,
        "task": e.task,
        "iteration": x.iteration,
        "correct": x.correct,
        "reason": x.reason,
        "expected": x.expected,
        "got": x.got,
        "subgoals": as_json(x.subgoals) if x.subgoals else None,
        "credit": x.credit,
        "votes": as_json([vote.model_dump() for vote in x.votes]) if x.votes else None,
        "time": stamp(e),
    }


def opinions(db: sqlite3.Connection, run: str) -> int:
    """Count the verdicts of a run that a judge model alone decided (verifier ``judge``)."""
    sql = "SELECT count(*) AS n FROM verdicts WHERE run = ? AND verifier = 'judge' AND correct IS NOT NULL"
    return int(select(db, sql, (run,))[0]["n"])
