"""Calls as lines: one JSON object per line comes in, one goes out for each, in the same order, while several run at
once. No input can end the server, and every queue is bounded: a call that the sandbox has no room for is answered
``busy``, and no more input is read while too many answers wait."""

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

from agent0.assembly.tooling import workspaces
from agent0.assembly.tooling.tool_calls import ToolBench, ToolRequest, call_record, not_run
from agent0.cli.defects import defect
from agent0.errors import Agent0Error, ConfigError
from agent0.events.values import ToolState
from agent0.ports.sandbox import SandboxResult
from agent0.settings import Settings
from agent0.tools.snapshots import MOST_BYTES

LONGEST = 8 << 20
"""Bytes of a line: the longest code, escaped as JSON at its worst."""
_AHEAD = 4
BEYOND, HELD = 1024, 256 << 20
"""Lines that may be answered busy behind one that still runs; bytes of calls that are held at once."""
_KEYS: dict[str, tuple[type, ...]] = {
    "tool": (str,),
    "code": (str,),
    "args": (dict,),
    "wall": (int, float),
    "mem": (int,),
    "files": (dict,),
    "from": (str,),
    "keep": (bool,),
}


class LineSplitter:
    """Cuts bytes into lines. One that is too long is None, and is never held whole."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest, self._held, self._skipping = longest, b"", False

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """Every line that ends in ``data``."""
        *ended, rest = data.split(b"\n")
        for part in ended:
            yield self._line(part)
            self._held, self._skipping = b"", False
        self._hold(rest)

    def end(self) -> Iterator[bytes | None]:
        """A last line that nothing ended."""
        if self._held or self._skipping:
            yield self._line(b"")
            self._held, self._skipping = b"", False

    def _line(self, part: bytes) -> bytes | None:
        self._hold(part)
        return None if self._skipping else self._held

    def _hold(self, part: bytes) -> None:
        self._skipping = self._skipping or len(self._held) + len(part) > self._longest
        self._held = b"" if self._skipping else self._held + part


async def incoming(fd: int) -> AsyncIterator[bytes]:
    """What can be read from ``fd``, as it comes. A thread reads: a terminal, a pipe and a file alike, none of them made
    non-blocking for whoever else has it; and it is not waited for where the process ends."""
    loop, room = asyncio.get_running_loop(), threading.Semaphore(_AHEAD)
    queue: asyncio.Queue[bytes] = asyncio.Queue()

    def pump() -> None:
        data = b"x"
        while data:
            room.acquire()
            try:
                data = os.read(fd, 1 << 16)
            except OSError:
                data = b""
            try:
                loop.call_soon_threadsafe(queue.put_nowait, data)
            except RuntimeError:  # the loop is closed: nobody listens any more
                return

    threading.Thread(target=pump, name="incoming", daemon=True).start()
    while data := await queue.get():
        room.release()
        yield data


async def serve(
    settings: Settings, bench: ToolBench, source: AsyncIterator[bytes], write: Callable[[str], None]
) -> None:
    """Answer every line of ``source``, in order, until it ends. Each is given to the sandbox as it comes, which turns
    away what its bounded queue has no place for.

    Raises:
        BrokenPipeError: nobody reads the answers.
    """
    answers: asyncio.Queue[asyncio.Task[dict[str, Any]] | None] = asyncio.Queue(bench.room + BEYOND)
    room = _Room(HELD)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_write_answers(answers, write))
            async for line in _lines(source):
                weight = await room.take(line)
                task = group.create_task(respond(settings, bench, line))
                task.add_done_callback(partial(room.give, weight))
                await answers.put(task)
            await answers.put(None)
    except* BrokenPipeError as error:
        raise BrokenPipeError from error


class _Room:
    """Bytes of calls that are not yet answered. One call alone always has room."""

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0
        self._freed = asyncio.Event()

    async def take(self, line: bytes | None) -> int:
        """Wait until ``line`` fits; what it weighs. A work folder that it starts from is read while it waits."""
        weight = len(line or b"") + (MOST_BYTES if b'"from"' in (line or b"") else 0)
        while self._held and self._held + weight > self._most:
            self._freed.clear()
            await self._freed.wait()
        self._held += weight
        return weight

    def give(self, weight: int, answered: object) -> None:
        """``answered`` is; what weighed so much is let go."""
        self._held -= weight
        self._freed.set()


async def _write_answers(
    answers: asyncio.Queue[asyncio.Task[dict[str, Any]] | None], write: Callable[[str], None]
) -> None:
    while (task := await answers.get()) is not None:
        line = json.dumps(await task, separators=(",", ":"))
        await asyncio.to_thread(write, f"{line}\n")  # who reads slowly must not hold up the limits of what runs


async def _lines(source: AsyncIterator[bytes]) -> AsyncIterator[bytes | None]:
    lines = LineSplitter()
    async for data in source:
        for line in lines.feed(data):
            yield line
    for line in lines.end():
        yield line


async def respond(settings: Settings, bench: ToolBench, line: bytes | None) -> dict[str, Any]:
    """The answer to one line. What is wrong with it is its ``reason``; an ``id`` it has is given back."""
    raw: dict[str, Any] = {}
    try:
        raw = _object(line)
        request = await asyncio.to_thread(_request, settings, raw) if "from" in raw else _request(settings, raw)
        record = await bench.answer(request)
    except (Agent0Error, ValueError) as error:
        record = _failed(raw, not_run(ToolState.ERROR, str(error)[:1000]))
    except Exception as error:  # the last resort of a server, as that of a command is in cli/__init__
        record = _failed(raw, not_run(ToolState.SANDBOX_ERROR, str(defect(error))))
    return {"id": raw["id"], **record} if "id" in raw else record


def _failed(raw: dict[str, Any], result: SandboxResult) -> dict[str, Any]:
    return call_record(raw["tool"] if isinstance(raw.get("tool"), str) else "", result)


def _object(line: bytes | None) -> dict[str, Any]:
    if line is None:
        raise ConfigError(f"The line is longer than {LONGEST} bytes.")
    try:
        raw = json.loads(line)
    except RecursionError:
        raise ConfigError("The line is nested too deeply.") from None
    except ValueError as error:
        raise ConfigError("The line is no JSON.", f"{error}.") from None
    if not isinstance(raw, dict):
        raise ConfigError("The line is no JSON object.", fix='Example: {"tool": "python", "code": "print(6 * 7)"}')
    return raw


def _request(settings: Settings, raw: dict[str, Any]) -> ToolRequest:
    _check(raw)
    files: dict[str, bytes] = {}
    if "from" in raw:
        files = workspaces.content(settings, workspaces.find(settings, raw["from"]))
    files |= {name: text.encode(errors="surrogateescape") for name, text in raw.get("files", {}).items()}
    named = {key: raw[key] for key in ("tool", "code", "args", "wall", "mem", "keep") if key in raw}
    return ToolRequest(**named, files=files)


def _check(raw: dict[str, Any]) -> None:
    for key, value in raw.items():
        kinds = _KEYS.get(key)
        if key != "id" and kinds is None:
            raise ConfigError(f"There is no key {key[:80]!r}.", f"Known: id, {', '.join(_KEYS)}.")
        if kinds and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
            raise ConfigError(
                f"{key} is of a wrong type.", f"It takes: {' or '.join(kind.__name__ for kind in kinds)}."
            )
    if "tool" not in raw or ("code" in raw) == ("args" in raw):
        raise ConfigError("A call names its tool, and has either code or args.")
    if not all(isinstance(text, str) for text in raw.get("files", {}).values()):
        raise ConfigError("files is of a wrong type.", "It takes names with their text.")
    if not all(0 < raw.get(key, 1) < 1e9 for key in ("wall", "mem")):
        raise ConfigError("wall and mem are numbers above 0.")
