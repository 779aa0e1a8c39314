"""The main sandbox: warm fork servers inside bubblewrap and a fresh sandbox process per call. It fails closed."""

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass

from agent0.errors import SandboxUnavailableError
from agent0.events.values import ToolState
from agent0.infra.sandbox import selftest
from agent0.infra.sandbox.backends.fork_server import BACKEND, ForkServer
from agent0.infra.sandbox.execution import not_run, refusal
from agent0.infra.sandbox.inside.calling import SandboxProcessError
from agent0.infra.sandbox.pool_slot import PoolSlot, Tally
from agent0.infra.sandbox.roots import EVERYTHING, RootError
from agent0.ports.sandbox import Root, SandboxCall, SandboxResult
from agent0.settings import SandboxSettings

DEFAULTS = SandboxSettings()
TRIES = 3
"""At a call whose sandbox process ends without a report."""
VISITORS = 4
"""Fork servers of other roots than the own one. One more takes the place of the one that was used least recently."""
VISIT_S = 120.0
"""How long a fork server of another root stays without a call."""
BEAT_S = 15.0
PROBE_S = 300.0
"""How often an idle fork server is put to its self-test again."""


@dataclass(frozen=True)
class ForkServerStats:
    """One fork server: its root, calls served and in flight, age in seconds, pid."""

    root: Root
    served: int
    in_flight: int
    age_s: float
    pid: int


@dataclass(frozen=True)
class SandboxStats:
    """The state of a sandbox now. ``waiting`` calls have no fork server yet; ``busy`` were turned away; ``recycled``
    counts replaced fork servers by reason (calls, age, crashes, probe, error), ``deaths`` those that died by
    themselves; ``processes`` is the largest number of processes that wait here while no call runs."""

    label: str
    servers: tuple[ForkServerStats, ...]
    waiting: int
    busy: int
    recycled: dict[str, int]
    deaths: int
    processes: int


@dataclass(frozen=True)
class _Ticket:
    """A call in line: since when, and the slot it will get."""

    since: float
    slot: asyncio.Future[PoolSlot]


class Bubblewrap:
    """The ``Sandbox`` port on warm fork servers. Make one with ``open_sandbox``, which also tests it. ``workers``
    fork servers of ``root`` are kept; calls with another root get a fork server when they come."""

    def __init__(self, settings: SandboxSettings = DEFAULTS, label: str = "student", root: Root = EVERYTHING) -> None:
        self.label, self.root, self._settings = label, root, settings
        self._tally = Tally()
        self._slots: list[PoolSlot] = []
        self._waiting: dict[Root, deque[_Ticket]] = {}
        self._refused_busy = 0
        self._ending: set[asyncio.Task[None]] = set()
        self._keeper: asyncio.Task[None] | None = None
        self._closed = False

    async def start(self) -> None:
        """Start every fork server and pass the whole self-test.

        Raises:
            SandboxUnavailableError: it did not.
        """
        self._slots = [PoolSlot(self.root, self._settings, self._tally) for _ in range(self._settings.workers)]
        started = await asyncio.gather(*(slot.server() for slot in self._slots), return_exceptions=True)
        servers = [server for server in started if isinstance(server, ForkServer)]
        for trouble in (outcome for outcome in started if isinstance(outcome, BaseException)):
            if isinstance(trouble, RootError):
                raise SandboxUnavailableError("The sandbox", str(trouble)) from trouble
            raise trouble
        selftest.require(await selftest.limits(servers[0], self.root))
        self._keeper = asyncio.create_task(self._keep())

    async def call(self, call: SandboxCall) -> SandboxResult:
        """See ``agent0.ports.sandbox.Sandbox``. More than ``queue`` calls in line: state ``busy`` at once."""
        if reason := refusal(call):
            return self._not_run(call, ToolState.REFUSED, reason)
        if self._closed:
            raise SandboxUnavailableError(f"The sandbox ({self.label})", "it was closed.")
        slot = await self._lease(call.root)
        if slot is None:
            self._refused_busy += 1
            reason = f"{self._settings.queue} calls are waiting already (sandbox.queue); try again later"
            return self._not_run(call, ToolState.BUSY, reason)
        try:
            return await self._in_slot(slot, call)
        except RootError as error:
            slot.closing = True
            return self._not_run(call, ToolState.REFUSED, str(error))
        finally:
            self._release(slot)

    async def _in_slot(self, slot: PoolSlot, call: SandboxCall) -> SandboxResult:
        """Again, on another fork server and equally isolated, where a sandbox process ended without a report: others
        may be why, and on a busy machine twice (docs/tried.md, "memory limits of the sandbox")."""
        error = ""
        for _ in range(TRIES):
            if self._closed:
                raise SandboxUnavailableError(f"The sandbox ({self.label})", "it was closed.")
            server = await slot.server()
            try:
                result = await server.execute(call)
            except SandboxProcessError as trouble:
                slot.suspect(server, "error")
                error = str(trouble)
                continue
            slot.note(result)
            if not self._waiting.get(call.root):
                server.prepare()
            return result
        return self._not_run(call, ToolState.SANDBOX_ERROR, error)

    def _not_run(self, call: SandboxCall, state: ToolState, reason: str) -> SandboxResult:
        """With the tier of the fork servers that would have served it: those of its root, where there were any, or the
        own ones."""
        tiers = {slot.root: slot.tier for slot in self._slots if slot.tier}
        return not_run(state, reason, BACKEND, tiers.get(call.root) or tiers.get(self.root, ""))

    async def _lease(self, root: Root) -> PoolSlot | None:
        """A pool slot with room for one more call of ``root``, waiting for one; None where the queue is full."""
        if not self._waiting.get(root) and (slot := self._slot_for(root)):
            return slot
        if sum(map(len, self._waiting.values())) >= self._settings.queue:
            return None
        loop = asyncio.get_running_loop()
        ticket = _Ticket(loop.time(), loop.create_future())
        line = self._waiting.setdefault(root, deque())
        line.append(ticket)
        try:
            return await ticket.slot
        except asyncio.CancelledError:
            if ticket.slot.cancelled():
                with contextlib.suppress(ValueError):
                    line.remove(ticket)
            else:
                self._release(ticket.slot.result())  # it was given one in the same moment
            raise

    def _slot_for(self, root: Root) -> PoolSlot | None:
        """Room on a pool slot of ``root``, a new one where its others are full and there may be one more."""
        slots = [slot for slot in self._slots if slot.root == root and not slot.closing]
        slot = min(
            (candidate for candidate in slots if candidate.busy < self._settings.calls),
            key=lambda candidate: candidate.busy,
            default=None,
        )
        if slot is None and root != self.root and len(slots) < self._settings.workers and self._make_room(slots):
            slot = PoolSlot(root, self._settings, self._tally)
            self._slots.append(slot)
        if slot is not None:
            slot.busy += 1
            slot.used = asyncio.get_running_loop().time()
        return slot

    def _make_room(self, slots: list[PoolSlot]) -> bool:
        """Whether one more fork server of another root may start. A root without any gets the place of the one that was
        used least recently, as soon as its calls have ended."""
        visitors = [slot for slot in self._slots if slot.root != self.root]
        if len(visitors) < VISITORS:
            return True
        if slots or any(slot.closing for slot in visitors):
            return False
        oldest = min(visitors, key=lambda slot: (slot.busy > 0, slot.used))
        oldest.closing = True
        self._end_if_idle(oldest)
        return oldest not in self._slots

    def _release(self, slot: PoolSlot) -> None:
        slot.busy -= 1
        self._end_if_idle(slot)
        self._waiting = {root: line for root, line in self._waiting.items() if line}
        for root in sorted(self._waiting, key=lambda root: self._waiting[root][0].since):
            self._serve_line(root)

    def _serve_line(self, root: Root) -> None:
        line = self._waiting[root]
        while line:
            if line[0].slot.done():
                line.popleft()
            elif slot := self._slot_for(root):
                line.popleft().slot.set_result(slot)
            else:
                return

    def _end_if_idle(self, slot: PoolSlot) -> None:
        if slot.closing and not slot.busy and slot in self._slots:
            self._slots.remove(slot)
            task = asyncio.create_task(slot.close())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            await self.tend()

    async def tend(self) -> None:
        """End idle fork servers of other roots and run the self-test on idle ones again."""
        time_s = asyncio.get_running_loop().time()
        for slot in [idle for idle in self._slots if not idle.busy]:
            if slot.root != self.root and time_s - slot.used >= VISIT_S:
                slot.closing = True
                self._end_if_idle(slot)
            elif time_s - slot.tested >= PROBE_S:
                slot.busy += 1
                try:
                    await slot.probe()
                finally:
                    self._release(slot)

    def stats(self) -> SandboxStats:
        """Return the counts of this sandbox as they are now."""
        time_s = asyncio.get_running_loop().time()
        alive = [(slot.root, slot.current) for slot in self._slots if slot.current is not None]
        each = (
            2 + 3 * self._settings.calls
        )  # bubblewrap, fork server; spawner, pid 1 and payload of a sandbox process that waits
        return SandboxStats(
            label=self.label,
            servers=tuple(ForkServerStats(root, z.served, z.in_flight, time_s - z.born, z.pid) for root, z in alive),
            waiting=sum(map(len, self._waiting.values())),
            busy=self._refused_busy,
            recycled=dict(self._tally.recycled),
            deaths=self._tally.deaths,
            processes=each * len(self._slots),
        )

    async def close(self) -> None:
        """End every process of this sandbox."""
        self._closed = True
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        await asyncio.gather(*self._ending, *(slot.close() for slot in self._slots))


class Refusing:
    """A sandbox that refuses every call, with the reason and what to do about it."""

    def __init__(self, reason: str, fix: str = "") -> None:
        self.reason, self.fix = reason, fix

    async def call(self, call: SandboxCall) -> SandboxResult:
        """Always raises SandboxUnavailableError."""
        raise SandboxUnavailableError("The sandbox", self.reason, self.fix)

    async def close(self) -> None:
        """Nothing to end."""
