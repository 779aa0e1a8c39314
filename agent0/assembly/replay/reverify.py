"""Part of the rim: a run's attempts judged again in fresh sandboxes, by today's verifiers or under other settings. What
a judge model said is read from the log, unless it is to be asked anew; no other model is called."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.replay.new_judge import Asks, NewJudge, Wait, open_judge, prefetch
from agent0.assembly.replay.stored_experiments import (
    PART,
    Progress,
    Report,
    begun_as,
    experiment_id,
    extent,
    named,
    start_of_run,
)
from agent0.assembly.runtime.plugins import known_handlers
from agent0.assembly.runtime.port_openers import open_ports
from agent0.assembly.validate.run_config import check_names
from agent0.config.setting_entries import amended
from agent0.errors import Agent0Error, ConfigError
from agent0.events.base import Event, Recorded
from agent0.events.experiments import ExperimentFinished, ExperimentStarted, RecomputeFailed
from agent0.events.runs import RunFinished, RunStarted
from agent0.events.tasks import ResultVerified
from agent0.experiments.experiment_events import check_same, events_digest, experiment_event_id, numbers, start_of
from agent0.experiments.interchange.foreign_run import IMPORT
from agent0.experiments.verdict_diff import VerdictPair, difference, recorded_opinion
from agent0.infra.log.event_log import Log
from agent0.ports.storage import Artifacts
from agent0.provenance.fork_history import read_whole
from agent0.run.lifecycle import RunState, evolve
from agent0.settings import RunConfig, Settings, VerificationConfig
from agent0.verification.panel import Opinion
from agent0.verification.verdicts import DECIDING, HANDLER, attempts_to_verify, task_of, verdicts

SECTION = "verification."
OFTEN_S = 2.0
"""Between two words on how far it is."""


@dataclass(frozen=True)
class Reverify:
    """What is asked: verdicts of ``run`` once more, with ``changes`` of its verification settings (dotted key ->
    text). ``asks``: its judge is asked anew."""

    run: str
    name: str
    changes: Mapping[str, str] = field(default_factory=dict)
    commit: bool = False
    asks: Asks = ""


@dataclass
class _RecordedVerdicts:
    """What the run itself told: verdicts of its verifiers by attempt, causes at which these gave up, its end."""

    verdicts: dict[str, ResultVerified] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)
    finished: bool = False


@dataclass(frozen=True)
class _DecisionPoint:
    """An event at which something is decided, with the state just after it."""

    cause: Recorded
    state: RunState

    @property
    def family(self) -> str:
        """Of the task."""
        task_state = self.state.tasks[task_of(self.cause.event)]
        return task_state.proposal.family if task_state.proposal else task_state.family


@dataclass
class _Decider:
    """What deciding needs. ``earlier``: what the experiment has recorded, by cause; ``judge``: who is asked anew;
    None: what a judge said is read from the log."""

    name: str
    rules: VerificationConfig
    ports: Mapping[str, Any]
    artifacts: Artifacts
    stored: _RecordedVerdicts
    earlier: Mapping[str, Sequence[Event]]
    judge: NewJudge | None = None

    def to_decide(self, case: _DecisionPoint) -> bool:
        """Whether something is decided there: in the run something was, or should have been."""
        attempts = attempts_to_verify(case.cause.event, case.state, self.rules)
        due = self.stored.finished and case.cause.id not in self.stored.given_up
        return any((due or name in self.stored.verdicts) and not a.resolved for name, a in attempts.items())

    async def decide(self, case: _DecisionPoint) -> Sequence[Event]:
        """Verdicts, or an event for each attempt that has none because its verifier raised.

        Raises:
            Agent0Error: the sandbox is away; nothing is wrong with the attempt.
        """
        if case.cause.id in self.earlier:
            return self.earlier[case.cause.id]
        event, state = case.cause.event, case.state
        try:
            read = self.judge.reader(task_of(event)) if self.judge else None
            beside = (self._opinion(event, state), self.artifacts, self.rules, self.ports["environments"])
            return await verdicts(event, state, self.ports["verifier_sandbox"], *beside, again=True, read=read)
        except Exception as error:  # a verifier is anybody's code: one old event must not end the rest
            if isinstance(error, Agent0Error) and error.kind.retryable:
                raise
            return self._failed(case, error)

    def _opinion(self, event: Event, state: RunState) -> Opinion | None:
        if not self.rules.judge.provider:
            return None
        if self.judge is not None:
            return self.judge.opinion(task_of(event))
        return recorded_opinion(state.tasks[task_of(event)], self.stored.verdicts)

    def _failed(self, case: _DecisionPoint, error: Exception) -> list[Event]:
        attempts = attempts_to_verify(case.cause.event, case.state, self.rules)
        facts = {"task": task_of(case.cause.event), "cause_id": case.cause.id, "cause_seq": case.cause.seq}
        failure = {"what": "verdict", "error": type(error).__name__, "message": str(error)[:500]}
        open_ones = [name for name, attempt in attempts.items() if not attempt.resolved]
        return [RecomputeFailed.model_validate({**facts, **failure, "attempt": name}) for name in open_ones]

    def events_of(self, case: _DecisionPoint, events: Sequence[Event]) -> list[Recorded]:
        """As they are written down, each under an id that follows from its cause."""
        ids = (experiment_event_id(self.name, case.cause.id, number) for number in range(len(events)))
        return [named(self.name, event, id, case.cause.id) for event, id in zip(events, ids, strict=True)]


@dataclass
class _Decisions:
    """What deciding gave, in the order of the causes."""

    events: list[Event] = field(default_factory=list)
    families: dict[str, str] = field(default_factory=dict)
    read: int = 0

    @property
    def verdicts(self) -> list[ResultVerified]:
        return [event for event in self.events if isinstance(event, ResultVerified)]

    def pairs(self, before: Mapping[str, ResultVerified]) -> list[VerdictPair]:
        """Beside what the run told; what it told and nobody could decide again comes last."""
        after = {event.attempt: event for event in self.verdicts}
        verdict_pairs = [
            VerdictPair(before.get(name), event, self.families[event.task]) for name, event in after.items()
        ]
        lost = [old for name, old in before.items() if name not in after]
        return [*verdict_pairs, *(VerdictPair(old, None, self.families.get(old.task, "")) for old in lost)]


async def reverify(
    settings: Settings,
    request: Reverify,
    report: Report = lambda _: None,
    wait: Wait = lambda batch, count: None,
) -> dict[str, object]:
    """Decide again, compare and, where asked to, write down verdict by verdict; killed, the same command goes on.

    Raises:
        NotFoundError: no such run.
        ConfigError: settings that decide nothing about what was logged.
        SandboxUnavailableError: verifiers have nothing to run programs in.
        OperationError: an experiment of this name asked something else.
    """
    name = experiment_id(request.name)
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(open_log(settings))
        begun = await begun_as(log, name) if request.commit else None
        start_event = await start_of_run(log, request.run)
        until = await extent(log, request.run, begun)
        original = RunConfig.recorded(start_event.config, start_event.servers)
        plan = planned(original, request.changes, request.asks)
        start = start_of("reverify", request.name, request.run, until, plan.verification.model_dump(mode="json"))
        check_same(name, begun, start)
        ports = await open_ports(("verifier_sandbox", "environments"), settings, artifact_store(settings), stack)
        stored = await _stored(log, request.run, start.until)
        stored_events = [r async for r in log.read(name)] if request.commit else []
        judge = open_judge(settings, plan, request.asks, name, log, stack)
        work = _Decider(
            name, plan.verification, ports, artifact_store(settings), stored, _by_cause(stored_events), judge
        )
        bound = settings.handlers.in_flight or known_handlers([HANDLER])[HANDLER].in_flight
        decide = partial(_decide_all, log, request, start.until, work, bound)
        await prefetch(judge, request.asks, partial(decide, None, lambda _: None), wait)
        writer = await _begin(log, request, name, start, stored_events)
        comparison = await decide(writer, report)
        summary = _summary(request, start, comparison, stored, _is_own(start_event, plan))
        await _finish(writer, name, comparison, summary)
    return summary


async def _begin(
    log: Log, request: Reverify, name: str, start: ExperimentStarted, stored_events: Sequence[Recorded]
) -> "_VerdictWriter | None":
    """What writes the experiment down, where that is asked for; its beginning is written first."""
    if not request.commit:
        return None
    writer = _VerdictWriter(log, {r.id for r in stored_events})
    await writer.add([named(name, start, experiment_event_id(name, "start", 0))])
    return writer


async def _finish(
    writer: "_VerdictWriter | None", name: str, comparison: _Decisions, summary: dict[str, object]
) -> None:
    """Write the end down, where anything is."""
    if writer:
        await writer.add([named(name, _end(comparison, summary), experiment_event_id(name, "end", 0))])
        await writer.flush()
        summary["committed"] = True


def _is_own(started: RunStarted, plan: RunConfig) -> bool:
    """Whether verifiers of ours made the run's verdicts, under the same settings."""
    return started.imported is None and RunConfig.recorded(started.config).verification == plan.verification


def planned(original: RunConfig, changes: Mapping[str, str], asks: Asks = "") -> RunConfig:
    """A run's settings with other ones of its verification. ``asks``: another judge may be asked.

    Raises:
        ConfigError: a setting that is none, or one that decides nothing about what was logged.
    """
    for key in changes:
        if not key.removeprefix("run.").startswith(SECTION):
            fix = "Settings of a verification begin with verification., as in verification.agreeing=2."
            raise ConfigError(f"{key} changes no verdict.", "Attempts stay as they were made.", fix)
    plan = amended(original, changes)
    check_names(plan)
    old, new = original.verification, plan.verification
    if new.judge.provider and new.judge != old.judge and not asks:
        why = "What a judge says is read from the log, and this one was never asked."
        fix = (
            "Leave it, set its provider to '', or ask this one: --ask calls, or --ask batch at a vendor's lower price."
        )
        raise ConfigError("run.verification.judge cannot be another one.", why, fix)
    if new.undecided != old.undecided:
        why = "It says who is asked where verifiers leave off."
        raise ConfigError("run.verification.undecided changes no verdict.", why, "Leave it as it was.")
    return plan


def _by_cause(stored_events: Iterable[Recorded]) -> dict[str, list[Event]]:
    """What the experiment has recorded already."""
    by_cause: dict[str, list[Event]] = {}
    for recorded_event in stored_events:
        if isinstance(recorded_event.event, ResultVerified | RecomputeFailed):
            by_cause.setdefault(recorded_event.cause, []).append(recorded_event.event)
    return by_cause


async def _stored(log: Log, run: str, until: int) -> _RecordedVerdicts:
    types = ("ResultVerified", "ReactionFailed", "ReactionDropped", "RunFinished")
    stored = _RecordedVerdicts()
    async for recorded_event in log.read(run, types, until=until):
        event = recorded_event.event
        if isinstance(event, ResultVerified) and recorded_event.handler in (HANDLER, IMPORT):
            stored.verdicts.setdefault(event.attempt, event)
        elif isinstance(event, RunFinished):
            stored.finished = True
        elif getattr(event, "failed_handler", "") == HANDLER:
            stored.given_up.add(str(getattr(event, "cause_id", "")))
    return stored


class _VerdictWriter:
    """Writes down what is not ``known`` to be stored, in parts that land all or none and never cut what one cause came
    to."""

    def __init__(self, log: Log, stored_ids: set[str]) -> None:
        self._log, self._known, self._part = log, stored_ids, list[Recorded]()

    async def add(self, events: Sequence[Recorded]) -> None:
        """These come next; what came before them is stored where it would be too much for one part."""
        if len(self._part) + len(events) > PART:
            await self.flush()
        self._part += [each for each in events if each.id not in self._known]

    async def flush(self) -> None:
        """Store what was added."""
        await self._log.append(self._part)
        self._part = []


async def _decide_all(
    log: Log, request: Reverify, until: int, work: _Decider, bound: int, writer: _VerdictWriter | None, report: Report
) -> _Decisions:
    """Decide at every event of the run that wants it, at most ``bound`` at once, and tell in the order of the log."""
    comparison, under_way = _Decisions(), deque[tuple[_DecisionPoint, asyncio.Task[Sequence[Event]]]]()
    clock = _Clock(report, until)

    async def next_one() -> None:
        case, deciding = under_way[0]
        events = await deciding
        under_way.popleft()
        comparison.events += events
        if writer:
            await writer.add(work.events_of(case, events))
        clock.at(case.cause.seq)

    try:
        async with aclosing(_cases(log, request.run, until, comparison)) as cases:
            async for case in cases:
                clock.begin(case.cause.seq)
                if work.to_decide(case):
                    comparison.families[task_of(case.cause.event)] = case.family
                    under_way.append((case, asyncio.ensure_future(work.decide(case))))
                if len(under_way) >= bound:
                    await next_one()
        while under_way:
            await next_one()
    finally:
        for _, deciding in under_way:
            deciding.cancel()
        await asyncio.gather(*(deciding for _, deciding in under_way), return_exceptions=True)
    clock.end()
    return comparison


async def _cases(log: Log, run: str, until: int, comparison: _Decisions) -> AsyncGenerator[_DecisionPoint]:
    """Events of the run at which something may be decided; a fork's past was decided in its parent."""
    state: RunState | None = None
    async with aclosing(read_whole(log, run, until)) as events:  # type: ignore[type-var]
        async for recorded_event in events:
            state = evolve(state, recorded_event)
            comparison.read += 1
            if recorded_event.run == run and isinstance(recorded_event.event, DECIDING) and state is not None:
                yield _DecisionPoint(recorded_event, state)


class _Clock:
    """Says now and then how far it is: by the place in the log of what was last decided."""

    def __init__(self, report: Report, until: int) -> None:
        self._tell, self._until, self._first = report, until, 0
        self._began = self._last = monotonic()

    def begin(self, seq: int) -> None:
        """The first event that is looked at."""
        self._first = self._first or seq

    def at(self, seq: int) -> None:
        """Decided up to ``seq``."""
        if monotonic() - self._last > OFTEN_S:
            self._last = monotonic()
            self._say(seq)

    def end(self) -> None:
        """All of it."""
        self._say(self._until)

    def _say(self, seq: int) -> None:
        first = self._first or self._until
        self._tell(Progress(seq - first + 1, self._until - first + 1, monotonic() - self._began))


def _summary(
    request: Reverify, start: ExperimentStarted, comparison: _Decisions, stored: _RecordedVerdicts, is_own: bool
) -> dict[str, object]:
    return {
        "experiment": experiment_id(request.name),
        "run": request.run,
        "until": start.until,
        "events": comparison.read,
        **difference(comparison.pairs(stored.verdicts)),
        "failed": len(comparison.events) - len(comparison.verdicts),
        "failures": [
            {"task": e.task, "attempt": e.attempt, "error": e.error, "message": e.message}
            for e in comparison.events
            if isinstance(e, RecomputeFailed)
        ],
        "own_settings": is_own,
        "committed": False,
    }


def _end(comparison: _Decisions, summary: Mapping[str, object]) -> ExperimentFinished:
    return ExperimentFinished(
        kind="reverify",
        events=len(comparison.verdicts),
        failed=summary["failed"],
        sha256=events_digest(comparison.events),
        summary=numbers(summary),
    )
