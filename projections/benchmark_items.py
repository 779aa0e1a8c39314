"""One row per sample of a benchmark item: the answer, the verdict and the cost."""

import sqlite3
from collections.abc import Iterator

from agent0.events import benchmarks as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, as_json, projection, select, stamp

_COPIED = {
    "benchmark", "item", "mode", "sample", "answer", "correct", "reason", "end", "tool_calls", "tool_ok", "confidence",
    "wall_s", "error",
}  # fmt: skip


@projection(
    key=("run", "benchmark", "mode", "item", "sample"),
    columns={
        "run": str,
        "benchmark": str,
        "mode": str,
        "item": str,
        "sample": int,
        "answer": str,
        "correct": bool,
        "reason": str,
        "error": str,
        "end": str,
        "tool_calls": int,
        "tool_ok": int,
        "confidence": float,
        "prompt_tokens": int,
        "completion_tokens": int,
        "wall_s": float,
        "facts": str,
        "metrics": str,
        "signals": str,
        "scored": str,
        "scored_seq": int,
    },
    events=(facts.ItemScored,),
)
def benchmark_items(e: Recorded) -> Iterator[Row]:
    """``correct`` NULL means undecided, which is not false. ``scored_seq`` leads to the reply."""
    x = e.event
    assert isinstance(x, facts.ItemScored)  # noqa: S101 - declared above
    yield {
        "run": e.run,
        **x.model_dump(include=_COPIED),
        "prompt_tokens": x.usage.prompt_tokens,
        "completion_tokens": x.usage.completion_tokens,
        "facts": as_json(x.facts),
        "metrics": as_json(x.metrics),
        "signals": as_json(x.signals),
        "scored": stamp(e),
        "scored_seq": e.seq,
    }


def scored_items(db: sqlite3.Connection, run: str) -> list[Row]:
    """Every sample of a benchmark run as an event, in a fixed order."""
    return select(
        db,
        "SELECT * FROM benchmark_items WHERE run = ? ORDER BY benchmark, mode, item, sample",
        (run,),
        parse=("facts", "metrics", "signals"),
    )
