"""The host's hold on one zygote: start it, ask it for fresh worlds, end it with all that lives in it."""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agent0.errors import SandboxUnavailableError
from agent0.ports import SandboxCall, SandboxResult
from infra.sandbox import execution, rootfs
from infra.sandbox.inside import calling
from infra.sandbox.inside.calling import World, WorldError, readable

BACKEND, TIER = "zygote-bwrap", "watchdog"
START_S = 60.0
SPAWN_S = 20.0


class Zygote:
    """One running zygote. Use ``await Zygote.start()``."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        self._process, self._control = process, control
        self._turn = asyncio.Lock()
        self._spare: World | None = None
        self._refill: asyncio.Task[None] | None = None
        self._started = False
        self.served = 0
        self.idle = asyncio.Event()
        self.idle.set()
        self._in_flight = 0
        self.dead = False

    @classmethod
    async def start(cls) -> "Zygote":
        """Start one and wait until it has imported everything.

        Raises:
            SandboxUnavailableError: it does not start here; the reason is what it said.
        """
        words = await rootfs.command()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        try:
            process = await _launch([*words, *rootfs.interpreter(theirs.fileno())], theirs)
        except BaseException:
            ours.close()
            raise
        zygote = cls(process, ours)
        try:
            await zygote._receive(START_S)
        except (WorldError, TimeoutError) as error:
            why = await zygote._complaint(error)
            raise SandboxUnavailableError("The sandbox", why, _FIX) from error
        else:
            zygote._started = True
            return zygote
        finally:
            if not zygote._started:
                await zygote.close()

    async def execute(self, call: SandboxCall) -> SandboxResult:
        """Run ``call`` in a fresh world.

        Raises:
            WorldError: no world, or one that ended without a word.
        """
        async with self.world() as world:
            return execution.result(await calling.run(world, execution.request(call)), BACKEND, TIER)

    @asynccontextmanager
    async def world(self) -> AsyncIterator[World]:
        """A fresh world, confined and waiting; gone with everything in it at the end of the block.

        Raises:
            WorldError: none could be made.
        """
        self.served += 1
        self._in_flight += 1
        self.idle.clear()
        try:
            if self._spare is None and self._refill is not None:
                await asyncio.wait({self._refill})  # sooner ready than another
            spare, self._spare = self._spare, None
            world = spare or await self._unbroken()
            try:
                yield world
            finally:
                world.release()
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self.idle.set()

    async def _unbroken(self) -> World:
        """``_fresh`` to its end even where the caller is cancelled: an answer nobody took would go to the next."""
        task = asyncio.create_task(self._fresh())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_discard)
            raise

    def prepare(self) -> None:
        """Make one world ahead of the next call, in the background."""
        if self._spare is None and not self.dead and (self._refill is None or self._refill.done()):
            self._refill = asyncio.create_task(self._keep_spare())

    async def _keep_spare(self) -> None:
        with contextlib.suppress(WorldError):
            world = await self._fresh()
            if self.dead or self._spare is not None:
                world.release()
            else:
                self._spare = world

    async def _fresh(self) -> World:
        async with self._turn:
            try:
                await asyncio.get_running_loop().sock_sendall(self._control, b"spawn")
                answer, fds = await self._receive(SPAWN_S)
            except (OSError, TimeoutError) as error:
                raise WorldError(f"the zygote does not answer: {error}") from error
        if "pid" not in answer or len(fds) != 4:
            raise WorldError(str(answer.get("error", "malformed answer")))
        sock = socket.socket(fileno=fds[1])
        sock.setblocking(False)
        return World(fds[0], sock, fds[2], fds[3])

    async def _receive(self, timeout: float) -> tuple[dict[str, Any], list[int]]:
        async with asyncio.timeout(timeout):
            await readable(self._control.fileno())
        try:
            data, fds, _, _ = socket.recv_fds(self._control, 4096, 4)
        except OSError as error:
            raise WorldError(f"the zygote is gone: {error}") from error
        if not data:
            raise WorldError("the zygote is gone")
        for fd in fds:
            os.set_inheritable(fd, False)
        answer: dict[str, Any] = json.loads(data)
        return answer, list(fds)

    async def _complaint(self, error: Exception) -> str:
        assert self._process.stderr is not None  # noqa: S101 (it was opened as a pipe)
        with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
            self._process.kill()
        said = (await self._process.stderr.read(4096)).decode(errors="replace").strip()
        return f"it does not start: {said.splitlines()[-1] if said else error}."

    def kill(self) -> None:
        """End the zygote and every world in it, now."""
        if self.dead:
            return
        self.dead = True
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)  # wakes whoever waits for an answer
        if self._spare is not None:
            self._spare.release()
            self._spare = None
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()  # bubblewrap takes pid 1 of the namespace with it (--die-with-parent)

    async def close(self) -> None:
        """``kill`` and wait."""
        self.kill()
        try:
            if self._refill is not None:
                self._refill.cancel()
                await asyncio.gather(self._refill, return_exceptions=True)
            await self._process.wait()
        finally:  # whoever waits here may be cancelled
            self._control.close()


async def _launch(words: list[str], control: socket.socket) -> asyncio.subprocess.Process:
    with control:
        return await asyncio.create_subprocess_exec(
            *words,
            pass_fds=[control.fileno()],
            env={},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )


def _discard(task: "asyncio.Task[World]") -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().release()


_FIX = (
    "See `agent0 doctor`. Usual causes: unprivileged user namespaces are switched off (Ubuntu >= 23.10: "
    "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run as root), or a container without the right to mount."
)
