"""Part of the rim: opens what plays each port that handlers ask for."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from agent0.assembly.runtime.model_ports import OpenEmbedders, OpenModels, OpenTrainers
from agent0.errors import ConfigError
from agent0.ports.sandbox import Root, Sandbox, SandboxCall, SandboxResult
from agent0.ports.storage import Artifacts, BenchmarkFiles
from agent0.settings import SandboxSettings, Settings
from agent0.tools import tools

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


async def open_port(name: str, settings: Settings, artifacts: Artifacts) -> Any:
    """What plays the port ``name``; whoever opens it closes it, where it can be closed.

    Raises:
        ConfigError: nothing plays it.
        DependencyError: what plays it does not start here.
    """
    openers: dict[str, Callable[[], Awaitable[Any]]] = {
        "sandbox": lambda: _sandbox(settings.sandbox, "student", settings.sandbox.workers, _root_of(settings)),
        "verifier_sandbox": lambda: _sandbox(
            settings.sandbox.model_copy(update={"wall_s": settings.sandbox.verifier_wall_s}),
            "verifier",
            max(1, settings.sandbox.workers // 2),
        ),
    }
    makers: dict[str, Callable[[], Any]] = {
        "models": lambda: OpenModels(settings, artifacts),
        "trainers": lambda: OpenTrainers(settings, artifacts),
        "embedders": lambda: OpenEmbedders(settings),
        "contamination": lambda: _contamination(settings),
        "benchmark_files": lambda: benchmark_files(settings),
        "tool_cache": _tool_cache,
        "web": lambda: _web(settings),
        "tools": tools,
    }
    if name in openers:
        return await openers[name]()
    if name not in makers:
        known = sorted(["artifacts", "history", *openers, *makers])
        raise ConfigError(f"A handler wants the port {name!r}, which nothing plays.", f"Known: {', '.join(known)}.")
    return makers[name]()


def _root_of(settings: Settings) -> Root:
    """What students' calls name: the policy's."""
    return Root(settings.run.policy.executables, settings.run.policy.modules)


async def _sandbox(limits: SandboxSettings, label: str, workers: int, root: Root = PACKAGED) -> LimitedSandbox:
    from infra.sandbox import open_sandbox

    return LimitedSandbox(await open_sandbox(limits, workers=workers, label=label, root=root), limits)


def _web(settings: Settings) -> Any:
    from infra.web.proxy import WebProxy

    return WebProxy(settings.web)


def _contamination(settings: Settings) -> Any:
    from infra.embeddings.benchmark_index import BenchmarkRows

    return BenchmarkRows(settings.benchmarks.folder, settings.home / "cache")


def benchmark_files(settings: Settings) -> BenchmarkFiles:
    """The files of benchmark rows that the settings name."""
    from infra.storage.datasets import BenchmarkFolder

    return BenchmarkFolder(settings.benchmarks.folder)


def _tool_cache() -> Any:
    from agent0.tools.cache import ToolCache

    return ToolCache()
