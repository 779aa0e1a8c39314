"""The state of a run as a fold over its events: immutable, so that any past state can be kept and compared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from agent0.settings import RunConfig
from agent0.state.reward_history import Ledger
from events.base import sha256
from events.benchmarks import BenchmarksIndexed
from events.digest import NEVER, UNLESS_EMPTY, InDigest, always, digest_of
from events.values import Artifact, Task, Vote

Phase = Literal["baseline", "tasks", "training", "evaluating", "judging", "final", "done"]
Status = Literal["running", "paused", "finished", "cancelled"]

BASE = "base"
"""The checkpoint id of an untrained model."""


@dataclass(frozen=True)
class Made:
    """One tool call as it was made: whether it ran and ended well, and what it printed."""

    name: str
    arguments: Mapping[str, Any]
    ok: bool
    output: str


@dataclass(frozen=True)
class AttemptState:
    """What later decisions need of an attempt. ``settled``: it has a verdict, or was given up.

    What only rewards read, and no decision, is left out of the digest.
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
    """Whose verdict counts: the first verifier that settled it, or ``person``."""
    disputed: bool = False
    """Checks contradicted one another."""
    asked: Annotated[bool, UNLESS_EMPTY] = False
    """A person is asked, and nothing goes on without one."""
    computed: bool = False
    """A tool printed the answer without having been given it."""
    computed_unknown: Annotated[bool, NEVER] = False
    """It is not known whether one did."""
    dropped: bool = False
    reward: float | None = None
    calls: Annotated[tuple[Made, ...], NEVER] = ()
    signals: Annotated[Mapping[str, float], NEVER] = field(default_factory=dict)
    votes: Annotated[tuple[Vote, ...], NEVER] = ()
    """Those of the verdict that counts."""
    wall_s: Annotated[float, NEVER] = 0.0

    @property
    def settled(self) -> bool:
        """Nothing more will be known of it."""
        return self.verified or self.dropped


@dataclass(frozen=True)
class TaskState:
    """A task of the present iteration."""

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
    """The teacher has its reward."""
    attempts: dict[str, AttemptState] = field(default_factory=dict)
    text: Annotated[str, NEVER] = ""
    """What the teacher wrote."""

    @property
    def settled(self) -> bool:
        """All its attempts are settled."""
        return self.accepted and all(a.settled for a in self.attempts.values())

    @property
    def done(self) -> bool:
        """Closed, or given up in closing; and every verdict has its reward, which may land after the teacher's."""
        judged = [a for a in self.attempts.values() if a.verified]
        given_up = self.settled and any(a.dropped for a in judged)
        return (self.closed or given_up) and all(a.reward is not None or a.dropped for a in judged)


@dataclass(frozen=True)
class Arm:
    """What curriculum remembers of one domain x family x level: closed tasks and summed frontier value."""

    closed: float = 0.0
    value: float = 0.0
    solved: float = 0.0
    asked: Annotated[int, UNLESS_EMPTY] = 0
    """Number of the last iteration that asked for it, from 1; 0: not kept (``curriculum.patience`` is 0)."""


@dataclass(frozen=True)
class Score:
    """How a checkpoint did on validation. ``outcomes`` has one character an item, in set order: 1, 0 or ?;
    ``confidences`` two: percent, or -- where it was not told."""

    accuracy: float
    outcomes: str = ""
    confidences: Annotated[str, UNLESS_EMPTY] = ""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint by id with its adapter (None: the base), and its score where it has one."""

    id: str = BASE
    adapter: Artifact | None = None
    score: Score | None = None


@dataclass(frozen=True)
class RunState:
    """Everything decisions need. ``seq`` is the last event folded in.

    The run's name, its settings and sequences are no part of the digest: equal states have one digest anywhere.
    """

    run: Annotated[str, always("")]
    seq: Annotated[int, always(0)]
    config: Annotated[RunConfig, always(None)]
    config_sha: str
    status: Status = "running"
    phase: Phase = "baseline"
    iteration: int = -1
    starts: Annotated[tuple[int, ...], InDigest(lambda starts: [0] * len(starts))] = ()
    """Stream sequence at which each iteration began."""
    tasks: dict[str, TaskState] = field(default_factory=dict)
    arms: dict[str, Arm] = field(default_factory=dict)
    promoted: tuple[Checkpoint, ...] = (Checkpoint(),)
    """The base, and what was promoted since and not gone back from; the last is the present student."""
    teacher: Checkpoint = Checkpoint()
    candidate: Checkpoint | None = None
    indexed: str = ""
    """Digest of what tasks are compared with for contamination; empty: with nothing."""
    pending: frozenset[str] = frozenset()
    """Evaluations or trainings that the phase waits for."""
    task_count: int = 0
    attempt_count: int = 0
    measures: Annotated[tuple[Mapping[str, float], ...], NEVER] = ()
    """What each iteration came to (``IterationMeasured``), oldest first. It is recorded beside the training that it
    comes before, so either may land first: no part of the digest."""
    ledger: Annotated[Ledger | None, UNLESS_EMPTY] = None
    """What earlier receipts leave for later ones; None where no reward in use looks back."""
    failures: frozenset[str] = frozenset()
    just_settled: str = ""
    """The task whose last attempt was settled by the last event itself."""
    entered: Annotated[int, always(0)] = 0
    """Stream sequence of the event that began the present phase."""

    @property
    def student(self) -> Checkpoint:
        """Who attempts tasks now."""
        return self.promoted[-1]

    def since(self, to: str) -> tuple[str, ...]:
        """What was promoted between the checkpoint ``to`` and the present student, and not before."""
        names = [one.id for one in self.promoted]
        before = names[: names.index(to) + 1]
        return tuple(dict.fromkeys(name for name in names if name not in (*before, self.student.id)))

    @property
    def evaluated(self) -> bool:
        """Whether the candidate has its score."""
        return self.candidate is not None and self.candidate.score is not None

    @property
    def digest(self) -> str:
        """sha256 of the canonical state, but for what its fields leave out."""
        return digest_of(self)


def index_digest(facts: BenchmarksIndexed | None) -> str:
    """Of what tasks are compared with for contamination; empty where that is nothing."""
    return sha256(facts.model_dump_json()) if facts and facts.benchmarks else ""


def arm_key(domain: str, family: str, level: int) -> str:
    """The name of a curriculum arm."""
    return f"{domain}/{family}/{level}"


def task_id(iteration: int, slot: int) -> str:
    """``t3-017``: iteration 3, slot 17."""
    return f"t{iteration}-{slot:03d}"


def attempt_id(task: str, number: int) -> str:
    """``t3-017-a2``: the third attempt."""
    return f"{task}-a{number}"


def checkpoint_id(role: str, iteration: int) -> str:
    """``student-3``: what iteration 3 trained."""
    return f"{role}-{iteration}"
