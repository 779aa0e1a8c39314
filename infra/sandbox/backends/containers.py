"""The two sandboxes of a container engine: one long-lived container with a fork server in it, or one container per
call."""

import asyncio
import contextlib
import tempfile
from pathlib import Path

from agent0.errors import SandboxUnavailableError
from agent0.events.values import ToolState
from agent0.infra.sandbox import execution, selftest
from agent0.infra.sandbox.backends import docker
from agent0.infra.sandbox.inside.calling import SandboxProcessError
from agent0.infra.sandbox.link import SandboxLink
from agent0.infra.sandbox.pool_slot import MOST_CALLS, OLDEST_S
from agent0.infra.sandbox.queueing import TIER, Queued
from agent0.infra.sandbox.roots import EVERYTHING, PACKAGED, importable
from agent0.ports.sandbox import Root, SandboxCall, SandboxResult
from agent0.settings import SandboxSettings

WARM, COLD = "zygote-docker", "docker-cold"
DRAIN_S = 60.0
"""How long a replaced container's last call may take beyond its turn."""
KILL_S = 20.0


class Container:
    """One running container and the link to what is pid 1 in it."""

    def __init__(self, settings: SandboxSettings, backend: str, name: str, link: SandboxLink) -> None:
        self._settings, self._backend, self._name, self._link = settings, backend, name, link
        self.served = self._busy = 0
        self.born = asyncio.get_running_loop().time()
        self.idle = asyncio.Event()
        self.idle.set()

    @classmethod
    async def open(cls, settings: SandboxSettings, backend: str, name: str, command: list[str]) -> "Container":
        """Start one.

        Raises:
            WorldError: the engine, or what runs in it, said something else than its greeting.
        """
        try:
            return cls(settings, backend, name, await SandboxLink.open(command, docker.environment()))
        except BaseException:
            await asyncio.shield(end(settings, name))
            raise

    @property
    def dead(self) -> bool:
        """Whether it has ended, or is no longer to be used."""
        return self._link.dead

    async def execute(self, call: SandboxCall) -> SandboxResult:
        """Run ``call`` in it.

        Raises:
            WorldError: nothing can be said about the code.
        """
        if missing := _lacks(self._link, call.root):
            return execution.not_run(ToolState.REFUSED, missing, self._backend, TIER)
        self.served += 1
        self._busy += 1
        self.idle.clear()
        try:
            ended = await self._link.ask(execution.request(call), call.root)
            return execution.result(ended, self._backend, TIER)
        finally:
            self._busy -= 1
            if not self._busy:
                self.idle.set()

    def kill(self) -> None:
        """Have nothing more of it."""
        self._link.kill()

    async def drain(self) -> None:
        """Let its last call end, then close it."""
        if not self.dead:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.idle.wait(), DRAIN_S)
        await self.close()

    async def close(self) -> None:
        """End it, and with it everything inside."""
        self._link.kill()
        try:
            await asyncio.shield(end(self._settings, self._name))
        finally:
            await self._link.close()


async def end(settings: SandboxSettings, name: str) -> None:
    """Kill the container: its client's end is not its own. One that is gone already is as good."""
    null = asyncio.subprocess.DEVNULL
    command = docker.kill(settings, name)
    process = await asyncio.create_subprocess_exec(*command, env=docker.environment(), stdout=null, stderr=null)
    try:
        await asyncio.wait_for(process.wait(), KILL_S)
    except TimeoutError:
        process.kill()
        await process.wait()


def _lacks(link: SandboxLink, root: Root) -> str:
    """What of ``root`` the image does not have, empty where it has all. What the packaged list names and the machine
    that made the image lacked is left out, as everywhere."""
    executables, modules = {*link.inventory["executables"], *PACKAGED}, link.inventory["modules"]
    programs = [program for program in root.executables if program not in executables]
    missing = ", ".join([*programs, *(module for module in importable(root) if module not in modules)])
    return f"the image of the sandbox lacks {missing}: put it in, or take it off the allowlist" if missing else ""


async def open_broker(settings: SandboxSettings, places: int) -> Container:
    """A long-lived container that serves ``places`` calls at once, not tested yet.

    Raises:
        SandboxUnavailableError: it does not start here; the reason is what the engine said.
    """
    name = docker.name()
    try:
        with tempfile.TemporaryDirectory(prefix="agent0-sandbox-") as folder:  # the client has read it when it greets
            seccomp = Path(folder, "seccomp.json")
            seccomp.write_text(docker.profile())
            return await Container.open(settings, WARM, name, docker.broker(settings, name, places, seccomp))
    except (SandboxProcessError, OSError) as error:
        raise SandboxUnavailableError("The sandbox", f"{error}.", docker.FIX) from error


class WarmContainer(Queued):
    """The ``Sandbox`` port on one long-lived hardened container, replaced on schedule and on suspicion. Make one with
    ``open_sandbox``, which also tests it."""

    name = WARM

    def __init__(
        self, settings: SandboxSettings, label: str = "student", workers: int = 1, root: Root = EVERYTHING
    ) -> None:
        super().__init__(settings, label, workers, root)
        self._lock = asyncio.Lock()
        self._current: Container | None = None
        self._retired: set[asyncio.Task[None]] = set()

    async def execute(self, call: SandboxCall) -> SandboxResult:
        """Run ``call`` in a fresh sandbox process of the container.

        Raises:
            WorldError: the container died, or said what makes no sense; the next call gets another one.
            SandboxUnavailableError: another one was due and did not start or missed a probe.
        """
        container = await self._container()
        try:
            return await container.execute(call)
        except SandboxProcessError:
            container.kill()
            raise

    async def _container(self) -> Container:
        async with self._lock:
            current = self._current
            if current is not None and not current.dead and not self._due(current):
                return current
            self._current = None
            if current is not None:
                task = asyncio.create_task(current.drain())
                self._retired.add(task)
                task.add_done_callback(self._retired.discard)
            self._current = await self._start()
            return self._current

    def _due(self, current: Container) -> bool:
        """All children of one fork server share its address layout and hash seed, so it is replaced on schedule."""
        age = asyncio.get_running_loop().time() - current.born
        return current.served >= MOST_CALLS or age >= OLDEST_S

    async def _start(self) -> "Container":
        container = await open_broker(self.settings, self.places)
        try:
            selftest.require(await selftest.inspect(container, self.root))
        except BaseException:
            await container.close()
            raise
        return container

    async def close(self) -> None:
        """End every container."""
        await super().close()
        async with self._lock:
            if self._current is not None:
                await self._current.close()
                self._current = None
        for task in list(self._retired):
            task.cancel()
        await asyncio.gather(*self._retired, return_exceptions=True)


class ColdContainer(Queued):
    """The ``Sandbox`` port with one container a call. Make one with ``open_sandbox``, which also tests it."""

    name = COLD

    async def execute(self, call: SandboxCall) -> SandboxResult:
        """Run ``call`` in a container of its own.

        Raises:
            WorldError: it ended without a word.
            SandboxUnavailableError: it did not start; the reason is what the engine said.
        """
        name = docker.name()
        command = docker.once(self.settings, name, call.mem_mib)
        try:
            container = await Container.open(self.settings, self.name, name, command)
        except (SandboxProcessError, OSError) as error:
            raise SandboxUnavailableError("The sandbox", f"{error}.", docker.FIX) from error
        try:
            return await container.execute(call)
        finally:
            await container.close()
