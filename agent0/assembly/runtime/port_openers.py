"""Part of the rim: opens what plays each port that handlers ask for."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from agent0.assembly.runtime.model_ports import OpenEmbedders, OpenModels, OpenTrainers
from agent0.errors import ConfigError
from agent0.infra.embeddings.benchmark_index import BenchmarkRows
from agent0.infra.environments import ENVIRONMENTS
from agent0.infra.environments.by_kind import EnvironmentsByKind
from agent0.infra.log.event_log import Log
from agent0.infra.sandbox import open_sandbox as open_sandbox
from agent0.infra.storage.datasets import BenchmarkFolder, LocalQuestions
from agent0.infra.web.proxy import WebProxy
from agent0.ports.sandbox import Root, Sandbox, SandboxCall, SandboxResult
from agent0.ports.storage import Artifacts, BenchmarkFiles
from agent0.settings import SandboxSettings, Settings
from agent0.tools import tools
from agent0.tools.cache import ToolCache

PACKAGED = Root()


class LimitedSandbox:
    """A sandbox whose calls never get more time or memory than the settings allow."""

    def __init__(self, inner: Sandbox, limits: SandboxSettings) -> None:
        self._inner, self._limits = inner, limits

    @property
    def backend(self) -> str:
        """Its name, where the sandbox has one."""
        return str(getattr(self._inner, "name", ""))

    async def call(self, call: SandboxCall) -> SandboxResult:
        """Run ``call`` within the limits."""
        wall, memory = min(call.wall_s, self._limits.wall_s), min(call.mem_mib, self._limits.mem_mib)
        return await self._inner.call(replace(call, wall_s=wall, mem_mib=memory))

    async def close(self) -> None:
        """End every process."""
        await self._inner.close()


class OnDemandSandbox:
    """A sandbox that its first call starts: many runs never need the verifiers' one, and to start it takes a second of
    a processor. Where that fails the call raises what ``start`` raised, and the next one tries again."""

    def __init__(self, start: Callable[[], Awaitable[Sandbox]]) -> None:
        self._start = start
        self._started: asyncio.Future[Sandbox] | None = None

    async def call(self, call: SandboxCall) -> SandboxResult:
        """Run ``call`` in the sandbox, once it has started."""
        if self._started is None or (self._started.done() and self._failed(self._started)):
            self._started = asyncio.ensure_future(self._start())
        return await (await asyncio.shield(self._started)).call(call)

    async def close(self) -> None:
        """End every process, where there is one."""
        if self._started is not None:
            await asyncio.wait([self._started])
            if not self._failed(self._started):
                await self._started.result().close()

    @staticmethod
    def _failed(started: asyncio.Future[Sandbox]) -> bool:
        return started.cancelled() or started.exception() is not None


async def open_ports(
    names: Iterable[str], settings: Settings, artifacts: Artifacts, stack: AsyncExitStack, log: Log | None = None
) -> dict[str, Any]:
    """What plays each port of ``names``, by name; ``stack`` closes it. ``log``: whose budgets models are charged to.

    Raises:
        ConfigError: nothing plays one of them.
        DependencyError: what plays one does not start here.
    """
    ports: dict[str, Any] = {}
    for name in names:
        ports[name] = await open_port(name, settings, artifacts, tested="sandbox" in ports, log=log)
        if close := getattr(ports[name], "close", None):
            stack.push_async_callback(close)
    return ports


async def open_port(
    name: str, settings: Settings, artifacts: Artifacts, *, tested: bool = False, log: Log | None = None
) -> Any:
    """What plays the port ``name``; whoever opens it closes it, where it can be closed. ``tested``: a sandbox of these
    settings has started and passed its self-test, so the verifiers' one need not start before its first call.

    Raises:
        ConfigError: nothing plays it.
        DependencyError: what plays it does not start here.
    """
    openers: dict[str, Callable[[], Awaitable[Any]]] = {
        "sandbox": lambda: _sandbox(settings.sandbox, "student", settings.sandbox.workers, _root_of(settings)),
        "verifier_sandbox": lambda: _verifiers(settings.sandbox, tested),
    }
    makers: dict[str, Callable[[], Any]] = {
        "models": lambda: OpenModels(settings, artifacts, log),
        "trainers": lambda: OpenTrainers(settings, artifacts),
        "embedders": lambda: OpenEmbedders(settings),
        "contamination": lambda: BenchmarkRows(settings.benchmarks.folder, settings.home / "cache"),
        "benchmark_files": lambda: benchmark_files(settings),
        "question_file": lambda: LocalQuestions(settings.home),
        "tool_cache": ToolCache,
        "environments": lambda: EnvironmentsByKind(settings.home / ENVIRONMENTS),
        "web": lambda: WebProxy(settings.web),
        "tools": tools,
    }
    if name in openers:
        return await openers[name]()
    if name not in makers:
        port_names = sorted(["artifacts", "history", *openers, *makers])
        raise ConfigError(
            f"A handler wants the port {name!r}, which nothing plays.", f"Known: {', '.join(port_names)}."
        )
    return makers[name]()


async def _verifiers(limits: SandboxSettings, tested: bool) -> Sandbox:
    longer = limits.model_copy(update={"wall_s": limits.verifier_wall_s})
    workers = max(1, limits.workers // 2)
    start = partial(_sandbox, longer, "verifier", workers)
    return OnDemandSandbox(start) if tested else await start()


def _root_of(settings: Settings) -> Root:
    """What students' calls name: the policy's."""
    return Root(settings.run.policy.executables, settings.run.policy.modules)


async def _sandbox(limits: SandboxSettings, label: str, workers: int, root: Root = PACKAGED) -> LimitedSandbox:
    return LimitedSandbox(await open_sandbox(limits, workers=workers, label=label, root=root), limits)


def benchmark_files(settings: Settings) -> BenchmarkFiles:
    """The files of benchmark rows that the settings name."""
    return BenchmarkFolder(settings.benchmarks.folder)
