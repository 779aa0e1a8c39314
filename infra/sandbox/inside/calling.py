"""Run one call in one sandbox process from the outside: send code and files, read both outputs under a cap, check
the report. Standard library only: the same code serves on the host and in the broker of a container."""

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from . import frames

OUTPUT_CAP = 256 * 1024
FLOOD = 64 * OUTPUT_CAP
SLACK_S = 3.0
"""What a sandbox process may take beyond limit and grace (staging, harvest, a loaded machine) before it is ended from
outside."""
GRACE_S = 0.2
GREETING_S = 13.0
MAX_REPORT = 120 << 20
UNMEASURED = "ended from outside: it did not stop at its limit, and only its time was measured"


class SandboxProcessError(Exception):
    """No sandbox process could be made, or it ended without a report. Nothing can be said about the code."""


@dataclass
class SandboxProcess:
    """One confined process that waits for code: its pidfd, its private socket, its two output pipes. ``tier`` is how
    its memory will be bounded."""

    pidfd: int
    sock: socket.socket
    stdout: int
    stderr: int
    tier: str = "watchdog"
    gone: bool = field(default=False, init=False)

    def stop(self) -> None:
        """Have its pid 1 end everything else, and report as ever."""
        with contextlib.suppress(OSError):
            self.sock.send(b"\0")

    def kill(self) -> None:
        """Kill its pid 1, hence everything in it."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def release(self) -> None:
        """Kill what is left and close every descriptor."""
        if not self.gone:
            self.gone = True
            self.kill()
            self.sock.close()
            for fd in (self.pidfd, self.stdout, self.stderr):
                os.close(fd)


@dataclass(frozen=True)
class Request:
    """What a sandbox process is sent to run: code, files and limits; ``guest`` is the code of a second process."""

    kind: str
    code: bytes
    files: Mapping[str, bytes]
    wall_s: float
    mem_mib: int
    guest: bytes = b""


@dataclass
class Ended:
    """How a call ended. ``ended`` names the limit that ended it (timeout, memory, output_flood), empty for none;
    ``output_bytes`` counts the bytes of both outputs before they were cut; ``note`` is what else there is to say."""

    ended: str = ""
    rc: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    output_bytes: tuple[int, int] = (0, 0)
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_kib: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    lost: int = 0
    """Files that are not given back: too many, too large, by their names or rights, or no regular ones."""
    note: str = ""
    tier: str = ""
    """How its memory was bounded; empty where it did not say."""


class _Output:
    """One output pipe: keeps the first OUTPUT_CAP bytes, drains the rest, and complains at FLOOD."""

    def __init__(self, fd: int, on_flood: Callable[[], None]) -> None:
        self._fd, self._on_flood, self._loop = fd, on_flood, asyncio.get_running_loop()
        self.kept = bytearray()
        self.seen = 0
        self.ended: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            self.close()
            return
        self.seen += len(data)
        self.kept += data[: max(0, OUTPUT_CAP - len(self.kept))]
        if self.seen > FLOOD:
            self._on_flood()
            self.close()

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        if not self.ended.done():
            self.ended.set_result(None)


async def run(child: SandboxProcess, request: Request) -> Ended:
    """Run ``request`` in ``sandbox process``, which serves this one call.

    Raises:
        WorldError: it ended without a report.
    """
    loop = asyncio.get_running_loop()
    flooded: list[asyncio.TimerHandle] = []

    def flood() -> None:
        child.stop()
        flooded.append(loop.call_later(SLACK_S, child.kill))

    start = loop.time()
    out, err = (_Output(fd, flood) for fd in (child.stdout, child.stderr))
    ended: Ended | None = None
    try:
        ended = await _converse(child, request)
        await asyncio.wait_for(asyncio.gather(out.ended, err.ended), SLACK_S)
    except TimeoutError:
        child.kill()
    except (EOFError, ConnectionError, ValueError, KeyError, TypeError) as error:
        if not flooded:
            raise SandboxProcessError(f"the sandbox process ended without a report: {error!r}") from error
    finally:
        out.close()
        err.close()
        for timer in flooded:
            timer.cancel()
    if ended is None:
        ended = Ended("timeout", wall_s=loop.time() - start, note=UNMEASURED)
    ended.stdout, ended.stderr, ended.output_bytes = bytes(out.kept), bytes(err.kept), (out.seen, err.seen)
    ended.ended = "output_flood" if flooded else ended.ended
    return ended


async def _converse(child: SandboxProcess, request: Request) -> Ended:
    reader, writer = await asyncio.open_unix_connection(sock=child.sock, limit=1 << 20)
    try:
        async with asyncio.timeout(GREETING_S):
            hello, _ = await receive(reader)
        if not hello.get("ready"):
            raise ValueError(hello.get("error", "no greeting"))
        header = {"kind": request.kind, "wall_s": request.wall_s, "mem_mib": request.mem_mib}
        writer.write(frames.pack(header, [request.guest]))
        writer.write(frames.pack({"files": list(request.files)}, [request.code, *request.files.values()]))
        async with asyncio.timeout(request.wall_s + GRACE_S + SLACK_S):
            await writer.drain()
            header, blobs = await receive(reader)
        if "refused" in header:
            return Ended("refused", note=str(header["refused"]))
        ended = reported(header, blobs)
        ended.rc = None if ended.ended and (ended.rc or 0) < 0 else ended.rc
        return ended
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def reported(header: dict[str, Any], contents: list[bytes]) -> Ended:
    """What a report says of how a call ended, taken with doubt; ``contents`` are those of its files.

    Raises:
        KeyError, ValueError, TypeError: it is malformed.
    """
    return Ended(
        ended=str(header["ended"]),
        rc=None if header["rc"] is None else int(header["rc"]),
        wall_s=float(header["wall_s"]),
        cpu_s=float(header["cpu_s"]),
        peak_kib=int(header["peak_kib"]),
        files=dict(zip(map(str, header["files"]), contents, strict=True)),
        lost=int(header["lost"]),
        tier=str(header["tier"]),
    )


async def receive(reader: asyncio.StreamReader) -> tuple[dict[str, Any], list[bytes]]:
    """One message.

    Raises:
        EOFError: the other end closed.
        ValueError, KeyError, TypeError: it is malformed, or larger than any honest one.
    """
    header = json.loads(await reader.readexactly(frames.length(await reader.readexactly(4))))
    if not isinstance(header, dict):
        raise TypeError("a malformed message")
    sizes = header["sizes"]
    if not all(isinstance(size, int) and size >= 0 for size in sizes) or sum(sizes) > MAX_REPORT:
        raise ValueError("a malformed message")
    return header, [await reader.readexactly(size) for size in sizes]


class ForkAnswer(TypedDict, total=False):
    """What a fork server or a spawner answers: the pid of what it made, why it made none, or what it could import."""

    pid: int
    error: str
    ready: bool
    missed: dict[str, str]


async def fork_answer(control: socket.socket, timeout: float) -> tuple[ForkAnswer, list[int]]:
    """Receive one answer of a fork server and the file descriptors that came with it.

    Raises:
        SandboxProcessError: whoever should answer is gone.
        TimeoutError: it took longer than ``timeout`` seconds.
    """
    async with asyncio.timeout(timeout):
        await readable(control.fileno())
    try:
        data, fds, _, _ = socket.recv_fds(control, 4096, 4)
    except OSError as error:
        raise SandboxProcessError(f"the fork server is gone: {error}") from error
    if not data:
        raise SandboxProcessError("the fork server is gone")
    for fd in fds:
        os.set_inheritable(fd, False)
    answer: ForkAnswer = json.loads(data)
    return answer, list(fds)


async def readable(fd: int) -> None:
    """Wait until the file descriptor ``fd`` can be read without blocking."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(fd)
