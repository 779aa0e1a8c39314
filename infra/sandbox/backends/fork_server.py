"""The host's handle on one fork server: start it, get fresh sandbox processes from its spawners, end it with every
process in it."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent0.errors import SandboxUnavailableError
from agent0.infra.sandbox import cgroup, execution, rootfs
from agent0.infra.sandbox.cgroup import Slot
from agent0.infra.sandbox.inside import calling
from agent0.infra.sandbox.inside.calling import SandboxProcess, SandboxProcessError
from agent0.infra.sandbox.process import END_S, Process
from agent0.infra.sandbox.roots import EVERYTHING, RootError
from agent0.infra.sandbox.selftest import MissedProbeError
from agent0.ports.sandbox import Root, SandboxCall, SandboxResult

BACKEND = "zygote-bwrap"
START_S = 60.0
SPAWN_S = 20.0
ENDED_S = 0.3


class Spawner:
    """A fork of the fork server that clones one sandbox process per call, one after the other, in a control group of
    its own where there is one. It keeps one sandbox process ready for the next call."""

    def __init__(self, control: socket.socket, slot: Slot | None) -> None:
        self.control, self.slot = control, slot
        self.tier = "watchdog"
        self.spare: SandboxProcess | None = None
        self.refill: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._dead = False

    def join(self, pidfd: int) -> None:
        """Move the spawner behind ``pidfd`` into its control group and send it the group's descriptors. Where that
        fails the watchdog bounds memory instead, and results say so."""
        assert self.slot is not None  # noqa: S101 (only with one)
        with contextlib.suppress(OSError):
            self.slot.adopt(_pid(pidfd))
            group = self.slot.open()
            try:
                socket.send_fds(self.control, [b"group"], group)
                self.tier = "cgroup"
            finally:
                for fd in group:
                    os.close(fd)

    @property
    def readiness(self) -> int:
        """2: a sandbox process waits; 1: one is being made; 0: none."""
        return 2 if self.spare is not None else 1 if self.refill is not None and not self.refill.done() else 0

    async def child(self) -> SandboxProcess:
        """Return a fresh sandbox process that nobody else uses.

        Raises:
            WorldError: none could be made.
        """
        if self.spare is None and self.refill is not None:
            await asyncio.wait({self.refill})  # sooner ready than another
        spare, self.spare = self.spare, None
        return spare or await self._unbroken()

    async def _unbroken(self) -> SandboxProcess:
        """``_fresh`` to its end even where the caller is cancelled: an answer nobody took would go to the next."""
        task = asyncio.create_task(self._fresh())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_discard)
            raise

    def prepare(self) -> None:
        """Make one sandbox process ahead of the next call, in the background."""
        if not self._dead and not self.readiness:
            self.refill = asyncio.create_task(self._keep_spare())

    async def _keep_spare(self) -> None:
        with contextlib.suppress(SandboxProcessError):
            child = await self._fresh()
            if self._dead or self.spare is not None:
                child.release()
            else:
                self.spare = child

    async def _fresh(self) -> SandboxProcess:
        async with self._turn:
            try:
                await asyncio.get_running_loop().sock_sendall(self.control, b"spawn")
                answer, fds = await calling.fork_answer(self.control, SPAWN_S)
            except (OSError, TimeoutError) as error:
                raise SandboxProcessError(f"the fork server does not answer: {error}") from error
        if "pid" not in answer or len(fds) != 4:
            raise SandboxProcessError(str(answer.get("error", "malformed answer")))
        return SandboxProcess(fds[0], _socket(fds[1]), fds[2], fds[3], self.tier)

    def kill(self) -> None:
        """Hand out no further sandbox process and release the one that waits."""
        self._dead = True
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_RDWR)  # wakes whoever waits for an answer
        if self.spare is not None:
            self.spare.release()
            self.spare = None


class ForkServer:
    """One running fork server and its spawners. Use ``await ForkServer.start()``."""

    def __init__(self, process: Process, control: socket.socket) -> None:
        self._process, self._control = process, control
        self._spawners: list[Spawner] = []
        self._free: list[Spawner] = []
        self._room = asyncio.Semaphore(0)
        self._here = self._started = False
        self.born = asyncio.get_running_loop().time()
        self.served = self.in_flight = 0
        self.idle = asyncio.Event()
        self.idle.set()
        self.dead = False

    @classmethod
    async def start(cls, root: Root = EVERYTHING, calls: int = 2, *, groups: bool = True) -> "ForkServer":
        """Start one that serves ``calls`` calls at once and wait until it has imported everything. Control groups
        bound memory where ``groups`` is set and this machine allows them.

        Raises:
            SandboxUnavailableError: it does not start here; the reason is what it said.
            RootError: this machine lacks something that ``root`` names.
        """
        command = await rootfs.command(root)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        try:
            with theirs:
                fd = theirs.fileno()
                server = cls(Process([*command, *rootfs.interpreter(fd, root)], {}, pass_fds=[fd]), ours)
        except BaseException:
            ours.close()
            raise
        try:
            await server._awake()
            await server._populate(calls, cgroup.slots(calls) if groups else [])
        except (SandboxProcessError, TimeoutError) as error:
            why = await server._complaint(error)
            kind = MissedProbeError if isinstance(error, TimeoutError) else SandboxUnavailableError
            raise kind("The sandbox", why, _FIX) from error
        else:
            server._started = True
            return server
        finally:
            if not server._started:
                await server.close()

    async def _awake(self) -> None:
        await calling.fork_answer(self._control, START_S)
        self._here = True
        answer, _ = await calling.fork_answer(self._control, START_S)
        for name, why in answer.get("missed", {}).items():
            why = why.strip().partition("\n")[0].removesuffix(".")
            raise RootError(f"The package {name} cannot be imported: {why}. Name what it needs, too, or take it off.")

    async def _populate(self, calls: int, slots: list[Slot]) -> None:
        """Make the spawners."""
        try:
            for number in range(calls):
                await self._add(slots[number] if slots else None)
        except OSError as error:
            raise SandboxProcessError(f"the fork server does not answer: {error}") from error
        finally:
            cgroup.discard([slot for slot in slots if slot not in [n.slot for n in self._spawners]])

    async def _add(self, slot: Slot | None) -> None:
        await asyncio.get_running_loop().sock_sendall(self._control, b"nursery")
        answer, fds = await calling.fork_answer(self._control, SPAWN_S)
        if len(fds) != 2:
            raise SandboxProcessError(str(answer.get("error", "malformed answer")))
        spawner = Spawner(_socket(fds[1]), slot)
        self._spawners.append(spawner)
        self._free.append(spawner)
        self._room.release()
        try:
            if slot is not None:
                spawner.join(fds[0])
        finally:
            os.close(fds[0])

    @property
    def tier(self) -> str:
        """How memory is bounded in its sandbox processes: the weakest bound among its spawners."""
        return max((spawner.tier for spawner in self._spawners), default="")

    @property
    def pid(self) -> int:
        """The pid of bubblewrap, the fork server's parent."""
        return self._process.pid

    async def execute(self, call: SandboxCall) -> SandboxResult:
        """Run ``call`` in a fresh sandbox process.

        Raises:
            WorldError: no sandbox process, or one that ended without a word.
        """
        async with self.child() as child:
            return execution.result(await calling.run(child, execution.request(call)), BACKEND, child.tier)

    @asynccontextmanager
    async def child(self) -> AsyncIterator[SandboxProcess]:
        """Yield a fresh, confined sandbox process; it is killed with everything in it at the end of the block.

        Raises:
            WorldError: none could be made.
        """
        self.served += 1
        self.in_flight += 1
        self.idle.clear()
        try:
            async with self._room:
                spawner = max(self._free, key=lambda n: n.readiness)
                self._free.remove(spawner)
                try:
                    child = await spawner.child()
                    try:
                        yield child
                    finally:
                        child.release()
                finally:
                    self._free.append(spawner)
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                self.idle.set()

    def prepare(self) -> None:
        """Make one sandbox process ahead of the next call, on the spawner used last."""
        if self._free and not self.dead:
            self._free[-1].prepare()

    async def _complaint(self, error: Exception) -> str:
        self.kill()
        await self._process.wait(END_S)
        stderr = self._process.stderr_text()
        return f"it does not start: {stderr.splitlines()[-1] if stderr else error}."

    async def ended(self) -> bool:
        """Return whether it has ended by itself, waiting up to 0.3 s for that."""
        return await self._process.wait(ENDED_S)

    def kill(self) -> None:
        """End the fork server and every sandbox process in it: now, or as soon as it has started."""
        if self.dead:
            return
        self.dead = True
        for spawner in self._spawners:
            spawner.kill()
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        if self._here:
            self._process.kill()  # the fork server ends with bubblewrap, its parent, and all namespaces with it

    async def close(self) -> None:
        """``kill`` and wait."""
        self.kill()
        try:
            refills = [spawner.refill for spawner in self._spawners if spawner.refill is not None]
            for refill in refills:
                refill.cancel()
            await asyncio.gather(*refills, return_exceptions=True)
            await self._process.end(at_once=self._here)
            await asyncio.gather(*(spawner.slot.remove() for spawner in self._spawners if spawner.slot is not None))
        finally:  # whoever waits here may be cancelled
            for sock in (self._control, *(spawner.control for spawner in self._spawners)):
                sock.close()


def _socket(fd: int) -> socket.socket:
    sock = socket.socket(fileno=fd)
    sock.setblocking(False)
    return sock


def _pid(pidfd: int) -> int:
    """The process behind ``pidfd``, as it is called here."""
    with open(f"/proc/self/fdinfo/{pidfd}") as text:  # noqa: PTH123
        return next(int(line.split()[1]) for line in text if line.startswith("Pid:"))


def _discard(task: "asyncio.Task[SandboxProcess]") -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().release()


_FIX = (
    "See `agent0 doctor`. Usual causes: unprivileged user namespaces are switched off (Ubuntu >= 23.10: "
    "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run as root), or a container without the right to mount."
)
