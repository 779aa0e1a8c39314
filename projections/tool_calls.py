"""One row per tool call: tool, arguments, how it ended, what it cost."""

import sqlite3
from collections.abc import Iterator, Sequence

from agent0.errors import NotFoundError
from agent0.events import tasks as facts
from agent0.events.base import Recorded
from agent0.events.values import ToolUse
from agent0.projections.base import Row, as_json, find, projection, select, stamp


@projection(
    key=("run", "attempt", "number"),
    columns={
        "run": str,
        "attempt": str,
        "number": int,
        "task": str,
        "turn": int,
        "inner": bool,
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
        "reason": str,
        "output_bytes": int,
        "work": str,
        "files": int,
        "file_bytes": int,
        "time": str,
    },
    events=(facts.ToolCalled,),
    indexes=(("time",),),
)
def tool_calls(e: Recorded) -> Iterator[Row]:
    """``problem`` says why a call could not be parsed, ``reason`` why it was refused or ended early; ``artifact`` is
    the digest of output too long for a row, ``work`` that of the work folder's manifest (None: it is empty)."""
    x = e.event
    assert isinstance(x, facts.ToolCalled)  # noqa: S101 - declared above
    at = {"run": e.run, "attempt": e.attempt, "number": x.number, "task": e.task, "time": stamp(e)}
    row = _columns(x)
    yield {**at, **row, "arguments": as_json(row["arguments"])}


def _columns(use: facts.ToolCalled | ToolUse) -> Row:
    """What a row says of a call and its result."""
    result = use.result
    return {
        "turn": use.turn,
        "inner": use.inner,
        "tool": use.call.name,
        "arguments": use.call.arguments,
        "raw": use.call.raw,
        "problem": use.call.error,
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
        "reason": result.reason,
        "output_bytes": result.output_bytes,
        "work": result.work.sha256 if result.work else None,
        "files": result.files,
        "file_bytes": result.file_bytes,
    }


def tool_stats(db: sqlite3.Connection, run: str) -> list[Row]:
    """Calls of a run by tool and end: how many, how many from the cache, mean and longest seconds."""
    return select(
        db,
        "SELECT tool, state, count(*) AS calls, sum(cached) AS cached, avg(wall_s) AS mean_s, max(wall_s) AS max_s"
        " FROM tool_calls WHERE run = ? GROUP BY tool, state ORDER BY tool, state",
        (run,),
    )


def numbered(columns: str) -> str:
    """A query of ``columns`` and ``call``: how the student counts its calls, from 1. Steps of a plan that is its third
    call are 3.1, 3.2 and so on; ``number`` counts them all, in the order of the events. What the query is narrowed to
    must be whole attempts."""
    before = "OVER (PARTITION BY run, attempt ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    call = (
        f"(coalesce(sum(NOT inner) {before}, 0) + 1) || CASE WHEN inner"
        f" THEN '.' || (number - coalesce(max(CASE WHEN NOT inner THEN number END) {before}, -1)) ELSE '' END"
    )
    return f"SELECT {columns}, {call} AS call FROM tool_calls"  # noqa: S608 - columns are ours


def list_calls(db: sqlite3.Connection, run: str, attempt: str, turns: tuple[int, int] | None = None) -> list[Row]:
    """The tool calls of an attempt in order; with ``turns`` those alone of the turns from its first to before its
    second, counted from 0: of the others only their numbers are read."""
    among = (run, attempt)
    if turns is None:
        query = f"{numbered('*')} WHERE run = ? AND attempt = ? ORDER BY number"
        return select(db, query, among, parse=("arguments",))
    query = (
        f"WITH named AS ({numbered('number, turn')} WHERE run = ? AND attempt = ?)"  # noqa: S608 - columns are ours
        " SELECT held.*, call FROM named CROSS JOIN tool_calls AS held USING (number)"
        " WHERE named.turn >= ? AND named.turn < ? AND run = ? AND attempt = ? ORDER BY number"
    )
    return select(db, query, (*among, *turns, *among), parse=("arguments",))


def recorded_calls(stored: Sequence[Row]) -> list[Row]:
    """The tool calls of a recorded ``Conversation``, in the columns and with the numbers of ``list_calls``."""
    rows, done, last = list[Row](), 0, -1
    for number, use in enumerate(map(ToolUse.model_validate, stored)):
        rows.append({"number": number, **_columns(use), "call": f"{done + 1}"})
        if use.inner:
            rows[-1]["call"] += f".{number - last}"
        else:
            done, last = done + 1, number
    return rows


def list_snapshots(db: sqlite3.Connection, run: str, attempt: str = "", limit: int = 100) -> list[Row]:
    """Work folders of a run after each tool call, in the order of the calls. ``work`` None: it was empty."""
    query = numbered("attempt, tool, state, files, file_bytes, work, time")
    return find(db, query, {"run": run, "attempt": attempt}, order="time, attempt, number", limit=limit)


def snapshot_after(db: sqlite3.Connection, run: str, attempt: str, call: str) -> str:
    """Digest of the manifest after one call, as ``numbered`` names it, empty where the folder was; 0 is the start.

    Raises:
        NotFoundError: there was no such call.
    """
    calls = find(db, numbered("work"), {"run": run, "attempt": attempt}, "number")
    after = {"0": "" if calls else None, **{row["call"]: row["work"] or "" for row in calls}}
    if (digest := after.get(call)) is None:
        fix = f"`agent0 sandbox snapshots {run}` lists them."
        raise NotFoundError(f"Run {run} has no tool call {attempt[:64]}#{call}.", fix=fix)
    return digest


def recent_calls(db: sqlite3.Connection, since: str, run: str = "") -> dict[str, int]:
    """Calls by tool whose event is younger than ``since`` (as ``stamp`` writes it); of one run where named."""
    counts = "SELECT tool, count(*) AS n FROM tool_calls WHERE time > ? AND (run = ? OR ? = '') GROUP BY tool"
    return {row["tool"]: row["n"] for row in select(db, counts, (since, run, run))}
