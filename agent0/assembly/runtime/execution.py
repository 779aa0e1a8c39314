"""Part of the rim: executes a run to its end in this process, with all handlers and the projector."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Protocol

from agent0.assembly.log.carriers import carriers
from agent0.assembly.log.waits import write_waits
from agent0.assembly.replay.forks import check_resumed
from agent0.assembly.replay.state_snapshots import state_snapshots
from agent0.assembly.runtime.app import App, open_app, run_handlers
from agent0.assembly.runtime.progress import Progress
from agent0.assembly.runtime.read_models import catch_up, reading, run_projector
from agent0.assembly.runtime.stamping import recorded, utc_now
from agent0.assembly.tooling.tool_policy import with_policy
from agent0.assembly.validate.call_forms import with_tool_form
from agent0.assembly.validate.questions import with_questions
from agent0.assembly.validate.requirements import require
from agent0.assembly.validate.run_config import check_names
from agent0.assembly.validate.served_models import undecided, untrained, with_servers
from agent0.errors import Agent0Error, ConfigError, DependencyError, OperationError, RunFailedError
from agent0.events.base import Recorded
from agent0.events.runs import RunPaused, RunResumed, RunStarted
from agent0.experiments.interchange.foreign_run import FOREIGN, FOREIGN_ID
from agent0.experiments.smaller_run import difference, shrunk
from agent0.infra.log.event_log import Log
from agent0.infra.storage.datasets import LocalQuestions
from agent0.infra.storage.documents import keep_manifest
from agent0.infra.storage.files import NAME, shortage
from agent0.projections.base import Row
from agent0.projections.events import list_events
from agent0.projections.runs import list_runs
from agent0.settings import RunConfig, Settings

LOOK_S, RECORD_S = 1.0, 5.0
"""Seconds between two looks at the disk; given to a run to record by itself that it fails."""
_ENDS = ("RunFinished", "RunFailed", "RunCancelled")
FAILED = "its process failed"
"""Why a run is paused whose execution failed."""


class Observer(Protocol):
    """Who sees how an execution goes: a terminal, a page, a test."""

    def say(self, text: str, *, warning: bool = False) -> None:
        """Take one line for a person."""
        ...

    async def follow(self, log: Log, run: str) -> Progress:
        """Read the events of ``run`` until it is over, and return what they came to."""
        ...


async def prepared(
    settings: Settings,
    say: Callable[[str], None] | None = None,
    *,
    here: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> Settings:
    """Check everything that a run of ``settings`` names and, where it is executed ``here``, needs; returns the settings
    with the tool policy that holds now and what a file of questions and servers of models decide. With ``say`` what is
    missing is said and waited for; ``tell`` takes what was found out about servers.

    Raises:
        ConfigError: settings that do not fit together.
        RequirementsError: something is missing.
    """
    run = await asyncio.to_thread(with_questions, settings.run, settings.typed)
    if run.documents.folder:
        await asyncio.to_thread(keep_manifest, LocalQuestions().documents(run.documents), settings.home)
    roles = undecided(settings)
    settings = settings.model_copy(update={"run": untrained(run, roles)})
    check_names(settings.run)
    if here:  # other machines' models are theirs
        await require(settings, say)
        served, lines = await with_servers(settings, roles)
        settings = settings.model_copy(update={"run": served})
        for line in lines:
            tell(line)
        check_names(settings.run)
    return await with_policy(settings)


def moved_servers(settings: Settings, row: Row) -> dict[str, str]:
    """Where the run of ``row`` asks its models from now on, by role: empty where ``settings`` name no other address.

    Raises:
        OperationError: a role of which they name one has no server at an address.
    """
    run = RunConfig.recorded(row["config"])
    keys = {role: f"run.{'verification.judge' if role == 'judge' else role}.base_url" for role in run.actors}
    typed = {role: url for role, url in settings.run.servers.items() if keys[role] in settings.typed}
    moved = {role: url for role, url in typed.items() if run.actors[role].provider == "openai"}
    if typed and not moved:
        why = f"No model of run {row['run']} that these name is at an address."
        raise OperationError("These servers cannot be asked.", why, "Leave the address out.")
    return run.served_by(moved).servers if moved else {}


def resumption(settings: Settings, row: Row) -> Recorded | None:
    """The event with which the run of ``row`` goes on, caused by the failure where it failed; None where it is running,
    unless it has a time, which does not pass while no process carries it, or its servers are others.

    Raises:
        OperationError: it was cancelled or deleted, or has no such servers.
    """
    name, status = str(row["run"]), row["status"]
    if row["profile"] == FOREIGN and FOREIGN_ID.fullmatch(name) and status != "finished":
        why = "Nothing of it is executed, so only its file has the rest."
        raise OperationError(f"The import of run {name} was cut off.", why, f"agent0 trajectory import {row['name']}")
    if status in ("cancelled", "deleted"):
        why = f"A {status} run is over; start another."
        raise OperationError(f"Run {name} is {status}.", why, f"See: agent0 run show {name}")
    begin = recorded(name, RunResumed(servers=(servers := moved_servers(settings, row))))
    if status == "running" and servers:
        return begin
    if status == "running" and row["config"].get("time_limit") and carriers(settings) == []:
        return begin
    if status not in ("paused", "failed"):
        return None
    if status == "paused":
        return begin
    with reading(settings) as db:
        failed = list_events(db, name, type="RunFailed", limit=100_000)[-1]
    return begin.model_copy(update={"cause": failed["id"]})


async def execute_run(
    settings: Settings, run: str, begin: Recorded | None, observer: Observer, news: str = "", *, wait: bool = False
) -> Progress:
    """Run all handlers and the projector in this process until ``run`` is over.

    ``begin`` (a RunStarted, or a RunResumed) is appended first, once everything else is in order, and ``news`` is said.
    ``wait``: for what opening it finds missing.
    On any failure, a cancellation included, the run is paused, so that nothing waits for a process that is gone.

    Raises:
        Agent0Error: what the handlers need is not there, or the log is damaged.
    """
    async with contextlib.AsyncExitStack() as stack:
        app = await _opened(stack, settings, observer, wait)
        if begin is None or not isinstance(begin.event, RunStarted):
            await check_resumed(app.log, run, app.settings, state_snapshots(app.settings, app.log))
        await catch_up(app.settings, app.log)  # tables that cannot be kept must be found out before the run begins
        await pause_abandoned(app.settings, app.log, run, observer)
        try:
            await append_begin(app.log, await fitted_begin(app, begin, observer), observer, news)
            progress = await _execute(app, run, observer)
        except BaseException as error:
            await _pause(app, run, error, observer)
            raise
        await catch_up(app.settings, app.log)
        return progress


async def _opened(stack: contextlib.AsyncExitStack, settings: Settings, observer: Observer, wait: bool) -> App:
    """Opening tests sandbox and MCP servers. Where it fails, everything that is missing is named, or waited for."""
    try:
        return await stack.enter_async_context(open_app(settings))
    except (ConfigError, DependencyError):
        await require(settings, observer.say if wait else None, opened=True)
        if not wait:
            raise
    return await stack.enter_async_context(open_app(settings))


async def append_begin(log: Log, begin: Recorded | None, observer: Observer, news: str) -> None:
    """Append ``begin``, stamped now since getting ready took its time, and say ``news``."""
    if begin:
        await log.append([begin.model_copy(update={"time": utc_now()})])
    if news:
        observer.say(news)


async def pause_abandoned(settings: Settings, log: Log, run: str, observer: Observer) -> None:
    """Pause every other run that is running by the log while no process executes it: it would take its share of the
    handlers here."""
    with reading(settings) as db:
        left = [
            str(row["run"])
            for row in list_runs(db, 100_000, hidden=True)
            if row["status"] == "running" and row["run"] != run
        ]
    if left and await log.server.alone():
        await log.append([recorded(abandoned, RunPaused(reason="no process ran it")) for abandoned in left])
        for abandoned in left:
            observer.say(
                f"Run {abandoned} was left running and no process ran it: paused. {resume_command(abandoned)}",
                warning=True,
            )


def resume_command(run: str, verb: str = "resume") -> str:
    """Return the sentence with the command that resumes ``run``."""
    return f"Go on with: agent0 run {verb} {run}"


async def fitted_begin(app: App, begin: Recorded | None, observer: Observer) -> Recorded | None:
    """``begin``, where it starts a run, with what this machine and the student's model can execute; what that changed
    is said.

    Raises:
        DependencyError, TransientError: from the model.
    """
    if begin is None or not isinstance(begin.event, RunStarted):
        return begin
    original = RunConfig.recorded(begin.event.config, begin.event.servers)
    run, notice = fitted(app, original)
    if notice:
        observer.say(notice, warning=True)
    if "models" in app.ports:
        student, notice = await with_tool_form(run.student, app.ports["models"])
        run = run.model_copy(update={"student": student})
        if notice:
            observer.say(notice)
    if run == original:
        return begin
    config, digest = run.to_record()
    event = begin.event.model_copy(update={"config": config, "config_sha": digest, "servers": run.servers})
    return begin.model_copy(update={"event": event})


_LACKING = "`agent0 sandbox check` says what a warm sandbox lacks."


def fitted(app: App, run: RunConfig) -> tuple[RunConfig, str]:
    """Make ``run`` small enough for a machine without a warm sandbox, but for what a person typed. Returns it and a
    notice, empty where nothing had to change."""
    backend = getattr(app.ports.get("sandbox"), "backend", "")
    if not backend.endswith("-cold"):
        return run, ""
    smaller = shrunk(run, app.settings.typed)
    chosen = app.settings.sandbox.backend == backend
    notice = (
        f"{f'sandbox.backend is {backend}' if chosen else f'Only {backend} works here'}: every tool call starts a "
        "process of its own, and imports what it needs. "
    )
    notice += "With auto a warm sandbox is tried first." if chosen else _LACKING
    if changed := difference(run, smaller):
        notice += f" This run is made smaller: {changed}."
    return smaller, notice


async def _execute(app: App, run: str, observer: Observer) -> Progress:
    async with asyncio.TaskGroup() as group:
        works = [group.create_task(run_handlers(app)), group.create_task(run_projector(app.settings, app.log))]
        works.append(group.create_task(_end_without_room(app, run)))
        works.append(group.create_task(write_waits(app.settings.home)))
        progress = await observer.follow(app.log, run)
        for work in works:
            work.cancel()
    return progress


async def _end_without_room(app: App, run: str) -> None:
    """End this execution where the disk was full for ``run.give_up_after``. With some room left the run fails by
    itself, and its log says so; with none nothing can be stored.

    Raises:
        RunFailedError: so it was.
    """
    begun = await anext(app.log.read(run, ["RunStarted"]))
    limit = RunConfig.recorded(begun.event.config).give_up_after if isinstance(begun.event, RunStarted) else 0
    full = 0.0
    while limit:
        await asyncio.sleep(LOOK_S)
        full = full + LOOK_S if shortage(app.settings.home) else 0.0
        if full >= limit + RECORD_S:
            why = f"It waited {full:.0f} s for {NAME} (run.give_up_after is {limit:g}). {shortage(app.settings.home)}"
            raise RunFailedError(f"Run {run} ended.", why, f"Free some space, then: agent0 run resume {run}")


async def _pause(app: App, run: str, error: BaseException, observer: Observer) -> None:
    """Pause the run: one that no process executes would take its share of the next one's handlers."""
    by_hand = isinstance(error, asyncio.CancelledError)
    paused = RunPaused(reason="stopped by hand" if by_hand else FAILED)
    with contextlib.suppress(Agent0Error):  # what went wrong before is what a person must hear
        states = [stored.type async for stored in app.log.read(run, ("RunStarted", "RunResumed", *_ENDS))]
        if not states or states[-1] in _ENDS:
            return
        await app.log.append([recorded(run, paused)])
        await catch_up(app.settings, app.log)
    observer.say(f"{'Stopped' if by_hand else 'Failed'}; nothing is lost. {resume_command(run)}", warning=True)
