"""One row per submitted task: who solves it, and what became of it."""

import sqlite3
from collections.abc import Iterator

from agent0.errors import NotFoundError
from agent0.events import alarms, tasks
from agent0.events import submissions as facts
from agent0.events.base import Recorded
from agent0.projections.attempts import show_attempt
from agent0.projections.base import Row, behind_row, find, projection, select, stamp


@projection(
    key=("submission",),
    columns={
        "submission": str,
        "source": str,
        "student": str,
        "task": str,
        "attempt": str,
        "question": str,
        "domain": str,
        "family": str,
        "level": int,
        "expected": str,
        "status": str,
        "answer": str,
        "correct": bool,
        "verifier": str,
        "reason": str,
        "wall_s": float,
        "by": str,
        "submitted": str,
        "submitted_seq": int,
    },
    events=(
        facts.TaskSubmitted,
        tasks.TaskAttempted,
        tasks.ResultVerified,
        alarms.ReactionFailed,
        alarms.ReactionRetried,
        alarms.ReactionDropped,
    ),
    indexes=(("submitted_seq",), ("source",)),
)
def submissions(e: Recorded) -> Iterator[Row]:
    """``status``: submitted, attempted, verified, failed (its ``reason`` says of what), dropped."""
    if not e.run.startswith(facts.PREFIX):
        return
    at = {"submission": e.run}
    match e.event:
        case facts.TaskSubmitted() as x if not x.turn:
            proposal = x.proposal.model_dump(include={"question", "domain", "family", "level"})
            of = x.model_dump(include={"source", "student", "task", "attempt", "expected", "by"})
            yield {**at, **proposal, **of, "status": "submitted", "submitted": stamp(e), "submitted_seq": e.seq}
        case tasks.TaskAttempted() as x:
            yield {**at, "status": "attempted", "answer": x.answer, "wall_s": x.wall_s}
        case tasks.ResultVerified() as x:
            verdict = {"correct": x.correct, "verifier": x.verifier, "reason": x.reason}
            yield {**at, "status": "verified", **verdict}
        case alarms.ReactionFailed() as x:
            yield {**at, "status": "failed", "reason": f"{x.error}: {x.message}"}
        case alarms.ReactionRetried():
            yield {**at, "status": "submitted", "reason": None}
        case alarms.ReactionDropped() as x:
            yield {**at, "status": "dropped", "reason": x.reason}


def list_submissions(db: sqlite3.Connection, source: str = "", limit: int = 100, after: str = "") -> list[Row]:
    """Submitted tasks, newest first; those for one run's students where it is named, and those before ``after``.

    Raises:
        NotFoundError: there is no submission ``after``.
    """
    behind = behind_row(db, "submissions", {"submission": after}, ("-submitted_seq",)) if after else ("", ())
    return find(db, "SELECT * FROM submissions", {"source": source}, "submitted_seq DESC", limit, behind=behind)


def show_submission(db: sqlite3.Connection, submission: str) -> Row:
    """One submitted task; ``solution`` is its attempt, None where there is none yet.

    Raises:
        NotFoundError: there is none of this name.
    """
    rows = select(db, "SELECT * FROM submissions WHERE submission = ?", (submission,))
    if not rows:
        raise NotFoundError(f"There is no submitted task {submission[:80]!r}.", fix="See: GET /v1/tasks")
    row = rows[0]
    attempted = row["status"] in ("attempted", "verified")
    return {**row, "solution": show_attempt(db, submission, row["attempt"]) if attempted else None}
