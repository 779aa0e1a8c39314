"""One row per run, tool and end state: how many calls, how long they took, which limits they hit. Whole numbers
throughout, so that any order of adding up gives the same table."""

import math
import re
import sqlite3
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from agent0.events import tasks as facts
from agent0.events.base import Recorded
from agent0.events.values import ToolResult, ToolState
from agent0.projections.base import Row, each, projection

BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000)
"""Upper bounds of the buckets of a call's wall time; one more holds what is longer."""
BUCKETS = (*(f"ms_{bound}" for bound in BOUNDS_MS), "ms_more")
LIMITS = (ToolState.TIMEOUT, ToolState.MEMORY, ToolState.OUTPUT_FLOOD)
OTHER = "(other)"
"""Stands for names that no tool can have: models write them."""

_SUMS = ("calls", "cached", "kills", "wall_us", "cpu_us", "output_bytes", *BUCKETS)
_name = re.compile(r"[A-Za-z_][\w.-]{0,63}", re.ASCII)


@projection(
    key=("run", "tool", "state"),
    columns={"run": str, "tool": str, "state": str, "peak_mem_mib": float, **dict.fromkeys(_SUMS, int)},
    events=(facts.ToolCalled,),
    adds=_SUMS,
    most=("peak_mem_mib",),
    computed={"wall_s": "wall_us / 1e6", "cpu_s": "cpu_us / 1e6"},
)
def tool_usage(e: Recorded) -> Iterator[Row]:
    """A result from the cache counts as a call and took no time. ``kills``: calls that a signal from outside ended."""
    x = e.event
    assert isinstance(x, facts.ToolCalled)  # noqa: S101 - declared above
    tool = x.call.name if _name.fullmatch(x.call.name) else OTHER
    row: Row = {"run": e.run, "tool": tool, "state": x.result.state.value, "calls": 1, "cached": int(x.result.cached)}
    yield row if x.result.cached else {**row, **_cost(x.result)}


def _cost(result: ToolResult) -> Row:
    return {
        "kills": int(_killed(result)),
        "wall_us": whole(result.wall_s * 1e6),
        "cpu_us": whole(result.cpu_s * 1e6),
        "output_bytes": result.output_bytes,
        "peak_mem_mib": result.peak_mem_mib,
        BUCKETS[bisect_left(BOUNDS_MS, result.wall_s * 1000)]: 1,
    }


def _killed(result: ToolResult) -> bool:
    """Who stops at the polite signal leaves an exit status; who is killed leaves none, or the signal's number."""
    if result.rc is None:
        return result.state in (*LIMITS, ToolState.CANCELLED)
    return result.rc < 0


def whole(value: float) -> int:
    """Round to a whole number that a column holds, 0 at least: a clock that broke must not stop the tables."""
    return round(min(max(value, 0.0), 2.0**53)) if math.isfinite(value) else 0


def usage(db: sqlite3.Connection, run: str = "") -> dict[str, list[Row]]:
    """Rows by tool, summed over runs (or those of one), one a state, with every bucket."""
    sums = ", ".join(f"coalesce(sum({name}), 0) AS {name}" for name in _SUMS)
    sql = (
        f"SELECT tool, state, {sums}, coalesce(max(peak_mem_mib), 0.0) AS peak_mem_mib"  # noqa: S608 - declared names
        " FROM tool_usage WHERE run = ? OR ? = '' GROUP BY tool, state ORDER BY tool, state"
    )
    by_tool: dict[str, list[Row]] = {}
    for row in each(db, sql, (run, run)):
        by_tool.setdefault(row["tool"], []).append(row)
    return by_tool


def summary(tool: str, rows: Sequence[Row]) -> Row:
    """One line about a tool: calls by kind of end, seconds, quantiles of what was carried out (None: nothing was)."""
    buckets = [sum(row[name] for row in rows) for name in BUCKETS]
    return {
        "tool": tool,
        **{name: sum(row[name] for row in rows) for name in ("calls", "cached")},
        "ok": _ended(rows, ToolState.OK),
        "errors": _ended(rows, ToolState.ERROR),
        "limits": _ended(rows, *LIMITS),
        "kills": sum(row["kills"] for row in rows),
        "refused": _ended(rows, ToolState.REFUSED),
        "busy": _ended(rows, ToolState.BUSY),
        "failed": _ended(rows, ToolState.SANDBOX_ERROR, ToolState.CANCELLED),
        "wall_s": sum(row["wall_us"] for row in rows) / 1e6,
        "cpu_s": sum(row["cpu_us"] for row in rows) / 1e6,
        "peak_mem_mib": max(row["peak_mem_mib"] for row in rows),
        **{f"p{n}_ms": quantile(buckets, n / 100) for n in (50, 95, 99)},
    }


def _ended(rows: Sequence[Row], *states: ToolState) -> int:
    return sum(row["calls"] for row in rows if row["state"] in states)


def quantile(buckets: Sequence[int], share: float, bounds: Sequence[int] = BOUNDS_MS) -> float | None:
    """Milliseconds that ``share`` of the calls took at most, by ``buckets`` (counts, one more than ``bounds``): linear
    inside one, the largest bound for what is longer; None where there are none."""
    ends = list(accumulate(buckets))
    rank = share * ends[-1]
    if not rank:
        return None
    number = bisect_left(ends, rank)
    if number == len(bounds):
        return float(bounds[-1])
    low = bounds[number - 1] if number else 0
    return low + (bounds[number] - low) * (rank - ends[number] + buckets[number]) / buckets[number]
