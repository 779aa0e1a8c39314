"""Part of the rim: one ablation run, a variant with a seed, executed by a process of its own in a data folder of its
own."""

import asyncio
import contextlib
import fcntl
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from agent0.assembly.ablations.prompt_variant import search_prompt
from agent0.assembly.replay.forks import before_training, fork
from agent0.assembly.replay.past_states import differing, state_at
from agent0.assembly.runtime.app import App, open_app, run_handlers, started
from agent0.assembly.runtime.plugins import check_plugins, with_plugin_files
from agent0.assembly.runtime.progress import Progress, milestone_line
from agent0.assembly.runtime.stamping import recorded, utc_now
from agent0.config.loading import load
from agent0.errors import NotFoundError, OperationError
from agent0.events.base import Event, Recorded
from agent0.events.runs import RunFailed, RunPaused, RunResumed
from agent0.experiments.ablation_results import RunOutcome, as_json, from_json, outcome_of
from agent0.experiments.ablation_runs import AblationRun
from agent0.infra.log.event_log import Log
from agent0.infra.log.server_folder import write
from agent0.provenance.fork_history import past_of
from agent0.settings import RunConfig, Settings
from agent0.state.run_state import RunState
from agent0.tasks.curriculum.ladder_height import Standing

PLAN, RESULT = "cell.json", "result.json"
"""The plan of an ablation run, and its outcome."""
LOOK_S = 0.2
"""How often a process looks whether the one before it has left the folder."""
Report = Callable[[str, float | None], None]
"""(what is new, seconds left or None while unknown)."""
Climbed = Callable[[int, Standing], None]
"""(iteration, -1 for the base; where its student stands)."""


@dataclass(frozen=True)
class RunPlan:
    """The plan of an ablation run, as its folder holds it. ``settings`` are those that do not belong to the run, by
    dotted key."""

    ablation: AblationRun
    profile: str
    settings: Mapping[str, str]

    def write(self, folder: Path) -> None:
        """Write the plan into ``folder``, whole or not at all."""
        ablation = {"arm": self.ablation.variant, "seed": self.ablation.seed, "run": self.ablation.run}
        ablation |= {"origin": self.ablation.origin, "origin_folder": self.ablation.origin_folder}
        ablation |= {"search": self.ablation.search}
        config = self.ablation.config.model_dump(mode="json")
        plan = {**ablation, "profile": self.profile, "settings": dict(self.settings), "config": config}
        write(folder / PLAN, json.dumps(plan, indent=1))

    @classmethod
    def read(cls, folder: Path) -> "RunPlan":
        """Read the plan of ``folder``.

        Raises:
            NotFoundError: there is none that can be read.
        """
        try:
            plan = json.loads((folder / PLAN).read_text(encoding="utf-8"))
            origin = plan.get("origin", ""), plan.get("origin_folder", "")
            config = RunConfig.recorded(plan["config"])
            search = plan.get("search", "")
            ablation = AblationRun(plan["arm"], plan["seed"], plan["run"], config, *origin, search)
            return cls(ablation, plan["profile"], plan["settings"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            fix = "Move that folder away: the run is begun again."
            raise NotFoundError(
                f"{folder} is no run of an ablation study.", f"{type(error).__name__}: {error}.", fix
            ) from error

    def settings_in(self, folder: Path) -> Settings:
        """Load the settings of its process: its own data folder, or that of its origin, with its own embedded log."""
        settings = load(self.profile, self.settings)
        nats = settings.nats.model_copy(update={"url": ""})
        home = (folder.parent / self.ablation.origin_folder if self.ablation.origin else folder).resolve()
        return settings.model_copy(update={"home": home, "run": self.ablation.config, "nats": nats})


def read_result(folder: Path) -> RunOutcome | None:
    """Read the outcome of the ablation run of ``folder``; None while it is not finished."""
    try:
        return from_json(json.loads((folder / RESULT).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


async def execute_ablation_run(folder: Path, report: Report, climbed: Climbed = lambda *_: None) -> None:
    """Execute an ablation run: start or resume it, run it to its end, write its outcome. Only one process does so
    at a time: a later one waits for the other to end. On a ladder ``climbed`` hears where its student stands after each
    iteration.

    Raises:
        OperationError: the run was paused or cancelled.
    """
    plan = RunPlan.read(folder)
    settings = plan.settings_in(folder)
    with_plugin_files(settings)
    check_plugins(settings.run.plugins, plan.ablation.run)
    async with _locked_folder(settings.home):
        outcome = read_result(folder)
        if outcome is None and plan.ablation.search:
            outcome = await search_prompt(settings, plan.ablation, report)
        outcome = outcome or await _run(settings, plan, report, climbed)
        write(folder / RESULT, json.dumps(as_json(outcome)))


async def _run(settings: Settings, plan: RunPlan, report: Report, climbed: Climbed) -> RunOutcome:
    async with open_app(settings) as app:
        await _begin(app, plan.ablation)
        run = asyncio.create_task(run_handlers(app))
        follow = asyncio.create_task(_followed(app.log, plan.ablation.run, report, climbed))
        try:
            await asyncio.wait((run, follow), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (run, follow):
                task.cancel()
            ends = await asyncio.gather(run, follow, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end
        progress, events = follow.result()
        async for event in app.log.read(plan.ablation.run, after=events[-1].seq):
            progress.feed(event)
            events.append(event)
        return _outcome(progress.state, events, plan.ablation)


@asynccontextmanager
async def _locked_folder(folder: Path) -> AsyncIterator[None]:
    with (folder / "cell.lock").open("ab") as lock:
        while not _locked(lock):
            await asyncio.sleep(LOOK_S)
        yield


def _locked(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _begin(app: App, ablation: AblationRun) -> None:
    """Its first event, where there is none; a run that was paused goes on. It is as large as planned on any machine:
    runs of a study are compared."""
    last: Event | None = None
    async for event in app.log.read(ablation.run, ("RunStarted", "RunPaused", "RunResumed")):
        last = event.event
    if last is None:
        begin = await _forked(app, ablation) if ablation.origin else started(app.settings, ablation.run)
        await app.log.append([begin.model_copy(update={"run": ablation.run, "time": utc_now()})])
    elif isinstance(last, RunPaused):
        await app.log.append([recorded(ablation.run, RunResumed(reason="its ablation study goes on"))])


async def _forked(app: App, ablation: AblationRun) -> Recorded:
    """The beginning of ``ablation`` as a fork of its origin, just before that was trained first."""
    before, at = await state_at(app.log, ablation.origin), await before_training(app.log, ablation.origin)
    changes = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in differing(before.config, ablation.config).items()
    }
    return await fork(app.settings, app.log, ablation.origin, at, changes, ablation.run)


async def _followed(log: Log, run: str, report: Report, climbed: Climbed) -> tuple[Progress, list[Recorded]]:
    """Follow ``run`` until it is over; returns its progress and its events.

    Raises:
        OperationError: it was paused meanwhile.
    """
    progress, begin, followed = Progress(), await log.last_seq(run), [event async for event in past_of(log, run)]
    for event in followed:
        progress.begin_with(event)
    async with aclosing(log.tail(0, run)) as events:  # type: ignore[type-var]
        async for event in events:
            followed.append(event)
            milestone = progress.feed(event)
            if milestone and progress.state:
                report(milestone_line(milestone, progress.state.config.iterations), milestone.left_s)
                if milestone.standing:
                    climbed(milestone.iteration, milestone.standing)
            if progress.over:
                return progress, followed
            if isinstance(event.event, RunPaused) and event.seq > begin:
                raise OperationError(f"Run {run} was paused.", f"Reason: {event.event.reason or 'none given'}.")
    raise AssertionError("a log is followed without an end")


def _outcome(state: RunState | None, events: Sequence[Recorded], ablation: AblationRun) -> RunOutcome:
    if state is None or state.status != "finished":
        status = state.status if state else "unknown"
        why = next((event.event.reason for event in reversed(events) if isinstance(event.event, RunFailed)), "")
        why = f"{why[:1].upper()}{why[1:]}. " if status == "failed" else ""
        fix = "Move its folder away: the run is begun again."
        raise OperationError(f"Run {ablation.run} is {status}.", f"{why}Only a finished run counts.", fix)
    return outcome_of(ablation.variant, ablation.seed, state.student.id, state.config.iterations, events)


async def serve_ablation_run(folder: Path, output: IO[str], stops: Sequence[signal.Signals]) -> None:
    """Execute the ablation run of ``folder`` as a process of its own: progress goes to ``output`` line by line. It is
    cancelled by the signals ``stops``, and where standard input ends: the process that started this one has died.

    Raises:
        CancelledError: it was stopped; the same command goes on.
        Agent0Error: the run cannot be executed.
    """
    loop = asyncio.get_running_loop()
    work = asyncio.create_task(_execute_and_send(folder, output))
    for number in stops:
        loop.add_signal_handler(number, work.cancel)
    reader = asyncio.StreamReader()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    orphaned = asyncio.create_task(reader.read())
    orphaned.add_done_callback(lambda _: work.cancel())
    try:
        await work
    finally:
        orphaned.cancel()
        pipe.close()


async def _execute_and_send(folder: Path, output: IO[str]) -> None:
    def report(text: str, left_s: float | None) -> None:
        _send(output, encode_progress(text, left_s))

    def climbed(iteration: int, standing: Standing) -> None:
        _send(output, encode_standing(iteration, standing))

    await execute_ablation_run(folder, report, climbed)


def _send(output: IO[str], line: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # the reader has gone; standard input ends, too
        output.write(f"{line}\n")
        output.flush()


def encode_progress(text: str, left_s: float | None) -> str:
    """Encode one line of progress, as the process of an ablation run writes it."""
    return json.dumps({"text": text, "left_s": left_s})


def decode_progress(line: bytes) -> tuple[str, float | None]:
    """Decode a line that ``encode_progress`` made; ("", None) where it is another line."""
    try:
        message: Any = json.loads(line)
        return str(message["text"]), message["left_s"]
    except (ValueError, KeyError, TypeError):
        return "", None


def encode_standing(iteration: int, standing: Standing) -> str:
    """Encode where the student of an ablation run stands after an iteration (-1: its base), as a line of its own."""
    return json.dumps({"iteration": iteration, "by_level": dict(standing.by_level)})


def decode_standing(line: bytes) -> tuple[int, Standing] | None:
    """Decode a line that ``encode_standing`` made; None where it is another line."""
    try:
        message: Any = json.loads(line)
        return int(message["iteration"]), Standing(dict(message["by_level"]))
    except (ValueError, KeyError, TypeError):
        return None
