"""One row a tool call: what was asked of which tool, how it ended, what it cost."""

import sqlite3
from collections.abc import Iterator

from events import tasks as facts
from events.base import Recorded
from projections.base import Row, as_json, projection, select, stamp


@projection(
    key=("run", "attempt", "number"),
    columns={
        "run": str,
        "attempt": str,
        "number": int,
        "task": str,
        "turn": int,
        "tool": str,
        "arguments": str,
        "raw": str,
        "problem": str,
        "state": str,
        "output": str,
        "rc": int,
        "wall_s": float,
        "cpu_s": float,
        "peak_mem_mib": float,
        "tier": str,
        "backend": str,
        "cached": bool,
        "artifact": str,
        "time": str,
    },
    events=(facts.ToolCalled,),
)
def tool_calls(e: Recorded) -> Iterator[Row]:
    """``problem`` says why a call could not be parsed; ``artifact`` is the digest of output too long for a row."""
    x = e.event
    assert isinstance(x, facts.ToolCalled)  # noqa: S101 - declared above
    result = x.result
    yield {
        "run": e.run,
        "attempt": e.attempt,
        "number": x.number,
        "task": e.task,
        "turn": x.turn,
        "tool": x.call.name,
        "arguments": as_json(x.call.arguments),
        "raw": x.call.raw,
        "problem": x.call.error,
        "state": result.state.value,
        "output": result.output,
        "rc": result.rc,
        "wall_s": result.wall_s,
        "cpu_s": result.cpu_s,
        "peak_mem_mib": result.peak_mem_mib,
        "tier": result.tier,
        "backend": result.backend,
        "cached": result.cached,
        "artifact": result.artifact.sha256 if result.artifact else None,
        "time": stamp(e),
    }


def tool_stats(db: sqlite3.Connection, run: str) -> list[Row]:
    """Calls of a run by tool and end: how many, how many from the cache, mean and longest seconds."""
    return select(
        db,
        "SELECT tool, state, count(*) AS calls, sum(cached) AS cached, avg(wall_s) AS mean_s, max(wall_s) AS max_s"
        " FROM tool_calls WHERE run = ? GROUP BY tool, state ORDER BY tool, state",
        (run,),
    )
