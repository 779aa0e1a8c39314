"""One row per file of questions that was answered (``agent0 batch run``): how far it came."""

import sqlite3
from collections.abc import Iterator

from agent0.events import submissions as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, projection, select, stamp


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
