"""How a run goes, read from its log alone: so it can be watched from any process, and from the beginning again."""

from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean
from typing import Any

from agent0.events import alarms, checkpoints, runs
from agent0.events.base import Recorded
from agent0.infra.log.event_log import Log
from agent0.infra.log.state_snapshots import Snapshots
from agent0.provenance.fork_history import past_of
from agent0.run.lifecycle import awaited, earliest, evolve
from agent0.run.requests import evaluation_progress, trained_roles
from agent0.state.run_state import RunState, first_student, iteration_of
from agent0.tasks.curriculum.ladder_height import Standing, attempted_height, on_ladder

PROPOSING = "proposing"
"""A phase for people: of ``tasks``, the part before the first attempt."""
SEVERAL = 2
"""Failed tries of a handler from which it is told of: a single one mostly passes."""
LONGEST = 160
"""Characters of what the handler failed of."""
OVER = ("finished", "failed", "cancelled")
_UNTRAINED = "nothing to learn from"
GIVEN_UP = {
    "train_checkpoint": "a training failed",
    "evaluate_checkpoint": "its evaluation failed",
    "evaluate_item": "its evaluation failed",
    "judge_checkpoint": "its judgement failed",
}


_VERDICTS: dict[type, str] = {checkpoints.CheckpointPromoted: "promoted", checkpoints.CheckpointRejected: "rejected"}


@dataclass(frozen=True)
class Milestone:
    """The results of a finished iteration (-1: scoring the first student). ``left_s`` is None while it cannot be
    estimated."""

    iteration: int
    accuracy: float | None
    tool_use: float | None
    frontier: float | None
    reward: float | None
    verdict: str
    events: int
    seconds: float
    left_s: float | None
    start: str = "untrained"
    standing: Standing | None = None
    """On a ladder: where the student that was scored last stands."""


@dataclass(frozen=True)
class Pace:
    """Where a run is now. ``done`` of ``total`` attempts of this iteration, or items of the evaluations under way;
    ``rate``: how many a second, from the phase's begin to the last event; ``left_s`` for the others. ``total`` 0:
    nothing is counted."""

    phase: str
    iteration: int
    done: int
    total: int
    rate: float
    left_s: float | None
    training: str = ""
    """How far the checkpoint in training is."""
    waits: str = ""
    """What the run waits for; empty where it does not."""
    failing: str = ""
    """The handler that fails again and again, and why; ``left_s`` is None then. Empty where none does."""


@dataclass
class FailedTries:
    """The reactions whose last try failed: (handler, id of the cause) -> how often they failed, and of what."""

    _open: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)

    def feed(self, recorded: Recorded) -> None:
        """Take one event in: a try that failed, or an effect, with which a reaction is done."""
        match recorded.event:
            case alarms.ReactionTried(outcome="failed") as tried:
                key = tried.tried_handler, tried.cause_id
                why = " ".join(f"{tried.error}: {tried.message}".split()).removesuffix(":").rstrip(".")
                self._open[key] = (self._open.get(key, (0, ""))[0] + 1, why)
            case _:
                self._open.pop((recorded.handler, recorded.cause), None)

    def clear(self) -> None:
        """Forget them: what fails still is noted at its next try."""
        self._open.clear()

    def text(self) -> str:
        """The handler that failed most often, and why; empty where none failed several times."""
        counts: dict[str, int] = {}
        for (name, _), (count, _) in self._open.items():
            counts[name] = counts.get(name, 0) + count
        worst = max(counts, key=lambda name: counts[name], default="")
        if counts.get(worst, 0) < SEVERAL:
            return ""
        why = [why for (name, _), (_, why) in self._open.items() if name == worst][-1]
        why = why if len(why) <= LONGEST else f"{why[:LONGEST]}…"
        return f"{worst} failed {counts[worst]:,} times: {why}, tries again"


@dataclass
class Progress:
    """The progress of a run, folded from its events in order."""

    state: RunState | None = None
    events: int = 0
    trainings: dict[str, int] = field(default_factory=dict)
    """Checkpoints asked for and not made yet, with the seed of each."""
    waiting: dict[str, str] = field(default_factory=dict)
    """What is waited for now, by the handler that waits."""
    retries: FailedTries = field(default_factory=FailedTries)
    _since: datetime | None = None
    _entered: datetime | None = None
    """When the present phase began."""
    _before: int = 0
    _last: datetime | None = None
    _score: checkpoints.CheckpointEvaluated | None = None
    _verdict: str = ""
    _spent: list[float] = field(default_factory=list)
    _partial: bool = False
    """The iteration under way was begun before the snapshot that this began with."""
    _by_level: dict[str, float] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        """Nothing more will happen, unless a run that failed is resumed."""
        return self.state is not None and self._since is not None and self.state.status in OVER

    def begin_with(self, recorded: Recorded) -> None:
        """Take in an event of what a fork's run shares with its parent: its state begins there, its clock does not."""
        self.state = evolve(self.state, recorded)

    def begin_at(self, state: RunState) -> None:
        """Begin in the middle of a run. What its iteration came to is not known at its end, nor how long it took."""
        self.state, self._partial, self._spent = state, True, [0.0]

    def feed(self, recorded: Recorded) -> Milestone | None:
        """Take one event in; the milestone it completes, if it does."""
        before, self.state = self.state, evolve(self.state, recorded)
        if self.state is None:
            return None
        self.events += 1
        self._last = recorded.time
        self._since = self._since or recorded.time
        if self._entered is None or before is None or before.phase != self.state.phase:
            self._entered = recorded.time
            self.retries.clear()
        self.note(recorded)
        self.retries.feed(recorded)
        if before is None or not _moved_on(before := earliest(before), earliest(self.state)):
            return None
        milestone = self._complete(before, recorded.time)
        if self._partial:
            self._partial, self._spent = False, self._spent[:1]
            return None
        return milestone

    def pace(self, moment: datetime) -> Pace | None:
        """Where the run is at ``moment``; None before it has started."""
        state = awaited(self.state) if self.state else None
        if state is None:
            return None
        phase: str = state.phase
        done, total = evaluation_progress(state)
        if phase == "tasks" and state.proposing:
            phase, done, total = PROPOSING, sum(t.proposed for t in state.tasks.values()), state.tasks_asked
        elif phase == "tasks":
            done, total = state.resolved_attempts, state.tasks_asked * state.config.attempts
        rate, left = self._rate(moment, done, total)
        failing = self.retries.text()
        left = None if failing else left
        return Pace(phase, state.iteration, done, total, rate, left, waits=self._waits(state), failing=failing)

    def _rate(self, moment: datetime, done: int, total: int) -> tuple[float, float | None]:
        """Items a second up to the last event, and the seconds left; None where that cannot be told, or is over: a
        model that answers a hundred at once is silent until it has."""
        entered, last = self._entered or moment, self._last or moment
        until = last if last > entered else moment
        spent = (until - entered).total_seconds()
        if not done or spent <= 0:
            return 0.0, None
        left = (total - done) * spent / done - (moment - until).total_seconds()
        return done / spent, left if left >= 0 else None

    def _waits(self, state: RunState) -> str:
        if state.status == "paused":
            return f"paused; agent0 run resume {state.run} goes on"
        return "waits for " + "; ".join(dict.fromkeys(self.waiting.values())) if self.waiting else ""

    def note(self, recorded: Recorded) -> None:
        """Remember what of an event the state of a run does not hold; ``NOTED`` are those that have any."""
        match recorded.event:
            case alarms.DependencyLost() | alarms.DependencyRestored() as change:
                self._note_waiting(change)
            case checkpoints.CheckpointEvaluated(split="validation", forced_tool=False) as scored:
                self._score = scored
            case checkpoints.TrainingRequested() as request:
                self.trainings[request.checkpoint] = request.seed
            case checkpoints.CheckpointTrained() as made:
                self.trainings.pop(made.checkpoint, None)
            case alarms.ReactionDropped(failed_handler=handler) if handler in GIVEN_UP:
                self._verdict = GIVEN_UP[handler]
            case checkpoints.CheckpointPromoted() | checkpoints.CheckpointRejected() as judged:
                self._verdict = _VERDICTS[type(judged)]

    def _note_waiting(self, change: alarms.DependencyLost | alarms.DependencyRestored) -> None:
        if isinstance(change, alarms.DependencyRestored):
            self.waiting.pop(change.waiting, None)
        else:
            why = change.message.removeprefix(f"{change.dependency} is not available. ").rstrip(".")
            self.waiting[change.waiting] = f"{change.dependency} ({why})" if why else change.dependency

    def _complete(self, finished: RunState, time: datetime) -> Milestone:
        seconds = (time - (self._since or time)).total_seconds()
        self._spent.append(seconds)
        score = self._score
        milestone = Milestone(
            iteration=finished.iteration,
            accuracy=score.accuracy if score else None,
            tool_use=score.tool_use if score else None,
            frontier=frontier(finished),
            reward=mean_reward(finished),
            verdict=self._verdict or (_UNTRAINED if _is_due(finished) else ""),
            events=self.events - self._before,
            seconds=seconds,
            left_s=self._left(finished),
            start=first_student(finished.promoted[0].adapter),
            standing=self._standing(finished) if on_ladder(finished.config) else None,
        )
        self._since, self._before, self._score, self._verdict = time, self.events, None, ""
        return milestone

    def _standing(self, finished: RunState) -> Standing:
        """Of the newest student that was scored, in this iteration or before."""
        self._by_level = dict(self._score.by_level) if self._score else self._by_level
        return Standing(self._by_level, attempted_height(finished))

    def _left(self, finished: RunState) -> float | None:
        """Iterations to come at the mean of those done, or the time left; and the last test, as long as the first."""
        first, *rounds = self._spent
        if not rounds:
            return None
        if finished.config.planned_iterations is None:
            return max(0.0, finished.config.time_limit - finished.clock.used_s) + first / 2
        return (finished.config.iterations - 1 - finished.iteration) * fmean(rounds) + first / 2


NOTED = (
    "DependencyLost",
    "DependencyRestored",
    "CheckpointEvaluated",
    "TrainingRequested",
    "CheckpointTrained",
    "ReactionDropped",
    "CheckpointPromoted",
    "CheckpointRejected",
)


async def taken_up(log: Log, run: str, snapshots: Snapshots | None = None) -> tuple[Progress, int]:
    """The progress of ``run`` to begin with, and the event behind which to go on: of a long run that of a snapshot
    before its last two scores, which is at least one whole iteration; of any other what it shares with its parent."""
    progress, scores = Progress(), list[int]()
    if snapshots is not None:
        async for stored in log.read(run, ["CheckpointEvaluated"]):
            scores += [stored.seq] * _is_score(stored)
    snapshot = await snapshots.newest(run, scores[-2]) if snapshots is not None and len(scores) > 1 else None
    if snapshot is None:
        async with aclosing(past_of(log, run)) as past:  # type: ignore[type-var]
            async for stored in past:
                progress.begin_with(stored)
        return progress, 0
    async for stored in log.read(run, NOTED, until=snapshot.seq):
        progress.note(stored)
    progress.begin_at(snapshot.state)
    return progress, snapshot.seq


def _is_score(recorded: Recorded) -> bool:
    event = recorded.event
    return isinstance(event, checkpoints.CheckpointEvaluated) and event.split == "validation" and not event.forced_tool


async def followed(log: Log, run: str, say: Callable[[str], None]) -> Progress:
    """Follow ``run`` until it is over: each milestone, and whatever a person should hear at once, is said."""
    begin = await log.last_seq(run)
    progress, _ = await taken_up(log, run)
    async with aclosing(log.tail(0, run)) as events:  # type: ignore[type-var]
        async for stored in events:
            milestone = progress.feed(stored)
            if milestone and progress.state:
                say(milestone_line(milestone, progress.state.config.planned_iterations))
            elif stored.seq > begin and (line := trouble(stored)):
                say(line)
            if progress.over and stored.seq >= begin:  # what failed may have been resumed since
                break
    return progress


def _is_due(state: RunState) -> bool:
    """Whether a student was to be trained in the state's iteration; not before the first."""
    return state.iteration >= 0 and "student" in trained_roles(state)


def frontier(state: RunState) -> float | None:
    """Share of accepted tasks whose solve rate lies within the curriculum's band; None without accepted tasks."""
    low, high = state.config.curriculum.band
    shares = []
    for task in state.tasks.values():
        decided = [a.correct for a in task.attempts.values() if a.correct is not None]
        if task.accepted:
            shares.append(bool(decided) and low <= fmean(map(bool, decided)) <= high)
    return fmean(shares) if shares else None


def mean_reward(state: RunState) -> float | None:
    """Mean of the student's rewards of this iteration."""
    rewards = [a.reward for t in state.tasks.values() for a in t.attempts.values() if a.reward is not None]
    return fmean(rewards) if rewards else None


def trouble(recorded: Recorded) -> str:
    """What a person should hear at once; empty for everything else."""
    match recorded.event:
        case alarms.ReactionFailed() as e:
            what = f"{e.failed_handler} gave up on {e.cause_type} {e.cause_task}: {e.error}: {e.message}"
            return f"{what} It waits for you: agent0 failures show {e.failure}" if e.waits else what
        case alarms.ReactionTried(outcome="begun") as e:
            return f"{e.tried_handler} tries {e.cause_type} (event {e.cause_seq}) again: processes ended during it."
        case alarms.DependencyLost() as e:
            return f"{e.waiting} waits: {e.message}"
        case alarms.DependencyRestored() as e:
            return f"{e.dependency} is back; {e.waiting} goes on."
        case alarms.AlarmRaised(severity="critical") as e:
            return f"alarm {e.alarm}: {e.message}"
        case runs.RunPaused() as e:
            return f"paused {e.reason}".strip() + f"; agent0 run resume {recorded.run} goes on"
        case runs.RunResumed():
            return "resumed"
    return ""


def milestone_line(milestone: Milestone, iterations: int | None) -> str:
    """Format a milestone as one line of text; ``iterations``: of how many, None where time decides."""
    return "  ".join(_parts(milestone, iterations))


def _parts(milestone: Milestone, iterations: int | None) -> Iterator[str]:
    number = iteration_of(milestone.iteration, iterations)
    yield f"{milestone.start:<18}" if milestone.iteration < 0 else f"iteration {number:<8}"
    yield from _ladder_words(milestone.standing, milestone.iteration) if milestone.standing else _score_words(milestone)
    yield f"{milestone.seconds:.0f} s"
    if milestone.left_s is not None:
        yield f"{duration(milestone.left_s)} left"
    if milestone.verdict not in ("", "promoted"):
        yield f"({milestone.verdict})"


def _score_words(milestone: Milestone) -> Iterator[str]:
    yield f"validation {_number(milestone.accuracy)}"
    yield f"tool use {_number(milestone.tool_use)}"
    if milestone.iteration >= 0:
        yield f"frontier {_number(milestone.frontier)}"
        yield f"reward {_number(milestone.reward)}"
    yield f"{milestone.events:,} events"


def _ladder_words(at: Standing, iteration: int) -> Iterator[str]:
    yield f"T {at.height:>2}  S {at.added:5.2f}"
    if iteration >= 0:
        yield f"frontier {'-' if at.frontier is None else at.frontier:>2}"


def duration(seconds: float) -> str:
    """``45 s``, ``3 min 20 s``, ``2 h 05 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def _number(value: Any) -> str:
    return "  -  " if value is None else f"{value:.3f}"


def _moved_on(before: RunState, after: RunState) -> bool:
    return after.iteration != before.iteration or (after.phase == "final" != before.phase)
