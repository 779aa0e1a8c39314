"""One row per file of questions that was answered (``agent0 batch run``): how far it came."""

import sqlite3
from collections.abc import Iterator

from agent0.errors import NotFoundError
from agent0.events import submissions as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, find, projection, select, stamp
from agent0.projections.evaluation_items import BATCH


@projection(
    key=("batch",),
    columns={
        "batch": str,
        "status": str,
        "source": str,
        "out": str,
        "provider": str,
        "model": str,
        "checkpoint": str,
        "rows": int,
        "answered": int,
        "failed": int,
        "prompt_tokens": int,
        "completion_tokens": int,
        "started": str,
        "finished": str,
    },
    events=(facts.BatchRunStarted, facts.RowAnswered, facts.BatchRunFinished),
    adds=("answered", "failed", "prompt_tokens", "completion_tokens"),
)
def batches(e: Recorded) -> Iterator[Row]:
    """``status``: started, finished. ``answered`` rows have an answer, ``failed`` ones an error, others neither."""
    at: Row = {"batch": e.run}
    match e.event:
        case facts.BatchRunStarted() as x:
            actor = {"provider": x.actor.get("provider"), "model": x.actor.get("model")}
            plan = x.model_dump(include={"source", "out", "checkpoint", "rows"})
            yield {**at, **actor, **plan, "status": "started", "started": stamp(e)}
        case facts.RowAnswered() as x:
            tokens = {"prompt_tokens": x.usage.prompt_tokens, "completion_tokens": x.usage.completion_tokens}
            yield {**at, **tokens, "answered": int(x.answer is not None), "failed": int(bool(x.error))}
        case facts.BatchRunFinished():
            yield {**at, "status": "finished", "finished": stamp(e)}


def list_batches(db: sqlite3.Connection) -> list[Row]:
    """List all batches in the order in which they began."""
    return select(db, "SELECT * FROM batches ORDER BY started, batch", ())


def show_batch(db: sqlite3.Connection, batch: str) -> Row:
    """One batch; ``LAST`` is the newest.

    Raises:
        NotFoundError: there is none of this name.
    """
    rows = list_batches(db)[-1:] if batch == "LAST" else select(db, "SELECT * FROM batches WHERE batch = ?", (batch,))
    if not rows:
        raise NotFoundError(f"There is no batch {batch[:80]!r}.", fix="See: agent0 batch list")
    return rows[0]


_ANSWERS = """
SELECT number AS row, answer, end AS finish, nullif(reason, '') AS error, tokens, tool_calls, wall_s,
       attempt AS transcript, scored_seq AS event
FROM evaluation_items
"""


def list_answers(db: sqlite3.Connection, batch: str, after: int = 0, limit: int = 100) -> list[Row]:
    """The answers to the rows behind row ``after``, in the order of the rows.

    Raises:
        NotFoundError: there is no such batch.
    """
    of = {"run": show_batch(db, batch)["batch"], "evaluation": BATCH}
    return find(db, _ANSWERS, of, "number", limit, behind=("number > ?", (after,)))
