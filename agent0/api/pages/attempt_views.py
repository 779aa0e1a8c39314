"""An attempt in four views: everything that was said, a line for each turn, what happened when, and as it is recorded.
Of a long one each view shows a part, and the browser joins the parts as they are scrolled to."""

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from agent0.api.context import ApiContext
from agent0.api.pages import readings
from agent0.assembly.tooling.workspaces import changes
from agent0.errors import NotFoundError
from agent0.events.values import Artifact
from agent0.projections.attempts import show_attempt
from agent0.projections.base import Row
from agent0.projections.events import attempt_events, attempt_extent, first_event
from agent0.projections.runs import resolve
from agent0.projections.tool_calls import list_calls, snapshot_after
from agent0.tools.snapshots import entries

Shade = Literal["probability", "push"]
"""What tokens are shaded by. The push of a token is its attempt's advantage times 1 - its probability: how far, and in
which direction, a first step of the training moves the token's own logit."""
SHADES: tuple[Shade, ...] = ("probability", "push")
TABLE = 500
"""Tokens that the table of them has."""
_RARE, _PUSHED = (0.9, 0.6, 0.3, 0.1, 0.01), (0.02, 0.1, 0.3, 0.6, 1.0)
View = Literal["conversation", "compact", "timeline", "raw"]
VIEWS: tuple[View, ...] = ("conversation", "compact", "timeline", "raw")
LENGTH, CALLS = 200, 100
"""Turns or events, and tool calls, that one part of a view shows."""
LINE = 140
"""Characters of a turn in the compact view."""


def view_data(
    context: ApiContext, db: sqlite3.Connection, run: str, attempt: str, view: View, turn: int, *, whole: bool = True
) -> Row:
    """One attempt, and what ``view`` of it shows: the part that has ``turn``, counted from 1; in the timeline that is
    the number of an event. ``events`` are those of the timeline, with seconds since the attempt was asked for. Tool
    calls are those of the part, none beside the timeline, or all where the attempt is wanted ``whole``."""
    data = readings.trajectory_data(context, db, run, attempt, calls=whole)
    begin = (turn - 1) // LENGTH * LENGTH
    shown = data["attempt"]
    if not whole and view != "timeline" and not shown["evaluation"]:
        shown["calls"] = list_calls(db, data["run"], shown["attempt"], _turns(shown, begin))
    total, first = len(shown["transcript"]), ""
    events: list[Row] = []
    if view == "timeline":
        total, first = attempt_extent(db, data["run"], shown["task"], shown["attempt"])
        events = attempt_events(db, data["run"], shown["task"], shown["attempt"], begin, LENGTH)
    since = [datetime.fromisoformat(row["time"]) - datetime.fromisoformat(first) for row in events]
    events = [{**row, "after_s": round(s.total_seconds(), 3)} for row, s in zip(events, since, strict=True)]
    return {**data, "view": view, "begins": begin, "total": total, "events": events}


def view_parts(data: Row) -> Row:
    """What the template draws of ``view_data``: turns of the part, the beginnings of all parts, and its tool calls."""
    begin, attempt = data["begins"], data["attempt"]
    turns = attempt["transcript"][begin : begin + LENGTH]
    following = begin + LENGTH + 1 if data["total"] > begin + LENGTH else 0
    return {
        "views": VIEWS,
        "shown_turns": turns,
        "lines": [_line(turn["content"]) for turn in turns],
        "records": [json.dumps(turn, ensure_ascii=True) for turn in turns] if data["view"] == "raw" else [],
        "parts": [*range(0, data["total"], LENGTH)],
        "following": following,
        "longest": max((row["wall_s"] or 0.0 for row in data["events"]), default=0.0),
        "shown_calls": attempt["calls"][:CALLS],
        "all_calls": 0 if data["view"] == "timeline" else max(attempt["tool_calls"] or 0, len(attempt["calls"])),
    }


def shaded(tokens: Row, shade: Shade) -> Row:
    """``token_heat`` with what a template draws: of each token that was drawn its ``push``, where a training had an
    advantage for the attempt, its ``css`` class, and the first ``TABLE`` of them in ``rows``. ``shade`` is by what they
    are shaded: by probability where there is no advantage."""
    advantages = [row["advantage"] for row in tokens["trained"] if row["advantage"] is not None]
    shade = shade if advantages else "probability"
    spans, rows = list[Row](), list[Row]()
    for span in tokens["spans"]:
        drawn = [_shaded(token, advantages[:1], shade) for token in span["tokens"]] if span["own"] else span["tokens"]
        spans.append({**span, "tokens": drawn})
        rows += drawn if span["own"] else []
    return {**tokens, "spans": spans, "shade": shade, "shades": SHADES if advantages else (), "rows": rows[:TABLE]}


def _shaded(token: Row, advantage: Sequence[float], shade: Shade) -> Row:
    push = next((value * (1 - token["probability"]) for value in advantage), None)
    if shade == "push" and push is not None:
        css = f"{'up' if push > 0 else 'down'}{sum(abs(push) > limit for limit in _PUSHED)}"
    else:
        css = f"t{sum(token['probability'] <= limit for limit in _RARE)}"
    return {**token, "push": None if push is None else round(push, 4), "css": css}


def _turns(attempt: Row, begin: int) -> tuple[int, int] | None:
    """From which to before which turn of the student the part from ``begin`` goes, as tool calls count them, from 0; a
    prompt may hold turns of examples before. None: one part shows all of the attempt."""
    transcript = attempt["transcript"]
    if len(transcript) <= LENGTH:
        return None
    before, here = (_written(part) for part in (transcript[:begin], transcript[begin : begin + LENGTH]))
    first = (attempt["turns"] or 0) - _written(transcript) + before
    return first, first + here


def _written(turns: Sequence[Row]) -> int:
    return sum(turn["role"] == "assistant" for turn in turns)


def _line(text: str) -> str:
    line = " ".join(text[: 4 * LINE].split())
    return f"{line[:LINE]}…" if len(line) > LINE or len(text) > 4 * LINE else line


def files_data(context: ApiContext, db: sqlite3.Connection, run: str, attempt: str, call: str, file: str) -> Row:
    """The work folder of an attempt after one tool call, as the student counts calls (0: before the first): its
    ``files``, what the call changed in them, and the ``text`` of the one that is named.

    Raises:
        NotFoundError: no such call or file, or it is not stored here.
    """
    name = resolve(db, run)
    shown = show_attempt(db, name, attempt)
    calls = ["0", *(row["call"] for row in shown["calls"])]
    after = _manifest(snapshot_after(db, name, attempt, call))
    before = _manifest(snapshot_after(db, name, attempt, calls[max(0, calls.index(call) - 1)]))
    files = entries(after, context.artifacts)
    if file and file not in files:
        raise NotFoundError(f"There is no file {file[:80]!r} after call {call}.")
    return {
        "run": name,
        "task": shown["task"],
        "attempt": attempt,
        "call": call,
        "calls": calls,
        "changes": changes(context.artifacts, before, after, text=True),
        "files": [{"path": path, "bytes": artifact.size} for path, artifact in files.items()],
        "file": file,
        "text": _text(context, files[file]) if file else None,
    }


def called(db: sqlite3.Connection, data: Row) -> int:
    """The event from which on the folder of ``files_data`` is there: that of the call, of call 0 that of the first."""
    before = max(0, data["calls"].index(data["call"]) - 1)
    return first_event(db, data["run"], data["task"], data["attempt"], "ToolCalled", before)


def _manifest(digest: str) -> Artifact | None:
    return Artifact(sha256=digest, size=0) if digest else None


def _text(context: ApiContext, artifact: Artifact) -> str | None:
    """Its text; None where it is none."""
    try:
        return context.artifacts.get(artifact).decode()
    except UnicodeDecodeError:
        return None
