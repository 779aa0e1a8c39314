"""Part of the rim: runs that begin at a past event of another, and whether today's code would decide the same."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from agent0.assembly.replay.past_states import differing, run_start, state_at
from agent0.assembly.replay.state_snapshots import state_snapshots
from agent0.assembly.runtime.plugins import check_plugins, known_handlers
from agent0.assembly.runtime.port_openers import benchmark_files
from agent0.assembly.runtime.stamping import new_token, recorded
from agent0.assembly.validate.base_model import check_bases
from agent0.assembly.validate.questions import forked_questions
from agent0.assembly.validate.run_config import check_names
from agent0.config.setting_entries import amended
from agent0.errors import ConfigError, NotFoundError, OperationError
from agent0.evaluation.suite import requested_benchmark
from agent0.events.alarms import AlarmRaised, EventRedacted
from agent0.events.base import Event, Recorded, effect_id
from agent0.events.checkpoints import EvaluationItemRequested, EvaluationRequested, TrainingRequested
from agent0.events.runs import IterationMeasured, RunDeleted, RunFailed, RunStarted
from agent0.events.values import Role
from agent0.handlers import Handler
from agent0.infra.log.event_log import Log
from agent0.infra.log.state_snapshots import Snapshots
from agent0.infra.storage.datasets import LocalQuestions
from agent0.ports.storage import BenchmarkFiles
from agent0.provenance.fork_history import read_branch, read_whole
from agent0.run.forking import has_another_base, redone
from agent0.run.lifecycle import RunState, evolve
from agent0.settings import RunConfig, Settings
from agent0.state.run_state import suite_key


async def fork(settings: Settings, log: Log, run: str, seq: int, changes: Mapping[str, str], name: str) -> Recorded:
    """The beginning of a run that goes on from ``run`` as of ``seq`` (0: its end), to be appended.

    ``changes`` are settings of a run by dotted key, with or without ``run.`` in front.

    Raises:
        NotFoundError: no such run or event. OperationError: the run was deleted.
        ConfigError: a setting that is none or does not fit, or a model that its adapters were not trained on.
    """
    first, end = await run_start(log, run), await log.last_seq(run)
    at = seq or end
    await require_kept(log, run)
    parent = await state_at(log, run, at, state_snapshots(settings, log))
    assert first is not None and isinstance(first.event, RunStarted)  # noqa: S101 - it has a state
    _require_executed(run, first.event)
    if at > end:
        why = f"It begins at event {first.seq} and ends at event {end}."
        raise NotFoundError(f"Run {run} cannot be forked at event {at}.", why, "Name one between; --at 0 is its end.")
    config = amended(parent.config, changes, settings.home)
    config = forked_questions(parent.config, config, changes)
    config = config.model_copy(update={"plugins": {**config.plugins, **settings.run.plugins}})
    check_names(config)
    await check_bases(log, parent, config)
    plain, digest = config.to_record()
    title, another = name or f"{first.event.name} fork", has_another_base(parent, config)
    event = first.event.model_copy(
        update={
            "name": title,
            "seed": config.seed,
            "config": plain,
            "config_sha": digest,
            "servers": config.servers,
            "parent": run,
            "parent_seq": at,
            "changes": _changes(parent.config, config),
            "redone": redone(parent, config, another_base=another),
            "another_base": another,
        }
    )
    return recorded(new_token(title, "fork"), event)


def _require_executed(run: str, start: RunStarted) -> None:
    """Raises OperationError where the attempts of ``run`` were imported: nothing of it was executed here."""
    if start.imported:
        fix = f"Judge or reward it again: agent0 experiment reverify {run}"
        raise OperationError(f"Run {run} cannot be forked.", "Its attempts were imported: it has no models.", fix)


def _changes(parent: RunConfig, config: RunConfig) -> dict[str, object]:
    """Settings of a fork that are not its parent's; where its servers are is none."""
    return differing(parent, config.served_by(dict.fromkeys(config.servers, "") | parent.servers))


async def before_training(log: Log, run: str) -> int:
    """The event before the first training of ``run``, from where a fork learns otherwise from the same attempts.

    Raises:
        OperationError: it trained nothing.
    """
    async for request in log.read(run, (TrainingRequested.__name__,)):
        return request.seq - 1
    why = "No training was due, or it ended before one."
    raise OperationError(f"Run {run} was not trained.", why, f"See: agent0 run why {run}")


async def check_rows(log: Log, run: str, files: BenchmarkFiles) -> None:
    """Raises ConfigError where the rows of a benchmark that ``run`` scores are others than those it began with, an
    Agent0Error where they are gone."""
    requested: dict[str, EvaluationRequested] = {}
    checked = set[str]()
    async for stored in read_branch(log, run, ["EvaluationRequested", "EvaluationItemRequested"]):
        match stored.event:
            case EvaluationRequested(split="benchmark") as request:
                requested[request.evaluation] = request
            case EvaluationItemRequested() as item if item.rows and item.evaluation in requested:
                request = requested[item.evaluation]
                key = suite_key(request.benchmark, request.n, request.seed)
                if key not in checked:
                    checked.add(key)
                    requested_benchmark(request, {key: item.rows}, files)


async def check_resumed(log: Log, run: str, settings: Settings, snapshots: Snapshots | None = None) -> None:
    """Raises ConfigError where ``run`` holds an adapter whose base was replaced by another since, began with a plugin
    that is not loaded, or scores benchmarks whose rows are others now; DependencyError where its file of questions, or
    a document, has changed or is gone."""
    await _check_plugins(log, run)
    begun = await run_start(log, run)
    if begun and isinstance(begun.event, RunStarted):
        config, file = RunConfig.recorded(begun.event.config), LocalQuestions(settings.home)
        for plan in (config.questions, config.questions.of_heldout):
            if plan.file:
                await asyncio.to_thread(file.read, plan)
        if config.documents.folder:
            await asyncio.to_thread(file.documents, config.documents)
    warm = begun and isinstance(begun.event, RunStarted) and begun.event.student_adapter
    async for _ in read_branch(log, run, ["RunStarted"] if warm else ["CheckpointTrained"]):
        state = await state_at(log, run, snapshots=snapshots)
        await check_bases(log, state, state.config)
        break
    await check_rows(log, run, benchmark_files(settings))


async def _check_plugins(log: Log, run: str) -> None:
    if (begun := await run_start(log, run)) and isinstance(begun.event, RunStarted):
        check_plugins(RunConfig.recorded(begun.event.config).plugins, run)


@dataclass(frozen=True)
class Mismatch:
    """An event that today's code would have written otherwise, or not at all, or one that it would have added."""

    seq: int
    id: str
    type: str
    handler: str
    recorded: dict[str, object]
    today: dict[str, object]


@dataclass
class _Check:
    handlers: Mapping[str, Handler]
    state: RunState | None = None
    expected: dict[str, tuple[Event, Recorded, str]] = field(default_factory=dict)
    spoke: set[str] = field(default_factory=set)
    """Handlers that told anything: one that is younger than the run said nothing in it."""
    decisions: int = 0

    async def take(self, stored: Recorded) -> Mismatch | None:
        """The first event that differs."""
        mismatch = (
            self._compare(stored) if stored.handler in self.handlers and stored.type != "ReactionFailed" else None
        )
        self.state = evolve(self.state, stored)
        if mismatch is None and self.state is not None:
            await self._decide(stored, self.state)
        return mismatch

    def _compare(self, stored: Recorded) -> Mismatch | None:
        self.decisions += 1
        self.spoke.add(stored.handler)
        event, _, _ = self.expected.pop(stored.id, (None, None, None))
        if type(event) is type(stored.event) and _decided(event, stored.event) == _decided(stored.event, event):
            return None
        return Mismatch(stored.seq, stored.id, stored.type, stored.handler, *_differing(stored.event, event))

    async def _decide(self, stored: Recorded, state: RunState) -> None:
        for name, handler in self.handlers.items():
            if stored.type in handler.events:
                for number, event in enumerate(await handler(stored, state, {})):
                    self.expected[effect_id(stored.id, name, number)] = (event, stored, name)


def _decided(event: Event, other: Event) -> str:
    """What ``event`` decided, as JSON. Measures decide nothing by themselves, and versions have others: of these only
    those that ``other`` has, too. Nor do sentences for people, which versions word otherwise."""
    if isinstance(event, IterationMeasured) and isinstance(other, IterationMeasured):
        both = {name: value for name, value in event.measures.items() if name in other.measures}
        event = event.model_copy(update={"measures": both})
    return event.model_dump_json(exclude=_WORDING.get(type(event)))


_WORDING: dict[type[Event], set[str]] = {RunFailed: {"reason"}, AlarmRaised: {"message"}}


def _differing(recorded: Event, today: Event | None) -> tuple[dict[str, object], dict[str, object]]:
    was, current = recorded.model_dump(mode="json"), today.model_dump(mode="json") if today else {}
    keys = [key for key in was if was[key] != current.get(key)]
    return {key: was[key] for key in keys}, {key: current.get(key) for key in keys if key in current}


@dataclass(frozen=True)
class Checked:
    """``decisions`` looked at, and the first that today's code would have made otherwise. All those from the event
    ``redacted`` on (0: there is none) rest on what was taken out of the log, and nobody can tell."""

    decisions: int
    first: Mismatch | None = None
    redacted: int = 0


async def check_run(log: Log, run: str) -> Checked:
    """Every handler that needs no port is asked again for each of its causes, in the state rebuilt from the log.

    Raises:
        NotFoundError: no such run.
        ConfigError: a plugin that it began with is not loaded.
    """
    await _check_plugins(log, run)
    pure = {name: handler for name, handler in known_handlers().items() if not handler.ports}
    check = _Check(pure)
    async with aclosing(read_whole(log, run)) as events:  # type: ignore[type-var]
        async for stored in events:
            if isinstance(stored.event, EventRedacted) and stored.event.why != "aside":
                return Checked(check.decisions, redacted=stored.seq)
            if mismatch := await check.take(stored):
                return Checked(check.decisions, mismatch)
    if check.state is None or check.state.run != run:
        raise NotFoundError(f"There is no run {run!r}.", fix="See: agent0 run list")
    return Checked(check.decisions, _left_out(check))


def _left_out(check: _Check) -> Mismatch | None:
    """What today's code would have added in a run that came to its end: requests and payments, alarms aside."""
    state = check.state
    if state is None or state.status != "finished" or state.failures:
        return None
    for id, (event, cause, handler) in check.expected.items():
        if handler in check.spoke - {"raise_alarm"} and cause.run == state.run and cause.type != "ReactionDropped":
            return Mismatch(cause.seq, id, type(event).__name__, handler, {}, event.model_dump(mode="json"))
    return None


def pairs_of(pairs: list[str] | None) -> dict[str, str]:
    """``KEY=VALUE`` of a command line.

    Raises:
        ConfigError: one without ``=``.
    """
    out = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"{pair!r} is no setting.", fix="Write KEY=VALUE, as in training.student.lr=0.001.")
        out[key.strip()] = value
    return out


def roles_of(text: str) -> tuple[Role, ...]:
    """``student``, ``teacher`` or both, comma-separated.

    Raises:
        ConfigError: anything else.
    """
    roles: dict[str, Role] = {"student": "student", "teacher": "teacher"}
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names or any(name not in roles for name in names):
        raise ConfigError(f"{text!r} names no roles.", fix="Say student, teacher, or student,teacher.")
    return tuple(roles[name] for name in dict.fromkeys(names))


async def require_kept(log: Log, run: str) -> None:
    """Require that ``run`` was not deleted.

    Raises:
        OperationError: it was.
    """
    async for deleted in log.read(run, [RunDeleted.__name__]):
        why = f"Its checkpoints and transcripts were thrown away at {deleted.time:%Y-%m-%d %H:%M}."
        raise OperationError(f"Run {run} is deleted.", why, "Its events stay: agent0 events tail --run " + run)
