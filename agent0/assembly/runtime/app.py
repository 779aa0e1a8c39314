"""The composition root, part of the rim: settings become a log, ports, handlers and tables that know one another."""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent0.assembly.runtime.mcp_tools import MCP, mcp_tools
from agent0.assembly.runtime.providers import (
    OpenEmbedders,
    OpenModels,
    OpenTrainers,
    embedders,
    load_plugins,
    provider_of,
)
from agent0.assembly.validate.curriculum import check_curriculum, known
from agent0.assembly.validate.rewards import check_rewards
from agent0.config.loading import config_of, nearest
from agent0.errors import ConfigError
from agent0.ports import Artifacts, Sandbox, SandboxCall, SandboxResult
from agent0.provenance.fork_history import Branches
from agent0.settings import RecipeConfig, RunConfig, SandboxSettings, Settings, VerificationConfig
from agent0.tools import tools
from events.base import Event, Recorded, record
from events.runs import RunStarted

if TYPE_CHECKING:
    from handlers import Handler
    from infra.log.event_log import Log
    from infra.log.nats_server import Role, Server


@dataclass(frozen=True)
class World:
    """What a process that works has: the log, the artifact store, and the ports its handlers asked for."""

    settings: Settings
    log: "Log"
    artifacts: Artifacts
    handlers: Mapping[str, "Handler"]
    ports: Mapping[str, Any]


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


@asynccontextmanager
async def open_log(settings: Settings, role: "Role" = "app", *, make: bool = False) -> AsyncIterator["Log"]:
    """A connection to the log; its embedded server is found or started. ``make``: streams and durables that an embedded
    log lacks are made (what exists is never changed). Who may write looks first whether the log is what it was, and
    seals what it wrote: what is done must not be lost unnoticed.

    Raises:
        DependencyError, AuthError, LogError: no server, no right, no log, or a damaged one.
    """
    from agent0.assembly.log.integrity import look, seal, seal_file
    from infra.log.event_log import Log, NoLogError
    from infra.log.nats_server import open_server
    from infra.log.streams import GoneError

    server = await open_server(settings.home, settings.nats)
    try:
        if server.folder and seal_file(settings).read().left:
            from agent0.assembly.log.rollover import finish

            await finish(settings, server)
        if make and not settings.nats.url:
            await _provision(server, settings, change=False)
        async with await Log.connect(server, role) as log:
            if role == "app":
                await look(settings, log)
            log.archived = seal_file(settings).read().runs
            try:
                yield log
            finally:
                if log.wrote:
                    await seal(settings, log)
    except NoLogError as error:
        if seal_file(settings).read().stream:
            raise GoneError from error
        raise
    finally:
        await server.stop()


async def provision(settings: Settings) -> None:
    """Make streams and durables, or apply changed limits to those there are.

    Raises:
        LogError: what exists differs in a field that must not change.
    """
    from infra.log.nats_server import open_server

    server = await open_server(settings.home, settings.nats)
    try:
        await _provision(server, settings, change=True)
    finally:
        await server.stop()


async def _provision(server: "Server", settings: Settings, *, change: bool) -> None:
    from agent0.assembly.log.integrity import topology
    from infra.log.streams import init

    await init(server, topology(settings), known_handlers().values(), change=change)


async def check_log(settings: Settings, log: "Log", handlers: Iterable["Handler"]) -> None:
    """Raises LogError where stream or durables are not what these settings and handlers want."""
    from agent0.assembly.log.integrity import topology
    from infra.log.streams import check

    await check(log.client, topology(settings), handlers)


@asynccontextmanager
async def open_world(settings: Settings, names: Sequence[str] = ()) -> AsyncIterator[World]:
    """Everything that the handlers ``names`` (none: all) need, given back at the end.

    Raises:
        ConfigError: no such handler, or one that wants a port there is not.
        SandboxUnavailableError: a sandbox did not pass its self-test.
        DependencyError: an MCP server that settings name does not tell its tools.
    """
    from infra.storage.artifacts import FileArtifacts

    chosen = known_handlers(names)
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(open_log(settings, make=True))
        await check_log(settings, log, chosen.values())
        artifacts = FileArtifacts(settings.home)
        wanted = sorted({port for handler in chosen.values() for port in handler.ports})
        ports: dict[str, Any] = {"artifacts": artifacts, "history": Branches(log)}
        for name in wanted:
            if name not in ports:
                ports[name] = await open_port(name, settings, artifacts)
                if close := getattr(ports[name], "close", None):
                    stack.push_async_callback(close)
        if "tools" in ports:
            ports["tools"] |= await mcp_tools(settings, ports["sandbox"])
        yield World(settings, log, artifacts, chosen, ports)


async def run_handlers(world: World) -> None:
    """React until cancelled, and seal what was stored; then finish what is in hand.

    Raises:
        LogError: the log was altered meanwhile.
    """
    from agent0.assembly.log.integrity import sealer
    from agent0.run.lifecycle import evolve
    from infra.bus.bus import Bus

    bus = Bus(
        log=world.log,
        handlers=list(world.handlers.values()),
        ports=world.ports,
        evolve=evolve,
        settings=world.settings,
        code_rev=code_rev(),
        clock=now,
    )
    starting, seals = asyncio.ensure_future(bus.start()), sealer(world.settings, world.log)
    works = [starting]
    try:
        await asyncio.shield(starting)  # a cancellation inside would be swallowed there, and this would never end
        works.append(asyncio.ensure_future(seals.run()))
        await asyncio.shield(works[-1])
    finally:
        seals.end()
        await asyncio.wait(works)
        if starting.exception() is None:
            await bus.stop()
        works[-1].exception()  # whoever waits has been told, or is being cancelled
        await seals.finish()


def known_handlers(names: Sequence[str] = ()) -> dict[str, "Handler"]:
    """Handlers by name, plugins included; only ``names`` where given.

    Raises:
        ConfigError: no such handler.
    """
    from handlers import handlers

    load_plugins()
    known = handlers()
    for name in names:
        if name not in known:
            raise ConfigError(f"There is no handler {name!r}.", nearest(name, list(known)), "See: agent0 handlers list")
    return {name: known[name] for name in names or known}


def started(settings: Settings, name: str = "") -> Recorded:
    """The beginning of a new run of ``settings``, to be appended; ``.run`` is its new id."""
    from agent0.rollout.prompts import JUDGE, prompt

    config, digest = config_of(settings.run)
    roles = {"teacher": settings.run.teacher.prompts, "student": settings.run.student.prompts}
    plan, kinds = settings.run.curriculum, (False, True) if settings.run.curriculum.long else (False,)
    words = [prompt(roles[role], d, role, long=kind) for role in roles for d in plan.domains for kind in kinds]
    if settings.run.verification.judge.provider:
        words += [prompt(settings.run.verification.judge.prompts, d, JUDGE) for d in plan.domains]
    title = name or settings.profile
    event = RunStarted(
        name=title,
        profile=settings.profile,
        seed=settings.run.seed,
        config=config,
        config_sha=digest,
        prompts={p.name: p.version for p in words},
    )
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40] or "run"
    return recorded(f"{slug}-{secrets.token_hex(3)}", event)


def recorded(run: str, event: Event) -> Recorded:
    """``event`` as a person's doing, to be appended."""
    return record(event, run=run, time=now(), code_rev=code_rev())


def check_names(run: RunConfig) -> None:
    """Everything that a run's settings name must exist and fit together.

    Raises:
        ConfigError: the first that does not.
    """
    from agent0.rollout.prompts import styles

    for role, actor, recipe in (
        ("teacher", run.teacher, run.training.teacher),
        ("student", run.student, run.training.student),
    ):
        found = provider_of(actor)
        known(f"run.{role}.prompts", [actor.prompts], styles())
        _check_recipe(role, recipe)
        if recipe.enabled and found.train is None:
            fix = f"Set run.training.{role}.enabled = false, or choose another provider."
            raise ConfigError(f"Models of provider {found.name} cannot be trained here.", fix=fix)
    known("run.curriculum.embedder", [run.curriculum.embedder], embedders())
    own = [name for name in run.student.tools if not name.startswith(MCP)]  # a world asks the servers for theirs
    known("run.student.tools", own, tools())
    check_rewards(run.rewards, "run.rewards")
    if run.evaluation.forced_tool and not provider_of(run.student).prefill:
        why = f"Provider {run.student.provider} cannot begin a turn with given text."
        raise ConfigError("The forced-tool control cannot be scored.", why, "Set run.evaluation.forced_tool = false.")
    check_curriculum(run)
    _check_verification(run.verification)


def _check_recipe(role: str, recipe: RecipeConfig) -> None:
    """The objective must be one that can use this role's deeds, and nothing may be set that it ignores."""
    from agent0.training.objectives import objectives

    usable = {name: entry for name, entry in objectives().items() if role in entry.roles}
    known(f"run.training.{role}.objective", [recipe.objective], usable)
    if recipe.kl and not usable[recipe.objective].penalty:
        why = f"The objective {recipe.objective} has no such penalty."
        raise ConfigError(f"run.training.{role}.kl has no effect.", why, "Set it to 0, or choose another objective.")


def _check_verification(plan: VerificationConfig) -> None:
    from agent0.rollout.prompts import styles
    from agent0.verification.verifiers import collective

    known("run.verification.unchecked", [plan.unchecked], ["refuse", *collective()])
    if plan.judge.provider:
        provider_of(plan.judge)
        known("run.verification.judge.prompts", [plan.judge.prompts], styles())


async def open_port(name: str, settings: Settings, artifacts: Artifacts) -> Any:
    """What plays the port ``name``; whoever opens it closes it, where it can be closed.

    Raises:
        ConfigError: nothing plays it.
        DependencyError: what plays it does not start here.
    """
    openers: dict[str, Callable[[], Awaitable[Any]]] = {
        "sandbox": lambda: _sandbox(settings.sandbox, "student", settings.sandbox.workers),
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


async def _sandbox(limits: SandboxSettings, label: str, workers: int) -> LimitedSandbox:
    from infra.sandbox import open_sandbox

    return LimitedSandbox(await open_sandbox(limits, workers=workers, label=label), limits)


def _web(settings: Settings) -> Any:
    from infra.web.proxy import WebProxy

    return WebProxy(settings.web)


def _contamination(settings: Settings) -> Any:
    from infra.embeddings.benchmark_index import BenchmarkRows

    return BenchmarkRows(settings.benchmarks.folder, settings.home / "cache")


def _tool_cache() -> Any:
    from agent0.tools.cache import ToolCache

    return ToolCache()


@cache
def code_rev() -> str:
    """Version and, in a checkout, the commit that wrote an event."""
    try:
        found = version("agent0")
    except PackageNotFoundError:
        found = "source"
    commit = _commit(Path(__file__).parents[2] / ".git")
    return f"{found}+{commit[:12]}" if commit else found


def _commit(git: Path) -> str:
    """The commit that a checkout is at, empty where there is no checkout or its ref is packed."""
    try:
        if git.is_file():  # a work tree besides the first
            git = Path(git.read_text().strip().removeprefix("gitdir: "))
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        shared = git / "commondir"
        refs = git / shared.read_text().strip() if shared.exists() else git
        return (refs / head.removeprefix("ref: ")).read_text().strip()
    except OSError:
        return ""


def now() -> datetime:
    """The clock that stamps events."""
    return datetime.now(UTC)


async def until_cancelled(*work: Awaitable[None]) -> None:
    """Run several endless works; the first that fails ends all."""
    async with asyncio.TaskGroup() as group:
        for one in work:
            group.create_task(_as_coroutine(one))


async def _as_coroutine(work: Awaitable[None]) -> None:
    await work
