"""A pool slot for one fork server at a time: started on demand, self-tested before use, replaced on schedule or
after a failure."""

import asyncio
import contextlib
from collections import Counter, deque
from dataclasses import dataclass, field

from agent0.errors import SandboxUnavailableError
from agent0.infra.sandbox import selftest
from agent0.infra.sandbox.backends.fork_server import ForkServer
from agent0.ports.sandbox import Root, SandboxResult
from agent0.settings import SandboxSettings

DRAIN_S = 60.0
"""How long a replaced fork server's last call may take beyond its turn."""
OLDEST_S, MOST_CALLS = 600.0, 1000
"""Age at which a fork server is replaced, and calls after which it is."""
CRASHES, CRASHES_S = 5, 60.0
"""Calls that end like this, within as many seconds: somebody may be guessing at the layout that all sandbox processes
share."""
_CRASHED = frozenset({-4, -7, -11, 128 + 4, 128 + 7, 128 + 11})
"""Exit codes of SIGILL, SIGBUS and SIGSEGV, from Python and from the shell."""


@dataclass
class Tally:
    """Counts of fork servers: those replaced, by reason, and those that died by themselves."""

    recycled: Counter[str] = field(default_factory=Counter)
    deaths: int = 0


class PoolSlot:
    """One pool slot: holds one fork server of ``root`` at a time. ``busy`` counts the calls on it, ``used`` is the
    loop time of the last one; ``tier`` is the memory bound of the fork server that started last, empty before the
    first."""

    def __init__(self, root: Root, settings: SandboxSettings, tally: Tally) -> None:
        self.root, self._settings, self._tally = root, settings, tally
        self._lock = asyncio.Lock()
        self._successor: asyncio.Task[ForkServer] | None = None
        self._retired: dict[asyncio.Task[None], ForkServer] = {}
        self._crashes: deque[float] = deque(maxlen=CRASHES)
        self._suspicion = ""
        self._over = False
        self.current: ForkServer | None = None
        self.tier = ""
        self.busy = 0
        self.used = self.tested = asyncio.get_running_loop().time()
        self.closing = False

    async def server(self) -> ForkServer:
        """Return the current fork server; start its successor beside it once it has served long enough.

        Raises:
            SandboxUnavailableError: a new one was due and did not start or missed a probe.
            RootError: this machine lacks something that the root names.
        """
        async with self._lock:
            if self._over:
                raise SandboxUnavailableError("The sandbox", "it was closed.")
            current, successor = self.current, self._successor
            if current is None or self._suspicion:
                return await self._replace(current)
            if successor is not None and successor.done():
                self._successor = None
                self.current = successor.result()
                self._retire(current)
                return self.current
            if successor is None and (why := self._due(current)):
                self._tally.recycled[why] += 1
                self._successor = asyncio.create_task(self._start())
            return current

    async def _replace(self, current: ForkServer | None) -> ForkServer:
        """One that is gone, or not to be trusted, serves nobody while another starts."""
        if current is not None:
            self._tally.recycled[self._suspicion] += 1
            self.current = None
            self._retire(current)
        self._suspicion = ""
        self._crashes.clear()
        successor, self._successor = self._successor, None
        self.current = await (successor or self._start())
        return self.current

    def _due(self, current: ForkServer) -> str:
        """All children of one fork server share its address layout and hash seed, so it is replaced on schedule."""
        if current.served >= MOST_CALLS:
            return "calls"
        age = asyncio.get_running_loop().time() - current.born
        return "age" if age >= OLDEST_S else ""

    async def _start(self) -> ForkServer:
        groups = self._settings.cgroup == "auto"
        server = await ForkServer.start(self.root, self._settings.calls, groups=groups)
        try:
            selftest.require(await selftest.inspect(server, self.root))
            if self._over:
                raise SandboxUnavailableError("The sandbox", "it was closed.")
        except BaseException:
            await server.close()
            raise
        self.tested = asyncio.get_running_loop().time()
        self.tier = server.tier
        return server

    def note(self, result: SandboxResult) -> None:
        """Count calls that crashed; too many within a minute replace the fork server."""
        if result.rc in _CRASHED:
            time_s = asyncio.get_running_loop().time()
            self._crashes.append(time_s)
            if len(self._crashes) == CRASHES and time_s - self._crashes[0] < CRASHES_S:
                self._suspicion = "crashes"

    def suspect(self, server: ForkServer, why: str) -> None:
        """Have another fork server take the next call. Calls in flight on ``server`` may end as they do."""
        if server is self.current:
            self._suspicion = why

    async def probe(self) -> None:
        """Run the self-test on the current fork server again; replace it where a probe fails."""
        current = self.current
        if current is not None:
            self.tested = asyncio.get_running_loop().time()
            try:
                selftest.require(await selftest.inspect(current, self.root))
            except SandboxUnavailableError:
                self.suspect(current, "probe")

    def _retire(self, server: ForkServer) -> None:
        """End it once its last call has ended."""
        task = asyncio.create_task(self._drain(server))
        self._retired[task] = server
        task.add_done_callback(self._retired.pop)

    async def _drain(self, server: ForkServer) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(server.idle.wait(), DRAIN_S)
        self._tally.deaths += await server.ended()
        await server.close()

    async def close(self) -> None:
        """End the fork server of this slot, its successor, and those being drained."""
        self._over = True
        if self.current is not None:
            self.current.kill()
        async with self._lock:  # whoever starts one now ends it, too
            await self._end()

    async def _end(self) -> None:
        if self._successor is not None:
            self._successor.cancel()
            started = await asyncio.gather(self._successor, return_exceptions=True)
            await asyncio.gather(*(z.close() for z in started if isinstance(z, ForkServer)))
        if self.current is not None:
            await self.current.close()
        for task, server in list(self._retired.items()):
            task.cancel()  # it may wait for the last call to end; this does not
            await asyncio.gather(task, server.close(), return_exceptions=True)
