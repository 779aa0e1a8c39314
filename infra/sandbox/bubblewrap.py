"""The sandbox that works: warm zygotes inside bubblewrap, a fresh world for every call, fail closed throughout."""

import asyncio
import contextlib

from agent0.errors import SandboxUnavailableError
from agent0.ports import SandboxCall, SandboxResult
from events.values import ToolState
from infra.sandbox import selftest
from infra.sandbox.execution import refusal, without_world
from infra.sandbox.inside.calling import WorldError
from infra.sandbox.zygote import BACKEND, TIER, Zygote

RECYCLE_CALLS = 1000
"""Worlds of one zygote share its address layout and hash seed: none serves longer than this."""
MAX_WAITING = 512
DRAIN_S = 60.0
CALLS_PER_ZYGOTE = 2


class _Lane:
    """A place for one zygote at a time: started on demand, checked before use, replaced on schedule or suspicion."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._current: Zygote | None = None
        self._successor: asyncio.Task[Zygote] | None = None
        self._retired: dict[asyncio.Task[None], Zygote] = {}
        self.busy = 0

    async def zygote(self) -> Zygote:
        """The current zygote; its successor is started beside it when it has served long enough.

        Raises:
            SandboxUnavailableError: a new one was due and did not start or missed a probe.
        """
        async with self._lock:
            current, successor = self._current, self._successor
            if current is None or current.dead:
                if current is not None:
                    self._retire(current)
                self._current = current = await self._start()
            elif successor is not None and successor.done():
                self._successor = None
                self._current = successor.result()
                self._retire(current)
                current = self._current
            elif successor is None and current.served >= RECYCLE_CALLS:
                self._successor = asyncio.create_task(self._start())
            return current

    async def _start(self) -> Zygote:
        zygote = await Zygote.start()
        try:
            selftest.require(await selftest.inspect(zygote))
        except BaseException:
            await zygote.close()
            raise
        return zygote

    def _retire(self, zygote: Zygote) -> None:
        """End it once its last call has ended."""
        task = asyncio.create_task(self._drain(zygote))
        self._retired[task] = zygote
        task.add_done_callback(self._retired.pop)

    async def _drain(self, zygote: Zygote) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(zygote.idle.wait(), DRAIN_S)
        await zygote.close()

    async def close(self) -> None:
        if self._successor is not None:
            self._successor.cancel()
            started = await asyncio.gather(self._successor, return_exceptions=True)
            await asyncio.gather(*(z.close() for z in started if isinstance(z, Zygote)))
        if self._current is not None:
            await self._current.close()
        for task, zygote in list(self._retired.items()):
            task.cancel()  # it may wait for the last call to end; this does not
            await asyncio.gather(task, zygote.close(), return_exceptions=True)


class Bubblewrap:
    """The ``Sandbox`` port on ``workers`` zygotes. Make one with ``open_sandbox``, which also tests it."""

    def __init__(self, workers: int = 1, label: str = "student") -> None:
        self.label = label
        self._lanes = [_Lane() for _ in range(max(1, workers))]
        self._room = asyncio.Semaphore(CALLS_PER_ZYGOTE * len(self._lanes))
        self._waiting = 0
        self._closed = False

    async def start(self) -> None:
        """Start every zygote and pass the whole self-test.

        Raises:
            SandboxUnavailableError: it did not.
        """
        started = await asyncio.gather(*(lane.zygote() for lane in self._lanes), return_exceptions=True)
        zygotes = [one for one in started if isinstance(one, Zygote)]
        for trouble in (one for one in started if isinstance(one, BaseException)):
            raise trouble
        selftest.require(await selftest.limits(zygotes[0]))

    async def call(self, call: SandboxCall) -> SandboxResult:
        """See ``agent0.ports.Sandbox``. More than MAX_WAITING calls in line: state ``busy`` at once."""
        if reason := refusal(call):
            return without_world(ToolState.REFUSED, reason, BACKEND, TIER)
        if self._waiting >= MAX_WAITING:
            return without_world(ToolState.BUSY, f"{self._waiting} calls are waiting already", BACKEND, TIER)
        self._waiting += 1
        try:
            await self._room.acquire()
        finally:
            self._waiting -= 1
        try:
            return await self._in_lane(call)
        finally:
            self._room.release()

    async def _in_lane(self, call: SandboxCall) -> SandboxResult:
        """Once more, equally isolated, where the zygote died under the call: another call may have been the cause."""
        error = ""
        for _ in range(2):
            if self._closed:
                raise SandboxUnavailableError(f"The sandbox ({self.label})", "it was closed.")
            lane = min(self._lanes, key=lambda lane: lane.busy)
            lane.busy += 1
            try:
                zygote = await lane.zygote()
                try:
                    result = await zygote.execute(call)
                except WorldError as trouble:
                    zygote.kill()
                    error = str(trouble)
                    continue
                if lane.busy == 1:
                    zygote.prepare()
                return result
            finally:
                lane.busy -= 1
        return without_world(ToolState.SANDBOX_ERROR, error, BACKEND, TIER)

    async def close(self) -> None:
        """End every process."""
        self._closed = True
        await asyncio.gather(*(lane.close() for lane in self._lanes))


class Refusing:
    """A sandbox that refuses every call, with the reason and what to do about it."""

    def __init__(self, reason: str, fix: str = "") -> None:
        self.reason, self.fix = reason, fix

    async def call(self, call: SandboxCall) -> SandboxResult:
        """Always raises SandboxUnavailableError."""
        raise SandboxUnavailableError("The sandbox", self.reason, self.fix)

    async def close(self) -> None:
        """Nothing to end."""
