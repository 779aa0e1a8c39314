"""The state of a run as a fold over its events: immutable, so that any past state can be kept and compared."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Literal

from agent0.events.base import sha256
from agent0.events.benchmarks import BenchmarksIndexed
from agent0.events.digest import NEVER, NOT_EMPTY, InDigest, always, digest_of
from agent0.events.values import QUESTIONS, Artifact, Task, Vote
from agent0.settings import RunConfig
from agent0.state.measurements import EvaluationState, GainState, Proposals
from agent0.state.reward_history import RewardHistory
from agent0.state.rules import VERSIONS
from agent0.state.run_clock import RESTING, RunClock

Phase = Literal["baseline", "tasks", "measuring", "training", "evaluating", "judging", "final", "done"]
Status = Literal["running", "paused", "failed", "finished", "cancelled"]

BASE = "base"
"""The checkpoint id of a model as a run began with it: untrained, or with the adapter that the run was given."""


@dataclass(frozen=True)
class ToolCallRecord:
    """One tool call of an attempt: name, arguments, whether it ran and ended well, and what it printed."""

    name: str
    arguments: Mapping[str, object]
    ok: bool
    output: str


@dataclass(frozen=True)
class AttemptState:
    """What is known of an attempt at a task.

    Fields that only rewards read, and no decision, are left out of the state's digest.
    """

    number: int
    answer: str | None = None
    attempted: bool = False
    tool_calls: int = 0
    tool_ok: int = 0
    parse_errors: int = 0
    grounded: bool = False
    tokens: int = 0
    mean_logprob: float | None = None
    correct: bool | None = None
    credit: float | None = None
    verified: bool = False
    judge: str = ""
    """Whose verdict counts: the first verifier that resolved it, or ``person`` for a reviewer."""
    disputed: bool = False
    """Checks of the verification panel contradicted one another."""
    awaits_review: bool = False
    """A reviewer is asked, and the attempt waits for the answer."""
    computed: bool = False
    """A tool printed the answer without having been given it."""
    dropped: bool = False
    reward: float | None = None
    calls: Annotated[tuple[ToolCallRecord, ...], NEVER] = ()
    signals: Annotated[Mapping[str, float], NEVER] = field(default_factory=dict)
    votes: Annotated[tuple[Vote, ...], NEVER] = ()
    """Those of the verdict that counts."""
    wall_s: Annotated[float, NEVER] = 0.0
    changed_lines: Annotated[int | None, NEVER] = None
    cut_off: Annotated[bool, NEVER] = False
    """Its last reply met the limit of tokens."""

    @property
    def resolved(self) -> bool:
        """Whether it has a verdict or was given up: nothing more will be known of it."""
        return self.verified or self.dropped


@dataclass(frozen=True)
class TaskState:
    """What is known of a task of the present iteration, with its attempts by id."""

    slot: int
    domain: str
    family: str
    level: int
    proposed: bool = False
    proposal: Task | None = None
    problem: str = ""
    accepted: bool = False
    rejected: bool = False
    novelty: float | None = None
    closed: bool = False
    solve_rate: float | None = None
    paid: bool = False
    """Whether the teacher has its reward."""
    attempts: dict[str, AttemptState] = field(default_factory=dict)
    text: Annotated[str, NEVER] = ""
    """What the teacher wrote."""

    @property
    def resolved(self) -> bool:
        """Whether the task was accepted and all its attempts are resolved."""
        return self.accepted and all(a.resolved for a in self.attempts.values())

    @property
    def ready(self) -> bool:
        """Whether nothing more will be known of the task but, where it waits for measured gains, the teacher's
        reward."""
        judged = [a for a in self.attempts.values() if a.verified]
        return (self.closed or self.resolved) and all(a.reward is not None or a.dropped for a in judged)

    @property
    def done(self) -> bool:
        """Whether the task is closed, or given up while closing, and every verdict has its reward.

        Student rewards may land after the teacher's.
        """
        judged = [a for a in self.attempts.values() if a.verified]
        given_up = self.resolved and any(a.dropped for a in judged)
        return (self.closed or given_up) and all(a.reward is not None or a.dropped for a in judged)


@dataclass(frozen=True)
class Arm:
    """What the curriculum bandit remembers of one domain x family x level: closed tasks, and the sums of their
    learnable share and solve rate."""

    closed: float = 0.0
    value: float = 0.0
    solved: float = 0.0
    last_requested: int = 0
    """Number of the last iteration that asked for it, from 1; 0: not kept (``curriculum.patience`` is 0)."""


@dataclass(frozen=True)
class ValidationScore:
    """A checkpoint's validation score.

    ``outcomes`` has one character per item, in set order: 1, 0 or ?; ``confidences`` has two: percent, or -- where
    there is none.
    """

    accuracy: float
    outcomes: str = ""
    confidences: str = ""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint by id, with its adapter (None: the model alone) and its score where it has one."""

    id: str = BASE
    adapter: Artifact | None = None
    score: ValidationScore | None = None
    benchmarks: Mapping[str, ValidationScore] = field(default_factory=dict)
    """Scores by the items they are of (``suite_key``)."""
    optimizer: Annotated[Artifact | None, NOT_EMPTY] = None
    """What the optimizer remembers of it, where the next training may go on with that."""


@dataclass(frozen=True)
class TestedTeacher:
    """The teacher promoted last, with its proposals of the newest iteration in which it proposed."""

    checkpoint: Checkpoint
    proposals: Proposals


@dataclass(frozen=True)
class Learning:
    """The iteration that trains, is evaluated and judged while tasks of the next one are attempted
    (``training.steps_off_policy``): its own values of fields of ``RunState``. Its phase is ``done`` until the next one
    trains."""

    iteration: int
    phase: Phase
    entered: Annotated[int, always(0)]
    pending: frozenset[str]
    candidate: Checkpoint | None
    tasks: dict[str, TaskState]
    task_target: int
    rows_before: int
    authors: tuple[str, ...]


@dataclass(frozen=True)
class RunState:
    """Everything that a run's decisions depend on, after the event with stream sequence ``seq``.

    The run's name, settings and sequences are left out of the digest: equal states have one digest anywhere.
    """

    run: Annotated[str, always("")]
    seq: Annotated[int, always(0)]
    config: Annotated[RunConfig, always(None)]
    config_sha: str
    rules: Annotated[Mapping[str, int], always(None)] = field(default_factory=lambda: VERSIONS)
    """Rule -> number of the version that the run is under."""
    clock: Annotated[RunClock, NEVER] = RESTING
    """How long it has worked; kept where ``run.time_limit`` is set. Other hours change no digest."""
    status: Status = "running"
    phase: Phase = "baseline"
    iteration: int = -1
    starts: Annotated[tuple[int, ...], InDigest(lambda starts: [0] * len(starts))] = ()
    """Stream sequence at which each iteration began."""
    tasks: dict[str, TaskState] = field(default_factory=dict)
    task_target: Annotated[int, NOT_EMPTY] = 0
    """Tasks that this iteration asks for, where those without contrast made it more than ``run.tasks``; else 0."""
    arms: dict[str, Arm] = field(default_factory=dict)
    promoted: tuple[Checkpoint, ...] = (Checkpoint(),)
    """The base, and what was promoted since and not gone back from; the last is the present student."""
    teacher: Checkpoint = Checkpoint()
    tested_teacher: TestedTeacher | None = None
    """None before the first iteration's proposals, and where ``evaluation.teacher_gate`` is open."""
    refused_teacher: str = ""
    """The teacher of this iteration where the gate refused it: another one proposes from the next one on."""
    candidate: Checkpoint | None = None
    indexed: str = ""
    """Digest of what tasks are compared with for contamination; empty: with nothing."""
    pending: frozenset[str] = frozenset()
    """Evaluations or trainings that the phase waits for."""
    learning: Annotated[Learning | None, NOT_EMPTY] = None
    """The iteration before, where it is not over."""
    authors: Annotated[tuple[str, ...], NOT_EMPTY] = ()
    """Student and teacher with which this iteration began, where the one before was not over."""
    evaluations: Annotated[Mapping[str, EvaluationState], NEVER] = field(default_factory=dict)
    """Evaluations under way. Their items land in any order: no part of the digest."""
    benchmark_rows: Mapping[str, str] = field(default_factory=dict)
    """Digest of the rows that each benchmark's items were drawn from (``suite_key``)."""
    gain: Annotated[GainState | None, NEVER] = None
    """The measurement of this iteration's gains, where there is one: only rewards read it."""
    rows_before: Annotated[int, NOT_EMPTY] = 0
    """Rows of the file of questions that were asked before this iteration, all epochs together."""
    task_count: int = 0
    attempt_count: int = 0
    measures: Annotated[tuple[Mapping[str, float], ...], NEVER] = ()
    """What each iteration came to (``IterationMeasured``), oldest first. It is recorded beside the training that it
    comes before, so either may land first: no part of the digest."""
    ledger: RewardHistory | None = None
    """Totals and skills of earlier receipts; None where no reward in use reads them."""
    failures: frozenset[str] = frozenset()
    trouble: Annotated[str, NEVER] = ""
    """What the last reaction that failed said, or why the last training had nothing to learn from: for users."""
    lost: tuple[int, ...] = ()
    """(given up, of how many) attempts of the iteration that ended last, where that is more than
    ``run.max_given_up``: the run fails. Empty otherwise."""
    untrained: int = 0
    """Iterations in a row in which nothing was trained, the present one included from its training on; 0: not kept
    (``run.max_untrained`` is 0)."""
    overdue: Annotated[int, NEVER] = 0
    """Waits of ``run.give_up_after`` or longer since the run began or went on: the first one ends it."""
    just_settled: str = ""
    """The task whose last attempt was resolved by the last event itself."""
    open_task: Annotated[str, NEVER] = ""
    """A task of this iteration that was not done when it was looked for last; it may be by now."""
    entered: Annotated[int, always(0)] = 0
    """Stream sequence of the event that began the present phase."""

    @property
    def student(self) -> Checkpoint:
        """The checkpoint that attempts tasks now."""
        return self.promoted[-1]

    @property
    def in_training(self) -> "RunState":
        """The run as whoever trains, evaluates and judges sees it: with the iteration before as the present one, where
        that is not over."""
        return replace(self, **vars(self.learning)) if self.learning else self

    def beside(self, trained: "RunState") -> "RunState":
        """``trained``, which came of ``in_training``, with the present iteration beside it again."""
        return replace(trained, learning=trained.as_learning, **vars(self.as_learning))

    @property
    def as_learning(self) -> Learning:
        """The present iteration as the one before the next."""
        return Learning(**{field.name: getattr(self, field.name) for field in fields(Learning)})

    @property
    def tasks_asked(self) -> int:
        """How many tasks this iteration asks for: ``run.tasks``, or more where some had no contrast."""
        return self.task_target or self.config.tasks

    @property
    def measures_gain(self) -> bool:
        """Whether the teacher's rewards wait until the gain from the iteration's tasks is measured."""
        return self.config.rewards.gain.subsets > 0

    @property
    def rows_asked(self) -> int:
        """Rows of the file of questions that were asked up to now, all epochs together."""
        return self.rows_before + sum(task.family == QUESTIONS for task in self.tasks.values())

    @property
    def proposals(self) -> Proposals:
        """What became of what the teacher proposed in this iteration, as far as it is screened."""
        proposed = (task for task in self.tasks.values() if task.family != QUESTIONS)
        screened = [task for task in proposed if task.accepted or task.rejected]
        readable = sum(task.proposal is not None for task in screened)
        return Proposals(len(screened), readable, sum(task.accepted for task in screened))

    @property
    def screened(self) -> bool:
        """Whether every proposal of the iteration is screened, or given up."""
        tasks = self.tasks.values()
        complete = self.phase == "tasks" and len(tasks) == self.tasks_asked
        return complete and all(task.accepted or task.rejected or task.closed for task in tasks)

    @property
    def proposing(self) -> bool:
        """Whether the teacher is at work on the tasks of this iteration and no attempt has begun."""
        tasks = self.tasks.values()
        return any(not t.proposed and not t.closed for t in tasks) and not any(t.attempts for t in tasks)

    @property
    def resolved_attempts(self) -> int:
        """The attempts of this iteration whose outcome is final; a task without attempts counts as all."""
        k, tasks = self.config.attempts, self.tasks.values()
        return sum(sum(a.resolved for a in t.attempts.values()) if t.accepted else k * t.closed for t in tasks)

    @property
    def teacher_waits(self) -> bool:
        """Whether the present teacher is on probation: it proposes, and the gate has not judged it."""
        tested = self.tested_teacher if self.config.evaluation.teacher_gate != "open" else None
        return tested is not None and self.teacher.id not in (tested.checkpoint.id, self.refused_teacher)

    @property
    def promoted_teacher(self) -> Checkpoint:
        """The teacher that the next one is trained from: the present one unless the gate refused it."""
        tested = self.tested_teacher
        return tested.checkpoint if tested and self.teacher.id == self.refused_teacher else self.teacher

    def since(self, to: str) -> tuple[str, ...]:
        """Ids of checkpoints promoted after ``to`` and before the present student, each once."""
        names = [checkpoint.id for checkpoint in self.promoted]
        before = names[: names.index(to) + 1]
        return tuple(dict.fromkeys(name for name in names if name not in (*before, self.student.id)))

    @property
    def last_iteration(self) -> bool:
        """Whether no iteration follows this one: all were made, or the time is over. The first is always made."""
        if planned := self.config.planned_iterations:
            return self.iteration + 1 >= planned
        return self.iteration >= 0 and self.clock.used_s >= self.config.time_limit

    @property
    def evaluated(self) -> bool:
        """Whether the candidate has its score."""
        return self.candidate is not None and self.candidate.score is not None

    @property
    def digest(self) -> str:
        """sha256 of the canonical state, without the fields that declare themselves left out."""
        return digest_of(self)


def first_student(adapter: object) -> str:
    """What a run's first student is called: ``untrained``, or ``as it started`` where it began with an ``adapter``."""
    return "as it started" if adapter else "untrained"


def index_digest(facts: BenchmarksIndexed | None) -> str:
    """Digest of the benchmark index that tasks are compared with; empty where there is none."""
    return sha256(facts.model_dump_json()) if facts and facts.benchmarks else ""


def suite_key(benchmark: str, n: int, seed: int) -> str:
    """The key of a benchmark's items: ``gsm8k/100/20260101``, at most 100 of them drawn with that seed."""
    return f"{benchmark}/{n}/{seed}"


def arm_key(domain: str, family: str, level: int) -> str:
    """The key of a curriculum bandit's arm in ``RunState.arms``: ``domain/family/level``."""
    return f"{domain}/{family}/{level}"


def iteration_of(number: int, iterations: int | None) -> str:
    """An iteration and the numbers of all, the first of which is 0: ``3 of 0-9``; alone where time ends the run."""
    return f"{number} of 0-{iterations - 1}" if iterations else f"{number}"


def task_id(iteration: int, slot: int) -> str:
    """The id of a task: ``t3-017`` is iteration 3, slot 17."""
    return f"t{iteration}-{slot:03d}"


def attempt_id(task: str, number: int) -> str:
    """The id of an attempt: ``t3-017-a2`` is the third attempt at task ``t3-017``."""
    return f"{task}-a{number}"


def gain_id(iteration: int) -> str:
    """The id of the measurement of an iteration's gains: ``gain-3``."""
    return f"gain-{iteration}"


def checkpoint_id(role: str, iteration: int) -> str:
    """The id of a checkpoint: ``student-3`` is what iteration 3 trained."""
    return f"{role}-{iteration}"
