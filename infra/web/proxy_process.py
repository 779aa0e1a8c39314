"""The proxy process: the one place that talks to untrusted servers. It reads its settings as a first frame, answers
requests as they come, and ends with its parent."""

import asyncio
import contextlib
import ctypes
import os
import resource
import signal
import sys
from dataclasses import asdict
from typing import NoReturn

from agent0.events.values import ToolState
from agent0.infra.web import proxy as frames
from agent0.infra.web.fetch import Guard, Limits, fetch
from agent0.infra.web.search import MOST_HITS, Engine
from agent0.ports.web import Hit, WebRequest, WebResponse

_PDEATHSIG, _NO_NEW_PRIVS = 1, 38
_MEMORY = 1 << 30
OPEN_FILES = 256


def main(guard: Guard | None = None) -> NoReturn:
    """Serve standard input. ``guard`` is for a parent that brings its own names and addresses."""
    _confine()
    asyncio.run(_serve(guard or Guard()))
    os._exit(1)


def _confine() -> None:
    """Ends with its parent, writes no file, gains no right."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGHUP):  # Ctrl-C and a closed terminal are the parent's to handle
        signal.signal(number, signal.SIG_IGN)
    for kind, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, OPEN_FILES)):
        resource.setrlimit(kind, (most, most))


async def _serve(guard: Guard) -> None:
    reader, writer = await _pipes()
    with contextlib.suppress(EOFError):
        options, _ = await frames.read(reader, 0)
        limits = Limits(options["timeout_s"], options["max_bytes"], options["redirects"])
        engine = Engine(options["search"], options["search_url"], options["search_key"])
        desk = _Desk(limits, engine, guard, writer)
        most = _MEMORY + 8 * limits.max_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        while True:
            desk.take(await frames.read(reader, limits.max_bytes))
    os._exit(0)  # nobody is there for an answer; a thread may still wait for a name server


async def _pipes() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), sys.stdout.buffer
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


class _Desk:
    """What is asked and what is answered."""

    def __init__(self, limits: Limits, engine: Engine, guard: Guard, writer: asyncio.StreamWriter) -> None:
        self._limits, self._engine, self._guard, self._writer = limits, engine, guard, writer
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def take(self, frame: frames.Frame) -> None:
        """Begin what was asked, or give up what is no longer wanted."""
        header, _ = frame
        number = int(header["number"])
        if header["what"] == "cancel":
            if task := self._tasks.get(number):
                task.cancel()
            return
        self._tasks[number] = asyncio.create_task(self._answer(number, frame))
        self._tasks[number].add_done_callback(lambda _: self._tasks.pop(number, None))

    async def _answer(self, number: int, frame: frames.Frame) -> None:
        try:
            answer, hits = await self._perform(frame)
        except Exception as error:  # one request must not end the others
            reason = f"the proxy could not make it ({type(error).__name__})"
            answer, hits = WebResponse(ToolState.ERROR, reason=reason), []
        header: dict[str, object] = {"number": number, "hits": [asdict(hit) for hit in hits], "state": answer.state}
        header |= {"status": answer.status, "headers": answer.headers, "reason": answer.reason, "url": answer.url}
        self._writer.write(frames.pack(header, answer.body))
        await self._writer.drain()

    async def _perform(self, frame: frames.Frame) -> tuple[WebResponse, list[Hit]]:
        header, body = frame
        if header["what"] == "search":
            limit = min(max(int(header["limit"]), 1), MOST_HITS)
            return await self._engine.search(header["query"], limit, self._limits, self._guard)
        call_fields = {name: header[name] for name in ("url", "method", "headers")}
        request = WebRequest(**call_fields, body=body, hosts=tuple(header["hosts"]), methods=tuple(header["methods"]))
        return await fetch(request, self._limits, self._guard), []


if __name__ == "__main__":
    main()
