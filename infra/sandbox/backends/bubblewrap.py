"""The sandbox that works: warm zygotes inside bubblewrap, a fresh world for every call, fail closed throughout."""

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass

from agent0.errors import SandboxUnavailableError
from agent0.ports.sandbox import Root, SandboxCall, SandboxResult
from agent0.settings import SandboxSettings
from events.values import ToolState
from infra.sandbox import selftest
from infra.sandbox.backends.zygote import BACKEND, Zygote
from infra.sandbox.execution import refusal, without_world
from infra.sandbox.inside.calling import WorldError
from infra.sandbox.pool_slot import Lane, Tally
from infra.sandbox.roots import EVERYTHING, RootError

DEFAULTS = SandboxSettings()
VISITORS = 4
"""Zygotes of other roots than the own one. One more takes the place of the one that was used least recently."""
VISIT_S = 120.0
"""How long a zygote of another root stays without a call."""
BEAT_S = 15.0
PROBE_S = 300.0
"""How often an idle zygote is put to its self-test again."""


@dataclass(frozen=True)
class ZygoteStats:
    """One zygote: what it may touch, calls served and in flight, age in seconds, its process."""

    root: Root
    served: int
    in_flight: int
    age_s: float
    pid: int


@dataclass(frozen=True)
class SandboxStats:
    """A sandbox at this moment. ``waiting`` calls have no zygote yet; ``busy`` were turned away; ``recycled`` counts
    replaced zygotes by reason (calls, age, crashes, probe, error), ``deaths`` those of them that died by themselves;
    ``processes`` is the largest number of processes that wait here while no call runs."""

    label: str
    zygotes: tuple[ZygoteStats, ...]
    waiting: int
    busy: int
    recycled: dict[str, int]
    deaths: int
    processes: int


@dataclass(frozen=True)
class _Ticket:
    """A call in line: since when, and the lane it will get."""

    since: float
    lane: asyncio.Future[Lane]


class Bubblewrap:
    """The ``Sandbox`` port. Make one with ``open_sandbox``, which also tests it. ``root`` is its own: ``workers``
    zygotes of it are kept; calls with another root get zygotes when they come."""

    def __init__(self, settings: SandboxSettings = DEFAULTS, label: str = "student", root: Root = EVERYTHING) -> None:
        self.label, self.root, self._settings = label, root, settings
        self._tally = Tally()
        self._lanes: list[Lane] = []
        self._waiting: dict[Root, deque[_Ticket]] = {}
        self._refused_busy = 0
        self._ending: set[asyncio.Task[None]] = set()
        self._keeper: asyncio.Task[None] | None = None
        self._closed = False

    async def start(self) -> None:
        """Start every zygote and pass the whole self-test.

        Raises:
            SandboxUnavailableError: it did not.
        """
        self._lanes = [Lane(self.root, self._settings, self._tally) for _ in range(self._settings.workers)]
        started = await asyncio.gather(*(lane.zygote() for lane in self._lanes), return_exceptions=True)
        zygotes = [one for one in started if isinstance(one, Zygote)]
        for trouble in (one for one in started if isinstance(one, BaseException)):
            if isinstance(trouble, RootError):
                raise SandboxUnavailableError("The sandbox", str(trouble)) from trouble
            raise trouble
        selftest.require(await selftest.limits(zygotes[0], self.root))
        self._keeper = asyncio.create_task(self._keep())

    async def call(self, call: SandboxCall) -> SandboxResult:
        """See ``agent0.ports.sandbox.Sandbox``. More than ``queue`` calls in line: state ``busy`` at once."""
        if reason := refusal(call):
            return self._without_world(call, ToolState.REFUSED, reason)
        if self._closed:
            raise SandboxUnavailableError(f"The sandbox ({self.label})", "it was closed.")
        lane = await self._lease(call.root)
        if lane is None:
            self._refused_busy += 1
            reason = f"{self._settings.queue} calls are waiting already (sandbox.queue); try again later"
            return self._without_world(call, ToolState.BUSY, reason)
        try:
            return await self._in_lane(lane, call)
        except RootError as error:
            lane.closing = True
            return self._without_world(call, ToolState.REFUSED, str(error))
        finally:
            self._release(lane)

    async def _in_lane(self, lane: Lane, call: SandboxCall) -> SandboxResult:
        """Once more, on another zygote and equally isolated, where a world said nothing: others may be why."""
        error = ""
        for _ in range(2):
            if self._closed:
                raise SandboxUnavailableError(f"The sandbox ({self.label})", "it was closed.")
            zygote = await lane.zygote()
            try:
                result = await zygote.execute(call)
            except WorldError as trouble:
                lane.suspect(zygote, "error")
                error = str(trouble)
                continue
            lane.note(result)
            if not self._waiting.get(call.root):
                zygote.prepare()
            return result
        return self._without_world(call, ToolState.SANDBOX_ERROR, error)

    def _without_world(self, call: SandboxCall, state: ToolState, reason: str) -> SandboxResult:
        """With the tier of the zygotes that would have served it: those of its root, where there were any, or the
        own ones."""
        tiers = {lane.root: lane.tier for lane in self._lanes if lane.tier}
        return without_world(state, reason, BACKEND, tiers.get(call.root) or tiers.get(self.root, ""))

    async def _lease(self, root: Root) -> Lane | None:
        """A lane with room for one more call of ``root``, sooner or later; None where too many wait already."""
        if not self._waiting.get(root) and (lane := self._place(root)):
            return lane
        if sum(map(len, self._waiting.values())) >= self._settings.queue:
            return None
        loop = asyncio.get_running_loop()
        ticket = _Ticket(loop.time(), loop.create_future())
        line = self._waiting.setdefault(root, deque())
        line.append(ticket)
        try:
            return await ticket.lane
        except asyncio.CancelledError:
            if ticket.lane.cancelled():
                with contextlib.suppress(ValueError):
                    line.remove(ticket)
            else:
                self._release(ticket.lane.result())  # it was given one in the same moment
            raise

    def _place(self, root: Root) -> Lane | None:
        """Room on a lane of ``root``, a new one where its others are full and there may be one more."""
        lanes = [lane for lane in self._lanes if lane.root == root and not lane.closing]
        lane = min((one for one in lanes if one.busy < self._settings.calls), key=lambda one: one.busy, default=None)
        if lane is None and root != self.root and len(lanes) < self._settings.workers and self._make_room(lanes):
            lane = Lane(root, self._settings, self._tally)
            self._lanes.append(lane)
        if lane is not None:
            lane.busy += 1
            lane.used = asyncio.get_running_loop().time()
        return lane

    def _make_room(self, lanes: list[Lane]) -> bool:
        """Whether one more zygote of another root may start. A root without any gets the place of the one that was
        used least recently, as soon as its calls have ended."""
        visitors = [lane for lane in self._lanes if lane.root != self.root]
        if len(visitors) < VISITORS:
            return True
        if lanes or any(lane.closing for lane in visitors):
            return False
        oldest = min(visitors, key=lambda lane: (lane.busy > 0, lane.used))
        oldest.closing = True
        self._end_if_idle(oldest)
        return oldest not in self._lanes

    def _release(self, lane: Lane) -> None:
        lane.busy -= 1
        self._end_if_idle(lane)
        self._waiting = {root: line for root, line in self._waiting.items() if line}
        for root in sorted(self._waiting, key=lambda root: self._waiting[root][0].since):
            self._serve_line(root)

    def _serve_line(self, root: Root) -> None:
        line = self._waiting[root]
        while line:
            if line[0].lane.done():
                line.popleft()
            elif lane := self._place(root):
                line.popleft().lane.set_result(lane)
            else:
                return

    def _end_if_idle(self, lane: Lane) -> None:
        if lane.closing and not lane.busy and lane in self._lanes:
            self._lanes.remove(lane)
            task = asyncio.create_task(lane.close())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            await self.tend()

    async def tend(self) -> None:
        """One look after the zygotes: those of other roots that nobody uses are ended, idle ones are tested again."""
        now = asyncio.get_running_loop().time()
        for lane in [one for one in self._lanes if not one.busy]:
            if lane.root != self.root and now - lane.used >= VISIT_S:
                lane.closing = True
                self._end_if_idle(lane)
            elif now - lane.tested >= PROBE_S:
                lane.busy += 1
                try:
                    await lane.probe()
                finally:
                    self._release(lane)

    def stats(self) -> SandboxStats:
        """How it stands now."""
        now = asyncio.get_running_loop().time()
        alive = [(lane.root, lane.current) for lane in self._lanes if lane.current is not None]
        each = 2 + 3 * self._settings.calls  # bubblewrap, zygote; nursery, pid 1 and payload of a world that waits
        return SandboxStats(
            label=self.label,
            zygotes=tuple(ZygoteStats(root, z.served, z.in_flight, now - z.born, z.pid) for root, z in alive),
            waiting=sum(map(len, self._waiting.values())),
            busy=self._refused_busy,
            recycled=dict(self._tally.recycled),
            deaths=self._tally.deaths,
            processes=each * len(self._lanes),
        )

    async def close(self) -> None:
        """End every process."""
        self._closed = True
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        await asyncio.gather(*self._ending, *(lane.close() for lane in self._lanes))


class Refusing:
    """A sandbox that refuses every call, with the reason and what to do about it."""

    def __init__(self, reason: str, fix: str = "") -> None:
        self.reason, self.fix = reason, fix

    async def call(self, call: SandboxCall) -> SandboxResult:
        """Always raises SandboxUnavailableError."""
        raise SandboxUnavailableError("The sandbox", self.reason, self.fix)

    async def close(self) -> None:
        """Nothing to end."""
