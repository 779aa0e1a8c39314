"""Functions of users' files that do not come back: where they stand, and for how long, for other processes to read."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, TypedDict

from agent0.registry import LOADED, standing_in

SHOWN_S = 20.0
"""Seconds in one line of a user's file from which a person is told."""
FRESH_S = 15.0
"""Age in seconds from which what another process wrote counts for nothing, unless it ended by it."""
FOLDER, ENDING = "waits", ".code"
AWAITED = (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await"))
"""Of coroutines, generators and asynchronous generators: the frame, and what it awaits."""

_since: dict[tuple[str, str], float] = {}


def awaited() -> tuple[str, float]:
    """Where the asyncio task of this process that has stood longest in one line of a user's file stands, and for how
    many seconds; empty where none has for ``SHOWN_S``. Times count from the first call that saw it there."""
    if not LOADED:
        return "", 0.0
    moment = time.monotonic()
    lines = {(task.get_name(), standing_in(_frames(task.get_coro()))) for task in asyncio.all_tasks()}
    times = {key: _since.get(key, moment) for key in lines if key[1]}
    _since.clear()
    _since.update(times)
    (_, location), began = min(times.items(), key=lambda item: item[1], default=(("", ""), moment))
    return (location, moment - began) if moment - began >= SHOWN_S else ("", 0.0)


def running(thread: int) -> str:
    """Where in a user's file the thread of this identifier is now; empty where it is elsewhere."""
    frame = sys._current_frames().get(thread) if LOADED else None
    return standing_in(reversed([*_callers(frame)]))


def write(home: Path, location: str, seconds: float, *, ended: bool = False) -> None:
    """Write down where this process stands, or that it stands nowhere. ``ended``: it ends for that reason."""
    path = home / FOLDER / f"{os.getpid()}{ENDING}"
    with suppress(OSError):
        if not location:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(json.dumps({"place": location, "seconds": seconds, "ended": ended}))


class CodePosition(TypedDict):
    """Where in a user's file a process stands, or stood when it ``ended``, and for how many seconds."""

    place: str
    seconds: float
    ended: bool


def read(home: Path) -> CodePosition | None:
    """Where a process of this data folder stands, or stood when it ended; None where none does."""
    for path in sorted((home / FOLDER).glob(f"*{ENDING}")):
        with suppress(OSError, ValueError, TypeError, KeyError):
            record = json.loads(path.read_text())
            if record["ended"] or time.time() - path.stat().st_mtime < FRESH_S:
                place, seconds = str(record["place"]), float(record["seconds"])
                return {"place": place, "seconds": seconds, "ended": bool(record["ended"])}
    return None


def forget(home: Path) -> None:
    """Remove what processes of this data folder wrote before."""
    for path in (home / FOLDER).glob(f"*{ENDING}"):
        with suppress(OSError):
            path.unlink()


def text(record: CodePosition | None) -> str:
    """``record`` in words; empty where there is none, or its process has ended."""
    return f"{record['place']}, {record['seconds']:.0f} s" if record and not record["ended"] else ""


def _frames(awaitable: Any) -> Iterator[tuple[FrameType, int]]:
    """The frames of a coroutine and of what it awaits, from the outermost on, each with its line."""
    while awaitable is not None:
        frame, inner = next(((getattr(awaitable, f), a) for f, a in AWAITED if hasattr(awaitable, f)), (None, ""))
        if frame is None:
            return
        yield frame, frame.f_lineno
        awaitable = getattr(awaitable, inner)


def _callers(frame: FrameType | None) -> Iterable[tuple[FrameType, int]]:
    while frame is not None:
        yield frame, frame.f_lineno
        frame = frame.f_back
