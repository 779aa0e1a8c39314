"""The composition root, part of the rim: settings become a log, ports, handlers and tables that know one another."""

import asyncio
import gc
import importlib.util
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from agent0.assembly.log.access import check_log, open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.log.carriers import carrying
from agent0.assembly.log.integrity import sealer
from agent0.assembly.models.warm_start import WarmStart
from agent0.assembly.replay.state_snapshots import state_snapshots
from agent0.assembly.runtime.mcp_tools import mcp_tools
from agent0.assembly.runtime.model_ports import weights_of
from agent0.assembly.runtime.plugins import known_handlers
from agent0.assembly.runtime.port_openers import open_ports
from agent0.assembly.runtime.providers import provider_of
from agent0.assembly.runtime.stamping import code_rev, new_token, recorded, utc_now
from agent0.errors import Agent0Error, AuthError, DependencyError
from agent0.events.base import Event, Recorded, sha256
from agent0.events.runs import PRIORITY, RunStarted
from agent0.events.values import DOCUMENTS
from agent0.handlers import Handler, require_plugins
from agent0.infra.log.event_log import Log
from agent0.infra.log.streams import Reactor
from agent0.infra.log.users.roles import require_rights
from agent0.infra.storage.datasets import require_questions
from agent0.ports.storage import Artifacts
from agent0.provenance.fork_history import Branches
from agent0.rollout.prompts import ABOUT_PASSAGE, ANY, CRITIQUE, JUDGE, prompt
from agent0.rollout.student import student_prompt
from agent0.run.lifecycle import RunState, evolve
from agent0.settings import ActorConfig, RunConfig, Settings
from agent0.state.rules import VERSIONS

GARBAGE = (20_000, 20, 20)
"""How rarely a process that works looks for cycles: it holds thousands of states that are none, and to look them all
through took a seventh of its time."""


@dataclass(frozen=True)
class App:
    """What a process that works has: the log, the artifact store, and the ports its handlers asked for."""

    settings: Settings
    log: Log
    artifacts: Artifacts
    handlers: Mapping[str, Handler]
    ports: Mapping[str, Any]


@asynccontextmanager
async def open_app(settings: Settings, names: Sequence[str] = ()) -> AsyncIterator[App]:
    """Everything that the handlers ``names`` (none: all) need, given back at the end.

    Raises:
        ConfigError: no such handler, or one that wants a port there is not.
        AuthError: the log's key is that of another role.
        SandboxUnavailableError: a sandbox did not pass its self-test.
        DependencyError: an MCP server that settings name does not tell its tools.
    """
    chosen = known_handlers(names)
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(open_log(settings, make=True))
        await require_rights(log, chosen)
        await check_log(settings, log, chosen.values())
        artifacts = artifact_store(settings)
        port_names = sorted({port for handler in chosen.values() for port in handler.ports})
        ports: dict[str, Any] = {"artifacts": artifacts, "history": Branches(log)}
        missing = [name for name in port_names if name not in ports]
        ports |= await open_ports(missing, settings, artifacts, stack, log)
        if "tools" in ports:
            ports["tools"] |= await mcp_tools(settings, ports["sandbox"])
        yield App(settings, log, artifacts, chosen, ports)


async def run_handlers(app: App, stands: Callable[[], None] = lambda: None) -> None:
    """React until cancelled, and seal what was stored; then finish what is in hand. ``stands`` is called once they do.

    Raises:
        LogError: the log was altered meanwhile.
    """
    from agent0.infra.bus.bus import Bus  # noqa: PLC0415 - faststream

    bus = Bus(
        log=app.log,
        handlers=list(app.handlers.values()),
        ports=app.ports,
        evolve=evolve,
        settings=app.settings,
        code_rev=code_rev(),
        clock=utc_now,
        snapshots=state_snapshots(app.settings, app.log),
        lacks=partial(lacks, app.handlers),
        model_of=partial(model_of, app.handlers),
    )
    starting, seals = asyncio.ensure_future(bus.start()), sealer(app.settings, app.log)
    works, collecting = [starting], gc.get_threshold()
    try:
        await asyncio.shield(starting)  # a cancellation inside would be swallowed there, and this would never end
        gc.freeze()
        gc.set_threshold(*GARBAGE)
        works.append(asyncio.ensure_future(seals.run()))
        with carrying(app.settings, len(app.handlers)):
            stands()
            await asyncio.shield(works[-1])
    finally:
        gc.set_threshold(*collecting)
        gc.unfreeze()
        seals.end()
        await asyncio.wait(works)
        if starting.exception() is None:
            await bus.stop()
        works[-1].exception()  # whoever waits has been told, or is being cancelled
        await seals.finish()


def started(settings: Settings, name: str = "", warm: WarmStart | None = None, priority: int = PRIORITY) -> Recorded:
    """The beginning of a new run of ``settings``, to be appended; ``.run`` is its new id. ``warm``: the adapter that
    its student begins with; ``priority``: its weight beside other runs, 1 to 100."""
    run = settings.recorded_run
    config, digest = run.to_record()
    roles = {"teacher": settings.run.teacher.prompts, "student": settings.run.student.prompts}
    plan, kinds = settings.run.curriculum, (False, True) if settings.run.curriculum.long else (False,)
    domains = dict.fromkeys([*plan.domains, *filter(None, [settings.run.questions.domain])])
    tools = {"teacher": True, "student": settings.run.student.uses_tools}
    prompts = [
        prompt(roles[role], d, role, long=kind, tools=tools[role]) for role in roles for d in domains for kind in kinds
    ]
    if settings.run.verification.judge.provider:
        prompts += [prompt(settings.run.verification.judge.prompts, d, JUDGE) for d in domains]
    if settings.run.documents.folder:
        prompts += [prompt(roles["teacher"], ANY, ABOUT_PASSAGE), student_prompt(settings.run.student, DOCUMENTS)]
    if settings.run.student.self_critique:
        prompts.append(prompt(roles["student"], ANY, CRITIQUE))
    title = name or settings.profile
    event = RunStarted(
        name=title,
        profile=settings.profile,
        seed=settings.run.seed,
        config=config,
        config_sha=digest,
        servers=run.servers,
        rules=dict(VERSIONS),
        prompts={p.name: p.version for p in prompts},
        student_adapter=warm and warm.adapter,
        student_base=warm.base if warm else "",
        priority=priority,
    )
    return recorded(new_token(title, "run"), event)


async def until_cancelled(*work: Awaitable[None]) -> None:
    """Run several endless works; the first that fails ends all."""
    async with asyncio.TaskGroup() as group:
        for awaitable in work:
            group.create_task(_as_coroutine(awaitable))


async def _as_coroutine(work: Awaitable[None]) -> None:
    await work


CARD_S = 10.0  # a driver that does not answer by then is no driver
EMBEDDER = ("sentence_transformers", "faiss")


async def lacks(
    handlers: Mapping[str, Handler], reactor: Reactor, basis: RunState | Event | None
) -> DependencyError | None:
    """What this process has not, of what ``reactor``, one of its ``handlers``, needs for the run with the state
    ``basis``, or for a task that was submitted: a file of a user, a package, the key of a vendor, the folder of a
    model, a graphics card. None where it has everything."""
    config = getattr(basis, "config", None)
    if config is None:
        return None
    handler, run = handlers[reactor.name], config if isinstance(config, RunConfig) else RunConfig.recorded(config)
    looks: list[Callable[[], object]] = [partial(require_plugins, run)] if handler.plugins else []
    looks += [partial(_check_actor, actor) for actor in _actors(handler, run)]
    if "question_file" in handler.ports:
        looks.append(partial(require_questions, run.questions, run.documents))
    if "embedders" in handler.ports:
        looks.append(partial(_check_embedder, run))
    for look in looks:
        try:
            await asyncio.to_thread(look)
        except DependencyError as error:
            return error
        except AuthError as error:
            return DependencyError("a key of a vendor", f"{error.what} {error.why}".strip(), error.fix)
        except Agent0Error:
            continue  # what no process can mend, the reaction itself records
    return None


def model_of(handlers: Mapping[str, Handler], reactor: Reactor, state: RunState | None) -> str:
    """The digest of the weights, base and adapter, that ``reactor``, one of ``handlers``, loads for a run of ``state``;
    empty where it loads none: a vendor's, a scripted one's, a training's, which has a process of its own."""
    handler = handlers[reactor.name]
    role = next((role for role in handler.roles if role in ("student", "teacher")), "")
    if state is None or not role or "models" not in handler.ports or "trainers" in handler.ports:
        return ""
    actor = state.config.student if role == "student" else state.config.teacher
    try:
        if provider_of(actor).folder is None:
            return ""
    except Agent0Error:
        return ""  # the reaction says so
    checkpoint = state.teacher if role == "teacher" else state.student
    return sha256(repr((weights_of(actor), checkpoint.adapter and checkpoint.adapter.sha256)))[:16]


def _actors(handler: Handler, run: RunConfig) -> list[ActorConfig]:
    judge = run.verification.judge
    by_role = {"student": run.student, **({"teacher": run.teacher} if run.has_teacher else {})}
    by_role |= {"judge": judge} if judge.provider else {}
    return [by_role[role] for role in handler.roles if role in by_role]


def _check_actor(actor: ActorConfig) -> None:
    provider = provider_of(actor)
    if provider.check:
        provider.check(actor)
    local = provider.folder is not None
    if local and actor.device.startswith("cuda") and not _has_card():
        fix = "Start `agent0 handlers run` on a machine with a graphics card, or name another device."
        raise DependencyError("a graphics card", f"The run names the device {actor.device}.", fix)


def _has_card() -> bool:
    """Whether the driver lists a card. The tool alone says nothing: it stays where a driver was taken away."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return False
    try:
        bare = {"PATH": "/usr/bin:/bin"}
        listing = subprocess.run([tool, "-L"], env=bare, capture_output=True, timeout=CARD_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listing.returncode == 0 and listing.stdout.startswith(b"GPU ")


def _check_embedder(run: RunConfig) -> None:
    missing = [name for name in EMBEDDER if importlib.util.find_spec(name) is None]
    if run.curriculum.embedder == "minilm" and missing:
        raise DependencyError("the embedding model", f"Not installed: {', '.join(missing)}.", "make setup")
