"""The outside, as a port: a proxy process that starts at the first request, again where it ended, and ends with us.
What is switched off is refused here, before any process."""

import asyncio
import contextlib
import itertools
import json
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent0.events.values import ToolState
from agent0.ports.web import Hit, WebRequest, WebResponse
from agent0.settings import WebSettings

LARGEST_HEADER = 16 << 20
_lengths = struct.Struct("!IQ")

Frame = tuple[dict[str, Any], bytes]
ProxyAnswer = tuple[WebResponse, list[Hit]]


def pack(header: Mapping[str, object], body: bytes = b"") -> bytes:
    """Encode one frame as bytes: lengths, JSON header, body."""
    text = json.dumps(header).encode()
    return b"".join((_lengths.pack(len(text), len(body)), text, body))


async def read(stream: asyncio.StreamReader, largest: int) -> Frame:
    """The next frame, its body at most ``largest`` bytes long.

    Raises:
        EOFError: the other end closed, or said something that is no frame.
    """
    try:
        size, length = _lengths.unpack(await stream.readexactly(_lengths.size))
        if size > LARGEST_HEADER or length > largest:
            raise EOFError(f"a frame of {size} + {length} bytes")
        header = json.loads(await stream.readexactly(size))
        return header, await stream.readexactly(length)
    except (asyncio.IncompleteReadError, ValueError, ConnectionError) as error:
        raise EOFError(f"{type(error).__name__}: {error}") from error


AT_ONCE = 32
SLACK_S = 5.0
"""What the process may take beyond a request's own limit before it is ended."""
STOP_S = 5.0
LARGEST = 1 << 20
"""Characters of a request beside its body."""
SAFE = ("GET", "HEAD")
"""Methods that may be made again when nobody knows whether they were."""
ROOT = Path(__file__).parents[3]
FETCH_OFF = "http_request is switched off; a person switches it on with web.enabled = true"
SEARCH_OFF = "web_search is switched off; a person switches it on with web.search = searxng or brave"


class WebProxy:
    """The ``Web`` port. ``worker`` is the module that the process runs, with its arguments."""

    def __init__(self, settings: WebSettings, *, worker: Sequence[str] = ("agent0.infra.web.proxy_process",)) -> None:
        self._settings, self._worker = settings, worker
        self._room = asyncio.Semaphore(AT_ONCE)
        self._starting = asyncio.Lock()
        self._child: _Child | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process, None where none runs."""
        return self._child.process.pid if self._child and self._child.alive else None

    async def fetch(self, request: WebRequest) -> WebResponse:
        """Make one request. Where the process ends in the middle of a safe one, it is made once more."""
        if not self._settings.enabled:
            return WebResponse(ToolState.REFUSED, reason=FETCH_OFF)
        if len(request.body) > self._settings.max_bytes:
            reason = f"the body is longer than {self._settings.max_bytes} bytes"
            return WebResponse(ToolState.REFUSED, reason=reason)
        header = {"what": "fetch", "url": request.url, "method": request.method, "headers": dict(request.headers)}
        header |= {"hosts": list(request.hosts), "methods": list(request.methods)}
        start = time.monotonic()
        response, _ = await self._ask(header, request.body, again=request.method.upper() in SAFE)
        return replace(response, wall_s=time.monotonic() - start)

    async def search(self, query: str, limit: int) -> tuple[ToolState, str, list[Hit]]:
        """Ask the configured provider."""
        if not self._settings.search:
            return ToolState.REFUSED, SEARCH_OFF, []
        response, hits = await self._ask({"what": "search", "query": query, "limit": limit}, b"", again=True)
        return response.state, response.reason, hits

    async def close(self) -> None:
        """End the process; requests in flight get an error."""
        self._closed = True
        async with self._starting:
            if self._child:
                await self._child.close()

    async def _ask(self, header: Mapping[str, object], body: bytes, *, again: bool) -> ProxyAnswer:
        if len(str(header)) > LARGEST:
            reason = f"the request is longer than {LARGEST} characters"
            return WebResponse(ToolState.REFUSED, reason=reason), []
        async with self._room:
            for left in (1, 0) if again else (0,):
                try:
                    child = await self._running()
                    async with asyncio.timeout(self._settings.timeout_s + SLACK_S):
                        return await child.ask(header, body)
                except TimeoutError:
                    await child.close(0)
                    return WebResponse(ToolState.TIMEOUT, reason="the proxy process did not answer and was ended"), []
                except EOFError:
                    if not left or self._closed:
                        break
        return WebResponse(ToolState.ERROR, reason="the proxy process ended in the middle of the request"), []

    async def _running(self) -> "_Child":
        """The process, a new one where there is none.

        Raises:
            EOFError: closed, or it cannot be started.
        """
        async with self._starting:
            if self._child and not self._child.alive:
                await self._child.close()
            if self._closed:
                raise EOFError("closed")
            if self._child is None or not self._child.alive:
                try:
                    self._child = await _Child.start(self._worker, self._settings)
                except OSError as error:
                    raise EOFError("it cannot be started") from error
            return self._child


class _Child:
    """One process and what it still owes."""

    def __init__(self, process: asyncio.subprocess.Process, largest: int) -> None:
        self.process = process
        self._numbers = itertools.count()
        self._owed: dict[int, asyncio.Future[ProxyAnswer | None]] = {}
        self._listening = asyncio.create_task(self._listen(largest))

    @classmethod
    async def start(cls, worker: Sequence[str], settings: WebSettings) -> "_Child":
        """Its environment has nothing of ours; the key goes through the pipe."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-sPBm",
            *worker,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd="/",
            env={"PYTHONPATH": str(ROOT), "LANG": "C.UTF-8", "MALLOC_ARENA_MAX": "2"},
        )
        options = settings.model_dump(include={"timeout_s", "max_bytes", "redirects", "search", "search_url"})
        child = cls(process, settings.max_bytes)
        child._write({**options, "search_key": settings.search_key.get_secret_value()}, b"")
        return child

    @property
    def alive(self) -> bool:
        """Whether it still answers."""
        return not self._listening.done()

    async def ask(self, header: Mapping[str, object], body: bytes) -> ProxyAnswer:
        """Its answer.

        Raises:
            EOFError: it ended.
        """
        number = next(self._numbers)
        owed: asyncio.Future[ProxyAnswer | None] = asyncio.get_running_loop().create_future()
        self._owed[number] = owed
        try:
            if self.alive:
                self._write({**header, "number": number}, body)
            else:
                owed.set_result(None)
            answer = await owed
        except asyncio.CancelledError:
            self._write({"what": "cancel", "number": number}, b"")
            raise
        finally:
            del self._owed[number]
        if answer is None:
            raise EOFError("it ended")
        return answer

    async def close(self, patience_s: float = STOP_S) -> None:
        """End it, and take what it leaves."""
        if self.process.stdin:
            self.process.stdin.close()
        try:
            async with asyncio.timeout(patience_s):
                await self.process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()
        await asyncio.wait([self._listening])

    def _write(self, header: Mapping[str, object], body: bytes) -> None:
        """Into a buffer; how much can wait there is bounded by ``AT_ONCE``."""
        if self.process.stdin and not self.process.stdin.is_closing():
            self.process.stdin.write(pack(header, body))

    async def _listen(self, largest: int) -> None:
        assert self.process.stdout  # noqa: S101 - a pipe
        with contextlib.suppress(EOFError):
            while True:
                header, body = await read(self.process.stdout, largest)
                owed = self._owed.get(header["number"])
                if owed and not owed.done():
                    owed.set_result(_answer(header, body))
        for owed in self._owed.values():
            if not owed.done():
                owed.set_result(None)


def _answer(header: dict[str, Any], body: bytes) -> ProxyAnswer:
    names = ("status", "headers", "reason", "url")
    response = WebResponse(ToolState(header["state"]), body=body, **{name: header[name] for name in names})
    return response, [Hit(**hit) for hit in header["hits"]]
