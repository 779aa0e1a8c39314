"""One row per reaction that was given up: the dead letters, and what a user decided about each."""

import sqlite3
from collections.abc import Iterator

from agent0.errors import NotFoundError
from agent0.events import alarms as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, find, projection, select, stamp

_COPIED = {
    "failure", "cause_id", "cause_seq", "cause_type", "cause_task", "cause_attempt", "failed_handler", "error",
    "message", "traceback", "deliveries",
}  # fmt: skip


@projection(
    key=("run", "failure"),
    columns={
        "run": str,
        "failure": str,
        "status": str,
        "failed_handler": str,
        "cause_id": str,
        "cause_seq": int,
        "cause_type": str,
        "cause_task": str,
        "cause_attempt": str,
        "error": str,
        "message": str,
        "traceback": str,
        "deliveries": int,
        "times": int,
        "failed": str,
        "settled": str,
        "reason": str,
    },
    events=(facts.ReactionFailed, facts.ReactionRetried, facts.ReactionDropped),
    adds=("times",),
)
def failures(e: Recorded) -> Iterator[Row]:
    """``status``: open, retried, dropped. ``times`` counts how often the same reaction was given up."""
    match e.event:
        case facts.ReactionFailed() as x:
            given_up = {"status": "open", "times": 1, "failed": stamp(e), "settled": None}
            yield {"run": e.run, **x.model_dump(include=_COPIED), **given_up}
        case facts.ReactionRetried() as x:
            yield {"run": e.run, "failure": x.failure, "status": "retried", "settled": stamp(e)}
        case facts.ReactionDropped() as x:
            settled = {"status": "dropped", "settled": stamp(e), "reason": x.reason}
            yield {"run": e.run, "failure": x.failure, **settled}


def list_failures(db: sqlite3.Connection, run: str = "", status: str = "open", limit: int = 100) -> list[Row]:
    """Failures, newest first; every status where ``status`` is empty."""
    return find(
        db,
        "SELECT run, failure, status, failed_handler, cause_type, cause_task, cause_attempt, error, message,"
        " deliveries, times, failed, reason FROM failures",
        {"run": run, "status": status},
        order="failed DESC, failure",
        limit=limit,
    )


def list_missing(db: sqlite3.Connection, run: str = "", limit: int | None = None) -> list[Row]:
    """List what runs lack, newest first: failures that wait for a user, and those that were dropped."""
    rows = [row for status in ("open", "dropped") for row in list_failures(db, run, status, -1)]
    return sorted(rows, key=lambda row: str(row["failed"]), reverse=True)[:limit]


def show_failure(db: sqlite3.Connection, failure: str) -> Row:
    """One failure with traceback and the body of the event that was reacted to; a unique prefix of its id will do.

    Raises:
        NotFoundError: no failure, or more than one, begins like that.
    """
    rows = select(
        db,
        "SELECT failures.*, body AS cause FROM failures LEFT JOIN events ON seq = cause_seq"
        " WHERE substr(failure, 1, length(?)) = ? ORDER BY failure LIMIT 2",
        (failure, failure),
        parse=("cause",),
    )
    if len(rows) != 1:
        what = f"{'No' if not rows else 'More than one'} failure begins with {failure!r}."
        raise NotFoundError(what, fix="`agent0 failures list` shows them.")
    return rows[0]
