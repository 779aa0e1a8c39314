"""Part of the rim: experiments read a run's past from the log and write what they found under a token of their own."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from time import monotonic

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.plugins import check_plugins
from agent0.assembly.runtime.read_models import sound_log
from agent0.assembly.runtime.stamping import recorded
from agent0.assembly.validate.rewards import amended_rules
from agent0.errors import ConfigError, NotFoundError, OperationError, RewardError
from agent0.events.alarms import EventRedacted, ReactionDropped, ReactionFailed, ReactionRetried
from agent0.events.base import Event, Recorded
from agent0.events.benchmarks import TaskReviewed
from agent0.events.experiments import PREFIX, ExperimentFinished, ExperimentStarted, RecomputeFailed
from agent0.events.runs import RunStarted
from agent0.events.tasks import ResultVerified, RewardAssigned
from agent0.experiments.compare_runs import Side, side_of
from agent0.experiments.receipt_diff import (
    Receipt,
    ReceiptPair,
    events_digest,
    experiment_event_id,
    experiment_id,
    start_of,
    summary,
)
from agent0.experiments.rescore import HANDLER, RescoreFailure, Rescoring
from agent0.infra.log.event_log import Log
from agent0.provenance.fork_history import read_branch, read_whole
from agent0.settings import RewardConfig, RunConfig, Settings
from agent0.verification.human_review import verdicts_of

PART = 500
"""Events that land together, all or none."""
_FAILED = (ReactionFailed, ReactionRetried, ReactionDropped)
REVIEWS = "reviews"
"""The name that stands for what persons decided (``agent0 task review``)."""


@dataclass(frozen=True)
class Progress:
    """Events read of all, and the time that took (seconds)."""

    done: int
    all: int
    wall_s: float

    @property
    def left_s(self) -> float:
        """At the rate so far."""
        return self.wall_s / self.done * (self.all - self.done) if self.done else 0.0


Report = Callable[[Progress], None]


@dataclass(frozen=True)
class Rescore:
    """What is asked: rewards of ``run`` under ``policy`` (None: its own) with ``changes`` (dotted key below
    ``run.rewards`` -> text), verdicts of an earlier experiment instead of the run's where one is named, or those of
    persons (``REVIEWS``)."""

    run: str
    name: str
    policy: RewardConfig | None
    verdicts: str = ""
    commit: bool = False
    changes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Computed:
    """The ``number``-th receipt that follows from the event ``cause``."""

    cause: str
    number: int
    receipt: Receipt


@dataclass
class _ReceiptPairs:
    """What reading gave: pairs by the id of the run's own receipt."""

    until: int
    before: dict[str, Receipt] = field(default_factory=dict)
    after: dict[str, _Computed] = field(default_factory=dict)
    troubles: list[RescoreFailure] = field(default_factory=list)
    given_up: set[str] = field(default_factory=set)
    read: int = 0
    redacted: int = 0
    finished: bool = False

    def pairs(self) -> list[ReceiptPair]:
        """Side by side. What was given up, or had not landed yet when a run was stopped, has no counterpart."""
        out = [ReceiptPair(self.before[id], receipt.receipt) for id, receipt in self.after.items() if id in self.before]
        out += [ReceiptPair(None, f.receipt) for id, f in self.after.items() if id not in self.before and self.due(f)]
        return out + [ReceiptPair(old, None) for id, old in self.before.items() if id not in self.after]

    def due(self, receipt: _Computed) -> bool:
        return self.finished and receipt.cause not in self.given_up

    def stands(self, id: str, reward: RewardAssigned) -> None:
        """A stored receipt. Where it is what was computed, one copy is kept of both."""
        stored, computed = Receipt.of(reward), self.after.get(id)
        self.before[id] = computed.receipt if computed and computed.receipt == stored else stored


async def rescore_run(settings: Settings, request: Rescore, report: Report = lambda _: None) -> dict[str, object]:
    """Recompute the rewards of ``request.run``, compare them with its own, and store them where ``commit`` is set.

    Raises:
        NotFoundError: no such run, or no such experiment's verdicts.
        OperationError: an experiment of this name asked something else.
        ConfigError: rules that cannot be, or the run's own rules need a plugin that is not loaded.
        RewardError: a reward gives what is no finite number.
    """
    name = experiment_id(request.name)
    async with open_log(settings) if request.commit else sound_log(settings) as log:
        begun = await begun_as(log, name)
        plan = await run_config(log, request.run)
        request = _resolved(request, plan)
        start = _start(request, plan, await extent(log, request.run, begun), settings.run.plugins)
        if request.commit:
            check_same(name, begun, start)
        verdicts = await verdicts_of_source(log, request.run, request.verdicts)
        comparison = await _recompute(log, request, verdicts, start.until, report)
        _check_finite(comparison)
        outcome = {
            "experiment": name,
            "run": request.run,
            "until": comparison.until,
            "events": comparison.read,
            **summary(comparison.pairs()),
            "failed": len(comparison.troubles),
            "first_failure": f"{comparison.troubles[0].error}: {comparison.troubles[0].message}"
            if comparison.troubles
            else "",
            "redacted": comparison.redacted,
            "committed": False,
        }
        if request.commit:
            await _commit(log, name, start, comparison, outcome)
    return outcome


def _check_finite(comparison: _ReceiptPairs) -> None:
    troubles = [failure for failure in comparison.troubles if failure.error == RewardError.__name__]
    if troubles:
        raise RewardError(troubles[0].message, f"It is the first of {len(troubles):,} such rewards.")


def _resolved(request: Rescore, plan: RunConfig) -> Rescore:
    """``request`` with its changes in its policy."""
    if request.changes:
        return replace(request, policy=amended_rules(request.policy or plan.rewards, request.changes), changes={})
    if request.policy is None:
        check_plugins(plan.plugins, request.run)
    return request


def _start(request: Rescore, plan: RunConfig, until: int, plugins: Mapping[str, str]) -> ExperimentStarted:
    policy = {**(request.policy or plan.rewards).model_dump(mode="json"), "verdicts": request.verdicts}
    policy |= {"plugins": dict(plugins)} if plugins else {}
    return start_of("rescore", request.name, request.run, until, policy)


async def run_config(log: Log, run: str) -> RunConfig:
    """The settings that ``run`` began with.

    Raises:
        NotFoundError: no such run.
    """
    async for stored in log.read(run, ["RunStarted"]):
        if isinstance(stored.event, RunStarted):
            return RunConfig.recorded(stored.event.config)
    raise NotFoundError(f"There is no run {run!r}.", fix="See: agent0 run list")


async def extent(log: Log, run: str, begun: ExperimentStarted | None) -> int:
    """How far an experiment on ``run`` looks: as far as it did when it began, else to the run's present end."""
    return begun.until if begun is not None and begun.run == run else await log.last_seq(run)


def check_same(name: str, begun: ExperimentStarted | None, start: ExperimentStarted) -> None:
    """Raises OperationError where the experiment of this name asked something else than ``start``."""
    if begun is not None and begun != start:
        why = f"It is a {begun.kind} of {begun.source}." if begun.source != start.source else "Its rules were others."
        raise OperationError(f"Experiment {name} asked something else.", why, "Choose another name.")


async def _recompute(
    log: Log, request: Rescore, verdicts: Mapping[str, ResultVerified], until: int, report: Report
) -> _ReceiptPairs:
    comparison, began, first = _ReceiptPairs(until), monotonic(), 0
    fold = Rescoring(request.policy, verdicts)
    async with aclosing(read_whole(log, request.run, comparison.until)) as events:  # type: ignore[type-var]
        async for stored in events:
            _take(comparison, fold, stored, request.run)
            comparison.read += 1
            first = first or stored.seq
            if comparison.read % 2000 == 0:
                report(Progress(stored.seq - first + 1, until - first + 1, monotonic() - began))
    comparison.finished = fold.state is not None and fold.state.status == "finished"
    report(Progress(until - first + 1, until - first + 1, monotonic() - began))
    return comparison


def _take(comparison: _ReceiptPairs, fold: Rescoring, stored: Recorded, run: str) -> None:
    """A fork's past was paid in its parent: it is folded, and not reported again."""
    assigned = fold.take(stored)
    if isinstance(stored.event, EventRedacted) and stored.event.why != "aside":
        comparison.redacted += 1
        comparison.after.pop(stored.id, None)  # a receipt that was forgotten is not reported again
    if stored.run != run:
        return
    if isinstance(stored.event, RewardAssigned):
        comparison.stands(stored.id, stored.event)
    elif isinstance(stored.event, _FAILED) and stored.event.failed_handler == HANDLER:
        comparison.given_up.add(stored.event.cause_id)
    for each in assigned:
        if isinstance(each, RescoreFailure):
            comparison.troubles.append(each)
        else:
            comparison.after[each.id] = _Computed(each.cause.id, each.number, Receipt.of(each.reward))


async def verdicts_of_source(log: Log, run: str, source: str) -> dict[str, ResultVerified]:
    """By attempt of ``run``, what a finished experiment decided, or what persons did (``REVIEWS``); nothing where no
    source is named.

    Raises:
        NotFoundError: there is no such finished experiment.
        OperationError: it decided nothing, or about another run.
    """
    if not source:
        return {}
    if source == REVIEWS:
        reviews = [r.event async for r in log.read(run, ["TaskReviewed"])]
        return verdicts_of(event for event in reviews if isinstance(event, TaskReviewed))
    events = [r.event async for r in log.read(experiment_id(source))]
    begun = next((event for event in events if isinstance(event, ExperimentStarted)), None)
    finished = any(isinstance(event, ExperimentFinished) for event in events)
    if begun is None or not finished:
        raise NotFoundError(f"There is no finished experiment {source!r}.", fix="See: agent0 experiment list")
    if begun.kind != "reverify" or begun.run != run:
        why = f"It is a {begun.kind} of {begun.run}."
        raise OperationError(f"Experiment {source} holds no verdicts of {run}.", why, "See: agent0 experiment list")
    return {event.attempt: event for event in events if isinstance(event, ResultVerified)}


async def begun_as(log: Log, experiment: str) -> ExperimentStarted | None:
    """What the experiment asked when it began, None where it has not."""
    async for stored in log.read(experiment, ["ExperimentStarted"]):
        if isinstance(stored.event, ExperimentStarted):
            return stored.event
    return None


async def _commit(
    log: Log, name: str, start: ExperimentStarted, comparison: _ReceiptPairs, summary: dict[str, object]
) -> None:
    """Write what is not written yet; the closing event comes last, and what stands before it counts only with it."""
    rewards = [each for id, each in comparison.after.items() if id in comparison.before or comparison.due(each)]
    end = ExperimentFinished(
        kind="rescore",
        events=len(rewards),
        failed=len(comparison.troubles),
        sha256=events_digest(each.receipt.reward for each in rewards),
        summary=numbers(summary),
    )
    first, last = (
        named(name, start, experiment_event_id(name, "start", 0)),
        named(name, end, experiment_event_id(name, "end", 0)),
    )
    assigned = (named(name, e.receipt.reward, experiment_event_id(name, e.cause, e.number), e.cause) for e in rewards)
    failed = (
        named(name, _failed(e), experiment_event_id(name, e.cause.id, 99 + e.number), e.cause.id)
        for e in comparison.troubles
    )
    stored_ids = {r.id async for r in log.read(name)}
    await append_new(log, chain([first], assigned, failed, [last]), stored_ids)
    summary["committed"] = True


async def append_new(log: Log, events: Iterable[Recorded], stored_ids: set[str]) -> None:
    """What is not stored yet, in parts that land all or none."""
    left = (each for each in events if each.id not in stored_ids)
    while part := list(islice(left, PART)):
        await log.append(part)


def named(experiment: str, event: Event, id: str, cause: str = "") -> Recorded:
    """``event`` as what ``experiment`` says, under an ``id`` that is the same however often it is said."""
    return recorded(experiment, event).model_copy(update={"id": id, "cause": cause})


def _failed(trouble: RescoreFailure) -> RecomputeFailed:
    cause = trouble.cause
    return RecomputeFailed(
        task=trouble.task,
        attempt=trouble.attempt,
        cause_id=cause.id,
        cause_seq=cause.seq,
        what="reward",
        error=trouble.error,
        message=trouble.message,
    )


def numbers(summary: Mapping[str, object]) -> dict[str, float]:
    """Of a summary, what is a number, by dotted name."""
    out: dict[str, float] = {}
    for key, value in summary.items():
        if isinstance(value, Mapping):
            out |= {f"{key}.{name}": number for name, number in numbers(value).items()}
        elif isinstance(value, int | float):
            out[key] = float(value)
    return out


async def gather(settings: Settings, names: Sequence[str]) -> list[Side]:
    """Read the runs and experiments to compare, in this order. An experiment that only assigned rewards shares its
    run's scores and cost.

    Raises:
        NotFoundError: no such run or experiment.
        OperationError: an experiment is unfinished.
    """
    async with sound_log(settings) as log:
        return [side_of(name, await _of(log, name)) for name in names]


async def gather_different(settings: Settings, names: Sequence[str]) -> list[Side]:
    """As ``gather``, of at least two different ones.

    Raises:
        ConfigError: there is nothing to compare.
    """
    if len(set(names)) < 2:
        raise ConfigError("Nothing to compare.", f"{len(set(names))} name was given.", "Name two runs or experiments.")
    return await gather(settings, names)


async def _of(log: Log, name: str) -> list[Recorded]:
    token = name if await log.last_seq(name) else experiment_id(name)
    events = [r async for r in log.read(token)]
    started = next((r.event for r in events if isinstance(r.event, ExperimentStarted)), None)
    if not events or (started is None and not any(isinstance(r.event, RunStarted) for r in events)):
        raise NotFoundError(f"There is no run or experiment {name!r}.", fix="See: agent0 experiment list")
    if started is None:
        return [r async for r in read_branch(log, token)]
    if not any(isinstance(r.event, ExperimentFinished) for r in events):
        raise OperationError(f"Experiment {name} is unfinished.", "It counts from its closing event.")
    return [*await _behind(log, started), *events]


async def _behind(log: Log, started: ExperimentStarted) -> list[Recorded]:
    """What an experiment shares with others: of a training the receipts that it went by, of any other one everything
    of its run but what it says itself."""
    if started.kind != "retrain":
        recomputed = RewardAssigned if started.kind == "rescore" else ResultVerified
        return [r async for r in read_branch(log, started.run) if not isinstance(r.event, recomputed)]
    _, token = await behind_training(log, started)
    return [r async for r in read_branch(log, token, ["RewardAssigned"])]


async def behind_training(log: Log, started: ExperimentStarted) -> tuple[ExperimentStarted | None, str]:
    """Find the receipts a training used: the experiment that assigned them (None: the run itself), and its token. A
    training that starts from another training uses the receipts of that one."""
    while (begun := await experiment_of(log, started.source)) and begun.kind == "retrain":
        started = begun
    return (begun, experiment_id(started.source)) if begun else (None, started.run)


async def experiment_of(log: Log, source: str) -> ExperimentStarted | None:
    """How the experiment ``source`` began; None where that names a run, or nothing."""
    is_run = not source.startswith(PREFIX) and await log.last_seq(source)
    return None if is_run else await begun_as(log, experiment_id(source))
