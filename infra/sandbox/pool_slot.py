"""A place for one zygote at a time: started on demand, tested before use, replaced on schedule or on suspicion."""

import asyncio
import contextlib
from collections import Counter, deque
from dataclasses import dataclass, field

from agent0.errors import SandboxUnavailableError
from agent0.ports.sandbox import Root, SandboxResult
from agent0.settings import SandboxSettings
from infra.sandbox import selftest
from infra.sandbox.backends.zygote import Zygote

DRAIN_S = 60.0
"""How long a replaced zygote's last call may take beyond its turn."""
CRASHES, CRASHES_S = 5, 60.0
"""Calls that end like this, within as many seconds: somebody may be guessing at the layout that all worlds share."""
_CRASHED = frozenset({-4, -7, -11, 128 + 4, 128 + 7, 128 + 11})
"""Exit codes of SIGILL, SIGBUS and SIGSEGV, from Python and from the shell."""


@dataclass
class Tally:
    """What happened to zygotes: replacements by reason, and those of them that had ended by themselves."""

    recycled: Counter[str] = field(default_factory=Counter)
    deaths: int = 0


class Lane:
    """One zygote of ``root`` at a time. ``busy`` counts the calls on it, ``used`` says when the last one came; ``tier``
    is that of the zygote which started last, empty before the first."""

    def __init__(self, root: Root, settings: SandboxSettings, tally: Tally) -> None:
        self.root, self._settings, self._tally = root, settings, tally
        self._lock = asyncio.Lock()
        self._successor: asyncio.Task[Zygote] | None = None
        self._retired: dict[asyncio.Task[None], Zygote] = {}
        self._crashes: deque[float] = deque(maxlen=CRASHES)
        self._suspicion = ""
        self._over = False
        self.current: Zygote | None = None
        self.tier = ""
        self.busy = 0
        self.used = self.tested = asyncio.get_running_loop().time()
        self.closing = False

    async def zygote(self) -> Zygote:
        """The current zygote; its successor is started beside it when it has served long enough.

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

    async def _replace(self, current: Zygote | None) -> Zygote:
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

    def _due(self, current: Zygote) -> str:
        """Worlds of one zygote share its address layout and hash seed: none serves for ever."""
        if current.served >= self._settings.recycle_calls:
            return "calls"
        age = asyncio.get_running_loop().time() - current.born
        return "age" if age >= self._settings.recycle_s else ""

    async def _start(self) -> Zygote:
        groups = self._settings.cgroup == "auto"
        zygote = await Zygote.start(self.root, self._settings.calls, groups=groups)
        try:
            selftest.require(await selftest.inspect(zygote, self.root))
            if self._over:
                raise SandboxUnavailableError("The sandbox", "it was closed.")
        except BaseException:
            await zygote.close()
            raise
        self.tested = asyncio.get_running_loop().time()
        self.tier = zygote.tier
        return zygote

    def note(self, result: SandboxResult) -> None:
        """Look at how a call ended."""
        if result.rc in _CRASHED:
            now = asyncio.get_running_loop().time()
            self._crashes.append(now)
            if len(self._crashes) == CRASHES and now - self._crashes[0] < CRASHES_S:
                self._suspicion = "crashes"

    def suspect(self, zygote: Zygote, why: str) -> None:
        """Another one serves the next call. Those it serves now may end as they do: their worlds share nothing."""
        if zygote is self.current:
            self._suspicion = why

    async def probe(self) -> None:
        """Put the current zygote to its self-test again."""
        current = self.current
        if current is not None:
            self.tested = asyncio.get_running_loop().time()
            try:
                selftest.require(await selftest.inspect(current, self.root))
            except SandboxUnavailableError:
                self.suspect(current, "probe")

    def _retire(self, zygote: Zygote) -> None:
        """End it once its last call has ended."""
        task = asyncio.create_task(self._drain(zygote))
        self._retired[task] = zygote
        task.add_done_callback(self._retired.pop)

    async def _drain(self, zygote: Zygote) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(zygote.idle.wait(), DRAIN_S)
        self._tally.deaths += await zygote.ended()
        await zygote.close()

    async def close(self) -> None:
        """End every process."""
        self._over = True
        if self.current is not None:
            self.current.kill()
        async with self._lock:  # whoever starts one now ends it, too
            await self._end()

    async def _end(self) -> None:
        if self._successor is not None:
            self._successor.cancel()
            started = await asyncio.gather(self._successor, return_exceptions=True)
            await asyncio.gather(*(z.close() for z in started if isinstance(z, Zygote)))
        if self.current is not None:
            await self.current.close()
        for task, zygote in list(self._retired.items()):
            task.cancel()  # it may wait for the last call to end; this does not
            await asyncio.gather(task, zygote.close(), return_exceptions=True)
