"""Part of the rim: Monte-Carlo values of an attempt's turns. It goes on from a turn under fresh seeds, and each
continuation is verified and rewarded as its run would have done; all of it is recorded as an evaluation of its own."""

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from statistics import variance

from agent0.assembly.evaluation.benchmark_item import answer_fields
from agent0.assembly.evaluation.benchmark_run import scored_event, taken_up
from agent0.assembly.evaluation.rollout_ports import open_rollout_ports
from agent0.assembly.evaluation.server_wait import ServerWait
from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.models.lineage import check_stored
from agent0.assembly.replay.past_states import state_at
from agent0.assembly.replay.state_snapshots import state_snapshots
from agent0.assembly.runtime.stamping import recorded
from agent0.assembly.validate.replay_requirements import require_replay
from agent0.errors import ConfigError, NotFoundError, OperationError
from agent0.evaluation.failure_modes import error_type
from agent0.evaluation.item_rollout import RolloutPorts
from agent0.events.base import Event, sha256
from agent0.events.benchmarks import BenchmarkFinished, BenchmarkStarted, ItemScored
from agent0.events.tasks import AttemptRequested, ResultVerified, RewardAssigned, TaskAttempted, TurnCompleted
from agent0.infra.log.event_log import Log
from agent0.ports.storage import Artifacts
from agent0.provenance.fork_history import read_branch
from agent0.rewards.assign import student_reward
from agent0.rollout.attempt import AttemptProgress
from agent0.rollout.attempt_events import beginning, conditions, in_episode, replayed, to_events
from agent0.rollout.claim_check import get_progress, redeem, redeem_turns
from agent0.rollout.student import Conditions, conclude, step
from agent0.rollout.workspace_store import Scratch
from agent0.run.reducers import FOLDS
from agent0.settings import Settings
from agent0.state.run_state import AttemptState, RunState
from agent0.stats.across_seeds import mean_of, quantile
from agent0.stats.intervals import wilson
from agent0.tasks.seeds import derive_seed
from agent0.verification.panel.opinion import judge_opinion
from agent0.verification.verdicts import verdicts
from agent0.verification.verifiers import Verdict
from agent0.verification.verifiers.tests import UNANSWERED, program_of

MOST = 1024
"""Continuations of a turn, at most."""
LEVEL = 0.05


@dataclass(frozen=True)
class TurnValue:
    """The mean reward of ``n`` continuations that keep the first ``turn`` turns, with its 95 % t interval, and the
    share that is right with Wilson's. ``change``: less the value one turn before, None where that was not measured,
    with Welch's interval, 95 % for all turns together (Bonferroni). ``n`` 0: no turn is left to draw, and the reward is
    the attempt's own."""

    turn: int
    n: int
    reward: float
    lower95: float | None
    upper95: float | None
    right: float
    right_lower95: float
    right_upper95: float
    undecided: int
    change: float | None = None
    change_lower95: float | None = None
    change_upper95: float | None = None


@dataclass(frozen=True)
class TurnValues:
    """The values of an attempt's turns, the evaluation that its continuations are recorded as, and what the attempt
    itself came to. ``differing``: tool outputs that came out otherwise where calls had to be made again."""

    evaluation: str
    run: str
    attempt: str
    turns: int
    reward: float
    correct: bool | None
    differing: int
    values: tuple[TurnValue, ...]


@dataclass(frozen=True)
class _PastAttempt:
    """An attempt as its log has it, and the state of its run just before it was rewarded."""

    request: AttemptRequested
    completed: Mapping[int, TurnCompleted]
    attempted: TaskAttempted
    verified: ResultVerified
    rewarded: RewardAssigned
    state: RunState


async def measure_turns(
    settings: Settings,
    run: str,
    attempt: str,
    turns: Sequence[int] | None,
    n: int = 16,
    seed: int = 0,
    say: Callable[[str], object] = lambda _: None,
) -> TurnValues:
    """Continue ``attempt`` of ``run`` from each of ``turns`` (None: from all) ``n`` times. What is recorded is not
    asked again, so the same call goes on where it was cut; the run itself stays as it is.

    Raises:
        NotFoundError: no such attempt, or what it left is gone. ConfigError: it has no such turn, or ``n`` is none.
        OperationError: it was never rewarded, or cannot be made again.
        RequirementsError: something is missing that its student needs.
        DependencyError: a model's server or the sandbox is away.
    """
    if not 1 <= n <= MOST:
        raise ConfigError(f"{n} continuations cannot be made.", "", f"Ask for 1 to {MOST}.")
    store = artifact_store(settings)
    async with open_log(settings) as log, AsyncExitStack() as stack:
        past = await _past(settings, log, run, attempt)
        kept = _checked(turns, past.attempted)
        settings = settings.model_copy(update={"run": past.state.config})
        await check_stored(log, store, f"{run}/{past.request.student}", past.request.adapter)
        await require_replay(settings, [past.state.config])
        ports = await open_rollout_ports(settings, store, stack, log)
        began = _began(run, past, n, seed)
        evaluation = f"turns-{sha256(began.model_dump_json())[:10]}"
        say(f"Evaluation {evaluation}: {n} continuations of each turn of {attempt}. The same command resumes it.")
        limit_s = settings.run.give_up_after
        wait = ServerWait(say, evaluation, "the same command", answered=True, give_up_after_s=limit_s)
        recorded_items, (name,) = await taken_up(log, evaluation, began), began.benchmarks
        work = _Continuations(log, evaluation, name, past, ports, store, wait, recorded_items)
        return await _measured(work, kept, n, seed, say)


async def _measured(
    work: "_Continuations", kept: Sequence[int], n: int, seed: int, say: Callable[[str], object]
) -> TurnValues:
    """The values of the turns ``kept``, recorded where anything was asked."""
    past, earlier, samples = work.past, len(work.scored), dict[int, list[ItemScored]]()
    for turn in kept:
        samples[turn] = await work.of_turn(turn, n, seed) if turn < past.attempted.turns else []
        say(f"{past.request.attempt}, turn {turn} of {past.attempted.turns}: {len(samples[turn])} continuations")
    values = [_value(turn, items, past) for turn, items in samples.items()]
    result = TurnValues(
        evaluation=work.evaluation,
        run=work.benchmark.partition("/")[0],
        attempt=past.request.attempt,
        turns=past.attempted.turns,
        reward=past.rewarded.total,
        correct=past.verified.correct,
        differing=work.differing,
        values=tuple(_with_changes(values, samples)),
    )
    if len(work.scored) > earlier:
        stored = work.store.put(json.dumps(asdict(result), sort_keys=True).encode(), "application/json")
        await work.log.append([recorded(work.evaluation, BenchmarkFinished(results=stored))])
    return result


async def _past(settings: Settings, log: Log, run: str, attempt: str) -> _PastAttempt:
    names = [t.__name__ for t in (AttemptRequested, TurnCompleted, TaskAttempted, ResultVerified, RewardAssigned)]
    events: dict[type, Event] = {}
    completed: dict[int, TurnCompleted] = {}
    run_of, before = run, 0
    async for stored in read_branch(log, run, names):
        event = stored.event
        if getattr(event, "attempt", "") == attempt:
            events[type(event)] = event
            if isinstance(event, TurnCompleted):
                completed[event.turn] = event
            run_of, before = stored.run, stored.seq - 1
    request, attempted = events.get(AttemptRequested), events.get(TaskAttempted)
    verified, rewarded = events.get(ResultVerified), events.get(RewardAssigned)
    if not isinstance(request, AttemptRequested):
        fix = f"See: agent0 trajectory list {run}"
        raise NotFoundError(f"Run {run} has no attempt {attempt[:80]!r}.", "Items of evaluations have no turns.", fix)
    if not (
        isinstance(attempted, TaskAttempted)
        and isinstance(verified, ResultVerified)
        and isinstance(rewarded, RewardAssigned)
    ):
        what = f"{attempt} has no reward, with which its turns could be compared."
        raise OperationError(what, "It goes on, or was given up.", f"See: agent0 trajectory show {attempt} {run}")
    state = await state_at(log, run_of, before, state_snapshots(settings, log))
    return _PastAttempt(request, completed, attempted, verified, rewarded, state)


def _checked(turns: Sequence[int] | None, attempted: TaskAttempted) -> list[int]:
    """The turns to go on from; 0 is the task itself."""
    possible = range(attempted.turns + 1)
    wrong = [turn for turn in turns or () if turn not in possible]
    if wrong or turns == []:
        what = f"{attempted.attempt} has no turn {wrong[0]}." if wrong else "No turn is named."
        raise ConfigError(what, f"It took {attempted.turns}.", f"Name some of 0 to {attempted.turns}, or all.")
    return sorted({*turns}) if turns else [*possible]


def _began(run: str, past: _PastAttempt, n: int, seed: int) -> BenchmarkStarted:
    return BenchmarkStarted(
        name=run,
        benchmarks=(f"{run}/{past.request.attempt}",),
        modes=("tools",),
        samples=n,
        limit=0,
        seed=seed,
        actor=past.state.config.student.model_dump(mode="json"),
        adapter=past.request.adapter,
        checkpoint=past.request.student,
        files={},
        versions={"prompt": past.attempted.prompt, "rewards": past.rewarded.set},
    )


@dataclass
class _Continuations:
    """Makes continuations of one attempt; ``scored`` are those recorded."""

    log: Log
    evaluation: str
    benchmark: str
    past: _PastAttempt
    ports: RolloutPorts
    store: Artifacts
    wait: ServerWait
    scored: list[ItemScored]
    differing: int = 0

    async def of_turn(self, turn: int, n: int, seed: int) -> list[ItemScored]:
        """All ``n`` that keep ``turn`` turns, in order; what is missing is made."""
        name = f"turn-{turn}"
        finished = {item.sample: item for item in self.scored if item.item == name}
        missing = [sample for sample in range(n) if sample not in finished]
        row = self.past.request.proposal.row
        in_steps = bool(row and row.episode and row.episode.tools)
        start = await self._start(turn, self._conditions(self.past.request)) if missing and not in_steps else None
        room = asyncio.Semaphore(self.past.state.config.evaluation.at_once)

        async def make(sample: int) -> None:
            async with room:
                drawn = derive_seed("turn", self.past.request.seed, turn, sample, seed)
                item = await self.wait.through(lambda: self._continued(start, turn, sample, drawn))
                await self.log.append([scored_event(self.evaluation, item)])
                finished[sample] = item
                self.scored.append(item)

        async with asyncio.TaskGroup() as group:
            for sample in missing:
                group.create_task(make(sample))
        return [finished[sample] for sample in range(n)]

    async def _start(self, turn: int, ports: Conditions) -> AttemptProgress:
        """The attempt behind ``turn`` turns: as it was stored, else its calls are made again."""
        past, task, attempted = self.past, self.past.request.proposal, self.past.attempted
        if turn in past.completed:
            return await get_progress(past.completed[turn].progress, self.store)
        transcript = redeem_turns(attempted.transcript, attempted.transcript_artifact, self.store)
        if not turn:
            return beginning(task, ports)
        trajectory = redeem(attempted.trajectory, attempted.trajectory_artifact, self.store)
        try:
            progress, differing = await replayed(task, transcript, trajectory, attempted.turns, turn, ports)
        except ValueError as error:
            what = f"Turn {turn} of {attempted.attempt} cannot be made again: {error}."
            raise OperationError(what, "Its settings or its tools are others.", "Name an earlier turn.") from error
        self.differing += differing
        return progress

    def _conditions(self, request: AttemptRequested) -> Conditions:
        ports = self.ports
        scratch = Scratch(self.store)
        worlds = (ports.models, ports.sandbox, ports.tool_cache, scratch, ports.web, ports.tools)
        return replace(conditions(request, self.past.state, *worlds), joint=False)

    async def _continued(self, start: AttemptProgress | None, turn: int, sample: int, seed: int) -> ItemScored:
        """Go on from ``start`` to the end, an episode of an environment from its begin with the same steps; verdict
        and reward are those that the run would have given."""
        past, ports = self.past, self.ports
        request = past.request.model_copy(update={"seed": seed})
        async with in_episode(request.proposal, self._conditions(request), ports.environments) as around:
            attempt = start or await self._start(turn, around)
            while attempt.end is None:
                attempt = await step(attempt, around)
        if program := program_of(request.proposal, [turn.text for turn in attempt.written]):
            attempt = attempt.but(answer=program, end="answered" if attempt.end in UNANSWERED else attempt.end)
        events = await to_events(request, attempt, around.artifacts)
        state = _folded(_as_requested(past), events)
        ask = judge_opinion(ports.models, state.config.verification.judge, state.config.seed, state.run, request.task)
        judged = await verdicts(
            events[-1], state, ports.verifier_sandbox, ask, around.artifacts, environments=ports.environments
        )
        attempt_verdicts = [event for event in judged if event.attempt == request.attempt]
        state = _folded(state, attempt_verdicts)
        receipt = student_reward(state, state.config.rewards, request.task, request.attempt).assign()
        verdict = (
            Verdict(attempt_verdicts[0].correct, attempt_verdicts[0].reason)
            if attempt_verdicts
            else Verdict(None, "no verifier decides")
        )
        solved = conclude(attempt)
        return ItemScored(
            benchmark=self.benchmark,
            item=f"turn-{turn}",
            mode="tools",
            sample=sample,
            **answer_fields(solved, verdict, self.store),
            metrics={"reward": receipt.total},
            error=error_type(verdict.correct, verdict.reason, solved.end, solved.answer),
        )


def _as_requested(past: _PastAttempt) -> RunState:
    """The state of the run with the attempt not made yet."""
    state, request = past.state, past.request
    task = state.tasks[request.task]
    attempts = {**task.attempts, request.attempt: AttemptState(request.number)}
    return replace(state, tasks={**state.tasks, request.task: replace(task, attempts=attempts)})


def _folded(state: RunState, events: Sequence[Event]) -> RunState:
    for event in events:
        state = FOLDS[type(event)](state, event)
    return state


def _value(turn: int, items: Sequence[ItemScored], past: _PastAttempt) -> TurnValue:
    if not items:
        share = float(past.verified.correct is True)
        undecided = int(past.verified.correct is None)
        return TurnValue(turn, 0, past.rewarded.total, None, None, share, share, share, undecided)
    mean, right = mean_of([item.metrics["reward"] for item in items]), sum(item.correct is True for item in items)
    low, high = wilson(right, len(items))
    undecided = sum(item.correct is None for item in items)
    share = right / len(items)
    return TurnValue(turn, len(items), mean.value, mean.low, mean.high, share, low, high, undecided)


def _with_changes(values: Sequence[TurnValue], samples: Mapping[int, Sequence[ItemScored]]) -> list[TurnValue]:
    """With how each differs from the one a turn before it, where that is among them."""
    by_turn = {value.turn: value for value in values}
    level = LEVEL / max(1, sum(value.turn - 1 in by_turn for value in values))
    changed = []
    for value in values:
        before = by_turn.get(value.turn - 1)
        if before is not None:
            half = _half_width(samples[before.turn], samples[value.turn], level)
            change = value.reward - before.reward
            bounds = (None, None) if half is None else (change - half, change + half)
            value = replace(value, change=change, change_lower95=bounds[0], change_upper95=bounds[1])
        changed.append(value)
    return changed


def _half_width(before: Sequence[ItemScored], after: Sequence[ItemScored], level: float) -> float | None:
    """Half of Welch's interval of a difference of means; an outcome that is known has no error."""
    parts = [[item.metrics["reward"] for item in items] for items in (before, after) if items]
    if any(len(part) < 2 for part in parts):
        return None
    errors = [(variance(part) / len(part), len(part) - 1) for part in parts]
    whole = sum(error for error, _ in errors)
    if not whole:
        return 0.0
    degrees = whole**2 / sum(error**2 / degrees for error, degrees in errors)
    return quantile(1 - level / 2, max(1, math.floor(degrees))) * math.sqrt(whole)


def value_lines(result: TurnValues) -> list[str]:
    """The values of turns in sentences: an overview, then the turns that change the reward for sure."""
    verdict = {True: "right", False: "wrong", None: "undecided"}[result.correct]
    lines = [f"{result.attempt} of {result.run}: {result.turns} turns, {verdict}, reward {result.reward:.3f}."]
    if result.differing:
        lines.append(f"{result.differing} tool outputs came out otherwise when its calls were made again; the recorded "
                     "ones stand in its messages.")  # fmt: skip
    sure = [v for v in result.values if v.change_lower95 is not None and v.change_upper95 is not None]
    moved = [v for v in sure if (v.change_lower95 or 0.0) > 0 or (v.change_upper95 or 0.0) < 0]
    for value in moved:
        lines.append(f"Turn {value.turn} changes the expected reward by {value.change:+.3f} "
                     f"({value.change_lower95:+.3f} to {value.change_upper95:+.3f}).")  # fmt: skip
    if sure and not moved:
        lines.append("No turn changes the expected reward by more than chance would.")
    where = f"{result.evaluation} --evaluation {result.run}/{result.attempt}"
    return [*lines, f"Each continuation can be read: agent0 trajectory list {where}"]
