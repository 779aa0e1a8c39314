"""The life of a checkpoint: requested, trained, evaluated, promoted or rejected."""

from typing import Any, Literal

from pydantic import Field

from agent0.events.base import Event
from agent0.events.values import Artifact, Conversation, End, PairedTest, Role, Split, TrainingStep

Scored = Literal["train", "validation", "test", "benchmark"]
"""What an evaluation scores: a split of our own tasks, or a benchmark."""


class TrainingRequested(Event):
    """Train ``role`` on what was rewarded with after < seq <= until (``advance_run``)."""

    checkpoint: str
    role: Role
    iteration: int
    parent: str
    parent_adapter: Artifact | None = None
    after: int
    until: int
    replay_after: int
    seed: int
    state_sha: str
    parent_optimizer: Artifact | None = None
    """What the optimizer remembered of the parent, where the training goes on with that."""
    earlier: str = ""
    """The checkpoint before the parent, where it wrote some of this iteration while the parent was trained."""


class CheckpointTrained(Event):
    """A new adapter was trained (``train_checkpoint``). ``adapter`` None: there was nothing to learn from, the parent
    stays.

    ``manifest`` lists the event ids it was trained on.
    """

    checkpoint: str
    role: Role
    iteration: int
    parent: str
    adapter: Artifact | None
    manifest: Artifact | None = None
    samples: int
    replay: int = 0
    skipped: dict[str, int] = Field(default_factory=dict)
    metrics: dict[str, float] = Field(default_factory=dict)
    recipe: dict[str, Any] = Field(default_factory=dict)
    environment: dict[str, str] = Field(default_factory=dict)
    """Threads, torch build, CPU capability: what bit-equality depends on."""
    wall_s: float = 0.0
    distilled: dict[str, float] = Field(default_factory=dict)
    """Share of all trajectories and examples that other models wrote, by model; empty: all is the student's own."""
    optimizer: Artifact | None = None
    """What the optimizer remembers of the adapter, where the next training may go on with that."""
    authors: dict[str, int] = Field(default_factory=dict)
    """Tokens to learn from by the checkpoint that wrote them, each once however often a step takes it: of samples, of
    what they are preferred over, and of what is replayed."""


class TrainingMeasured(Event):
    """Steps of a training in order (``train_checkpoint``), beside its ``CheckpointTrained``: of a long one in several
    events, so that none is large."""

    checkpoint: str
    role: Role
    iteration: int
    first: int
    """Place of the first of ``steps`` in the training, from 1."""
    steps: tuple[TrainingStep, ...]


class EvaluationRequested(Event):
    """Score a student checkpoint on a held-out split, or on a benchmark (``advance_run``)."""

    evaluation: str
    checkpoint: str
    adapter: Artifact | None = None
    iteration: int
    split: Scored
    n: int
    """Items. Of a benchmark: at most, 0 being all; ``EvaluationItemRequested.of`` says how many there are."""
    seed: int
    forced_tool: bool = False
    state_sha: str
    benchmark: str = ""
    """Its name where ``split`` is ``benchmark``."""

    @property
    def task(self) -> str:
        """Subject token: an evaluation with all its items is one wildcard."""
        return self.evaluation


class EvaluationItemRequested(Event):
    """Attempt one item of an evaluation (``evaluate_checkpoint``): one of the first, as many as may be under way at
    once. Each item that is scored makes room for another, which is not requested by an event of its own."""

    evaluation: str
    number: int
    """Its place in the suite, from 0."""
    rows: str = ""
    """Of a benchmark: sha256 of the file of its rows, or of its items where they are made from a seed."""
    of: int = 0
    """Of a benchmark: items of the evaluation."""

    @property
    def task(self) -> str:
        """Subject token: the evaluation."""
        return self.evaluation

    @property
    def attempt(self) -> str:
        """Subject token: this item."""
        return f"{self.evaluation}-{self.number}"


class EvaluationItemScored(Event):
    """One item of an evaluation was attempted and verified (``evaluate_item``). ``correct`` None means undecided.

    ``item`` is its identity: of a held-out task the canonical form.
    """

    evaluation: str
    number: int
    """Its place in the suite, from 0."""
    item: str
    domain: str
    level: int
    question: str
    answer: str | None
    correct: bool | None
    tool_ok: int
    """Calls that ran and ended ``ok``."""
    tokens: int
    seconds: float
    """Model and tool time, waiting in the batch included."""
    signals: dict[str, float] = Field(default_factory=dict)
    """How sure the student was, signal by signal, each in [0, 1]."""
    within: int | None = None
    """Number, from 1, of the first sampled attempt that is right, 0: none of ``tries``; None: none was made."""
    tries: int = 0
    tried: tuple[str | None, ...] = ()
    """Answers of the sampled attempts."""
    reason: str = ""
    """The verdict's."""
    expected: str = ""
    """The right answer as the verdict has it."""
    end: End | None = None
    """How the greedy attempt ended; None: not recorded."""
    turns: int = 0
    tool_calls: int = 0
    parse_errors: int = 0
    conversation: Conversation | None = None
    """Of the greedy attempt."""
    conversation_artifact: Artifact | None = None
    """The conversation where it is over 64 KB."""
    row: Artifact | None = None
    """The whole item where it is over 64 KB: ``question``, ``answer`` and ``tried`` are then only there."""

    @property
    def task(self) -> str:
        """Subject token: the evaluation."""
        return self.evaluation

    @property
    def attempt(self) -> str:
        """Subject token: this item."""
        return f"{self.evaluation}-{self.number}"


class CheckpointEvaluated(Event):
    """Greedy accuracy on held-out tasks (``evaluate_item`` at the last item). Undecided items count as wrong here.

    ``items`` is an artifact: JSON lines with task, answer, verdict, tool calls and seconds of every item.

    Beside it, where ``checked`` is not 0: how many of the ``checkable`` items, whose family has a check, one of up to
    ``checked`` sampled attempts solves. That is no accuracy of a single attempt, which for these items is
    ``solved_at_once``.
    """

    evaluation: str
    checkpoint: str
    iteration: int
    split: Scored
    forced_tool: bool = False
    n: int
    correct: int
    accuracy: float
    lower95: float
    upper95: float
    tool_use: float
    """Share of items with at least one successful tool call."""
    undecided: int = 0
    truncated: int = 0
    """Items without an answer whose reply met the limit of tokens."""
    by_domain: dict[str, float] = Field(default_factory=dict)
    by_level: dict[str, float] = Field(default_factory=dict)
    latency_p50_s: float = 0.0
    latency_p95_s: float = 0.0
    items: Artifact | None = None
    outcomes: str = ""
    """One character an item in set order: 1 correct, 0 wrong, ? undecided. For paired comparison."""
    confidences: str = ""
    """Two characters an item in set order: how sure the student was of its answer, in percent and at most 99; -- where
    it gave none, or nothing tells. Empty: nothing tells of any."""
    checked: int = 0
    checkable: int = 0
    solved_at_once: float | None = None
    solved_within: float | None = None
    lower95_within: float | None = None
    upper95_within: float | None = None
    outcomes_within: str = ""
    """One character an item in set order: 1 solved within ``checked`` attempts, 0 not, - cannot be checked."""
    attempts_within: int = 0
    """Attempts that were made for it."""
    wall_s: float = 0.0
    benchmark: str = ""
    """Its name where ``split`` is ``benchmark``."""

    @property
    def task(self) -> str:
        """Subject token: the evaluation."""
        return self.evaluation


class CheckpointPromoted(Event):
    """The checkpoint becomes the student (``judge_checkpoint``, or a user who overrules it)."""

    checkpoint: str
    iteration: int
    accuracy: float
    against: float | None = None
    reason: str
    test: PairedTest | None = None
    improved: bool = False
    """Whether the paired test allows the word."""
    by: Literal["gate", "person"] = "gate"
    adapter: Artifact | None = None
    """Of a checkpoint that a person wants: its candidacy may be long over."""


class CheckpointRejected(Event):
    """The checkpoint promoted before stays the student (``judge_checkpoint``)."""

    checkpoint: str
    iteration: int
    accuracy: float
    against: float | None = None
    reason: str
    test: PairedTest | None = None


class TeacherJudged(Event):
    """Whether a new teacher stays, by what its first iteration of proposals came to (``judge_teacher``). Refused, it is
    no parent of the next one, and from the next iteration on ``against`` proposes again.

    Counted are proposals that were screened: how many held a task, and how many were accepted. Those of ``against`` are
    of the newest iteration in which it proposed.
    """

    checkpoint: str
    iteration: int
    promoted: bool
    against: str
    reason: str
    screened: int
    readable: int
    accepted: int
    against_screened: int
    against_readable: int
    against_accepted: int
    readable_p: float | None = None
    """Two-sided, exact, corrected for both tests; None where there was nothing to compare."""
    accepted_p: float | None = None


class CheckpointRolledBack(Event):
    """A user or a monitor went back to an earlier checkpoint."""

    checkpoint: str
    to: str
    reason: str
    cause_kind: Literal["person", "guard"] = "person"
    let_go: tuple[str, ...] = ()
    """What else was promoted since ``to`` and is the student's past no more."""


class CheckpointPruned(Event):
    """A user deleted an adapter: its digest, manifest and seed stay, so it can be trained again."""

    checkpoint: str
    adapter: str
    """Digest. No reader may expect the artifact any more."""
    size: int
    reason: str
    optimizer: str = ""
    """Digest of what the optimizer remembered of it, which goes with it."""


class ModelsCompared(Event):
    """Two checkpoints answered the same tasks (``agent0 model ab``), until a sequential test was significant or the
    tasks were used up.

    ``first`` and ``second`` are RUN/CHECKPOINT.
    """

    comparison: str
    first: str
    second: str
    split: Split
    seed: int
    n: int
    """Tasks answered."""
    limit: int
    first_correct: int
    second_correct: int
    gained: int
    """Tasks that only ``second`` solved."""
    lost: int
    e_value: float
    """Of the mixture test; 20 or more: told apart at the 5 % level, whenever one looks."""
    winner: Literal["", "first", "second"] = ""
    first_outcomes: str = ""
    second_outcomes: str = ""
    wall_s: float = 0.0


class CheckpointRepeated(Event):
    """A checkpoint was evaluated on several draws of held-out tasks (``agent0 model repeat``): how far its accuracy
    varies."""

    checkpoint: str
    split: Split
    n: int
    """Tasks a draw."""
    seed: int
    accuracies: tuple[float, ...]
    """One a draw."""
    wall_s: float = 0.0


class StudentExamined(Event):
    """A checkpoint was evaluated under a protocol: several attempts at each held-out task (``agent0 model exam``)."""

    exam: str
    """How it was asked, for people."""
    checkpoint: str
    split: Split
    seed: int
    attempts: int
    """Of each task."""
    temperature: float
    forced_tool: bool = False
    right: tuple[int, ...]
    """Right attempts of each task, in set order."""
    majority: str
    """One character a task: whether the answer that most attempts gave is right (1, 0, ? undecided)."""
    tokens: int = 0
    wall_s: float = 0.0
    levels: tuple[int, ...] = ()
    """Of the tasks; empty: all that their families have."""
    excluded: tuple[str, ...] = ()
    """Sets of held-out tasks drawn earlier, none of whose tasks was drawn."""
    answers: Artifact | None = None
    """JSON lines, one a task in set order: the question, each attempt's answer with its verdict, and the majority's."""
