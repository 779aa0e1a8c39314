"""One call in one world: send code and files, read both outputs under a cap, take the report with doubt."""

import asyncio
import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent0.ports import SandboxCall, SandboxResult
from events.values import ToolState
from infra.sandbox.inside import frames
from infra.sandbox.zygote import World, Zygote, ZygoteError

BACKEND, TIER = "zygote-bwrap", "watchdog"
OUTPUT_CAP = 256 * 1024
FLOOD = 64 * OUTPUT_CAP
SLACK_S = 3.0
"""What the world may take beyond limit and grace (staging, harvest, a loaded machine) before the host ends it."""
MAX_FILES, MAX_FILE_BYTES, MAX_CODE, MAX_SHELL_CODE = 1500, 60 << 20, 1 << 20, 100 << 10
_ENDED = {"timeout": ToolState.TIMEOUT, "memory": ToolState.MEMORY}


@dataclass
class _Report:
    """What a world said at its end."""

    header: dict[str, Any]
    files: dict[str, bytes]


class _Output:
    """One output pipe: keeps the first OUTPUT_CAP bytes, drains the rest, and complains at FLOOD."""

    def __init__(self, fd: int, on_flood: Callable[[], None]) -> None:
        self._fd, self._on_flood, self._loop = fd, on_flood, asyncio.get_running_loop()
        self._kept = bytearray()
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
        self._kept += data[: max(0, OUTPUT_CAP - len(self._kept))]
        if self.seen > FLOOD:
            self._on_flood()
            self.close()

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        if not self.ended.done():
            self.ended.set_result(None)

    @property
    def text(self) -> str:
        return self._kept.decode(errors="backslashreplace")


def refusal(call: SandboxCall) -> str:
    """Why ``call`` cannot be run as it is, empty where it can."""
    limit = MAX_CODE if call.kind == "python" else MAX_SHELL_CODE
    if len(call.code.encode(errors="replace")) > limit:
        return f"the code is longer than {limit} bytes"
    if "\0" in call.code:
        return "the code contains a NUL character"
    if len(call.files) > MAX_FILES or sum(map(len, call.files.values())) > MAX_FILE_BYTES:
        return f"more than {MAX_FILES} files or {MAX_FILE_BYTES >> 20} MiB"
    bad = [name for name in call.files if not _is_inside(name)]
    return f"{bad[0]!r} is no relative path inside the work folder" if bad else ""


def _is_inside(name: str) -> bool:
    return "\0" not in name and len(name) < 1000 and all(p not in ("", ".", "..") for p in name.split("/"))


async def execute(zygote: Zygote, call: SandboxCall) -> SandboxResult:
    """Run ``call`` in a fresh world of ``zygote``.

    Raises:
        ZygoteError: no world, or one that ended without a word. Nothing can be said about the code.
    """
    async with zygote.world() as world:
        return await _run(world, call)


async def _run(world: World, call: SandboxCall) -> SandboxResult:
    flooded: list[bool] = []

    def flood() -> None:
        flooded.append(True)
        world.kill()

    outputs = [_Output(fd, flood) for fd in (world.stdout, world.stderr)]
    try:
        report = await _converse(world, call)
        await asyncio.wait_for(asyncio.gather(*(o.ended for o in outputs)), SLACK_S)
    except TimeoutError:
        world.kill()
        return _cut(ToolState.TIMEOUT, outputs, call.wall_s, "the host ended it: it did not stop at its limit")
    except (EOFError, ConnectionError, ValueError, KeyError) as error:
        if flooded:
            return _cut(ToolState.OUTPUT_FLOOD, outputs, 0.0, f"more than {FLOOD >> 20} MiB of output")
        raise ZygoteError(f"the world ended without a report: {error!r}") from error
    finally:
        for output in outputs:
            output.close()
    return _result(report, outputs, bool(flooded))


async def _converse(world: World, call: SandboxCall) -> _Report:
    reader, writer = await asyncio.open_unix_connection(sock=world.sock, limit=1 << 20)
    try:
        async with asyncio.timeout(SLACK_S + 10):
            hello, _ = await _read(reader)
        if not hello.get("ready"):
            raise ValueError(hello.get("error", "no greeting"))
        header = {"kind": call.kind, "wall_s": call.wall_s, "mem_mib": call.mem_mib, "files": list(call.files)}
        writer.write(frames.pack(header, [call.code.encode(errors="replace"), *call.files.values()]))
        async with asyncio.timeout(call.wall_s + 0.2 + SLACK_S):
            await writer.drain()
            answer, blobs = await _read(reader)
        return _Report(answer, dict(zip(answer["files"], blobs, strict=True)))
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _read(reader: asyncio.StreamReader) -> tuple[dict[str, Any], list[bytes]]:
    header = json.loads(await reader.readexactly(frames.length(await reader.readexactly(4))))
    sizes = header["sizes"]
    if not isinstance(header, dict) or sum(sizes) > MAX_FILE_BYTES * 2:
        raise ValueError("a malformed report")
    return header, [await reader.readexactly(size) for size in sizes]


def _cut(state: ToolState, outputs: list[_Output], wall_s: float, reason: str) -> SandboxResult:
    out, err = (o.text for o in outputs)
    return SandboxResult(state, None, out, err, wall_s, 0.0, 0.0, TIER, BACKEND, reason=reason)


def _result(report: _Report, outputs: list[_Output], flooded: bool) -> SandboxResult:
    said, (out, err) = report.header, outputs
    rc = int(said["rc"])
    state = _ENDED.get(said["ended"], ToolState.OK if rc == 0 else ToolState.ERROR)
    reasons = [f"ended by the {said['ended']} limit"] if said["ended"] else []
    if flooded:
        state, reasons = ToolState.OUTPUT_FLOOD, [f"more than {FLOOD >> 20} MiB of output"]
    if max(out.seen, err.seen) > OUTPUT_CAP:
        reasons.append(f"output cut to {OUTPUT_CAP >> 10} KiB")
    return SandboxResult(
        state=state,
        rc=None if said["ended"] and rc < 0 else rc,
        stdout=out.text,
        stderr=err.text,
        wall_s=float(said["wall_s"]),
        cpu_s=float(said["cpu_s"]),
        peak_mem_mib=said["peak_kib"] / 1024,
        tier=TIER,
        backend=BACKEND,
        files=report.files,
        reason="; ".join(reasons),
    )
