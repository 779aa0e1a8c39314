"""The life of a task, top to bottom: each event's name leads to the handler file that writes it."""

from typing import Any, Literal

from pydantic import Field

from agent0.events.base import Event
from agent0.events.values import (
    Artifact,
    Capture,
    End,
    ForeignLine,
    Passage,
    RewardPart,
    Role,
    SelfCritique,
    Task,
    ToolCall,
    ToolResult,
    Trajectory,
    Turn,
    Usage,
    Vote,
)

RefusalReason = Literal[
    "malformed",
    "reserved",
    "duplicate",
    "similar",
    "off_target",
    "contaminated",
    "unsolvable",
    "trivial",
    "broken_program",
    "weak_check",
]
"""Why a proposal is no task of the run."""


class TaskRequested(Event):
    """The curriculum requests one task of the teacher (``advance_run``). ``slot`` numbers the siblings of an iteration;
    ``level`` is 0 where the teacher is to choose it."""

    task: str
    iteration: int
    slot: int
    domain: str
    family: str
    level: int
    seed: int
    teacher: str
    """Checkpoint id, ``base`` before the first."""
    adapter: Artifact | None = None
    state_sha: str


class TaskProposed(Event):
    """The teacher answered (``propose_task``). ``proposal`` is None where its text holds no task;
    ``problem`` says why."""

    task: str
    iteration: int
    slot: int
    teacher: str
    text: str
    proposal: Task | None
    problem: str = ""
    prompt: str
    trajectory: Trajectory | None = None
    trajectory_artifact: Artifact | None = None
    usage: Usage = Usage()
    model: str = ""
    seed: int = 0
    trajectory_problem: str = ""
    """Why there is no trajectory; empty where there is one, and where it was not recorded."""
    capture: Capture = ""
    passage: Passage | None = None
    """Of a document, where the teacher was to write about one."""


class TaskAccepted(Event):
    """A task is well-formed, new enough and not reserved for held-out sets (``screen_task``)."""

    task: str
    iteration: int
    slot: int
    proposal: Task
    novelty: float
    """1 - highest cosine similarity to what it was measured against; 1.0 against nothing."""
    against: int
    """How many earlier tasks it was measured against."""
    position: int
    """Accepted tasks up to this stream sequence counted as the archive."""
    embedder: str
    embedding: tuple[float, ...] = ()
    attempts: int = 0
    """Of a task that was imported: how many attempts at it there are. 0: as many as the run makes."""


class TaskRejected(Event):
    """A proposal is not used, for the given ``reason`` (``screen_task``)."""

    task: str
    iteration: int
    slot: int
    reason: RefusalReason
    detail: str = ""
    novelty: float | None = None
    position: int = 0
    embedder: str = ""


class AttemptRequested(Event):
    """An attempt of the student at a task is requested (``advance_run``). ``number`` runs from 0 to k-1."""

    task: str
    attempt: str
    iteration: int
    number: int
    proposal: Task
    seed: int
    student: str
    adapter: Artifact | None = None
    state_sha: str


class ToolCalled(Event):
    """One tool call of one attempt (``attempt_task``, ``continue_attempt``), in the order of ``number``.

    ``inner``: a step of a plan; the plan itself is the next call that is not.
    """

    task: str
    attempt: str
    turn: int
    number: int
    call: ToolCall
    result: ToolResult
    inner: bool = False


class TurnCompleted(Event):
    """One turn of an attempt at a long task ended, and another follows (``attempt_task``, ``continue_attempt``).

    ``progress`` is the whole attempt so far: a process that dies costs one turn. ``turn`` counts assistant turns,
    ``subgoals`` are the answers given so far, None where a subgoal has none yet.
    """

    task: str
    attempt: str
    iteration: int
    number: int
    turn: int
    student: str
    adapter: Artifact | None = None
    proposal: Task
    subgoals: tuple[str | None, ...]
    progress: Artifact
    seed: int


class TaskAttempted(Event):
    """An attempt ended (``attempt_task``, ``continue_attempt``). ``answer`` is None where none was given."""

    task: str
    attempt: str
    iteration: int
    number: int
    student: str
    answer: str | None
    end: End
    turns: int
    tool_calls: int
    tool_ok: int
    """Calls that ran and ended ``ok``."""
    parse_errors: int = 0
    grounded: bool = False
    """The answer equals the output of one of its own successful tool calls."""
    transcript: tuple[Turn, ...] = ()
    transcript_artifact: Artifact | None = None
    trajectory: Trajectory | None = None
    trajectory_artifact: Artifact | None = None
    mean_logprob: float | None = None
    prompt: str
    usage: Usage = Usage()
    model: str = ""
    seed: int = 0
    wall_s: float = 0.0
    subgoals: tuple[str | None, ...] = ()
    """Answers to a long task's subgoals, None where one has none."""
    work: Artifact | None = None
    """Manifest of the work folder at the end, None where it is empty."""
    signals: dict[str, float] = Field(default_factory=dict)
    """How sure the student was, signal by signal, each in [0, 1] (``agent0.rollout.confidence.signals``)."""
    computed: bool = False
    """A tool printed the answer before the student had written it."""
    trajectory_problem: str = ""
    """Why there is no trajectory; empty where there is one, and where it was not recorded."""
    capture: Capture = ""
    seeds: tuple[int | None, ...] = ()
    """What each turn was drawn with, where a server drew turns of several attempts in one call, choice i of it with the
    call's seed + i; None, or no entry: with the one that is derived from ``seed``."""
    critique: SelfCritique | None = None
    """What the student said of its answer; None where it was not asked (``run.student.self_critique``)."""
    authors: dict[str, int] = Field(default_factory=dict)
    """Turns that other models than the student's wrote (``run.student.distil_from``), by model; empty: all are its
    own."""
    foreign: ForeignLine | None = None
    """Where it stands in the file that it was imported from; None: a student of ours made it."""
    compacted: int = 0
    """Tool outputs that its transcript has shortened, as the context was full. The calls' events have them whole; what
    was written before that is read in the trajectory, and not trained on."""


class ResultVerified(Event):
    """The verdict on an attempt (``verify_result``). ``correct`` None means undecided, which is not False.

    For a long task ``subgoals`` has a verdict each and ``credit`` is the share that is earned; neither changes
    ``correct``, which is about the answer alone.
    """

    task: str
    attempt: str
    iteration: int
    correct: bool | None
    verifier: str
    reason: str
    expected: str = ""
    got: str = ""
    subgoals: tuple[bool | None, ...] = ()
    credit: float | None = None
    changed_lines: int | None = None
    """Lines of code that the attempt changed of a repository."""
    votes: tuple[Vote, ...] = ()
    """The checks that a verdict about an open-ended task was made from."""


class GainRequested(Event):
    """Measure what training on parts of an iteration's accepted answers, after < seq <= until, does for the student
    (``advance_run``)."""

    measurement: str
    """Its id, such as ``gain-3`` of iteration 3."""
    iteration: int
    student: str
    """Checkpoint id of the student that every short training begins with."""
    adapter: Artifact | None = None
    after: int
    until: int
    replay_after: int
    """Answers of earlier iterations are replayed from here on, the same for every part."""
    seed: int
    state_sha: str

    @property
    def task(self) -> str:
        """Subject token: a measurement with all its results is one wildcard."""
        return self.measurement


class ProbeSelected(Event):
    """What a measurement trains on and is scored on (``measure_gain``): training-split tasks just beyond the student's
    frontier, none of which it solves, so that its accuracy on them before is 0."""

    measurement: str
    iteration: int
    subsets: tuple[tuple[str, ...], ...] = ()
    """Ids of the tasks whose accepted answers are trained on together; empty: nothing is measured."""
    levels: tuple[int, ...] = ()
    """Of the probe: those that were drawn from."""
    drawn: int = 0
    """Tasks that the student tried for it."""
    n: int = 0
    """Of these, the tasks that it does not solve, and that are kept."""
    tasks: Artifact | None = None
    """JSON lines, one a task of the probe."""
    problem: str = ""
    """Why nothing is measured; empty where something is."""
    tokens: int = 0
    """That the student wrote for it."""

    @property
    def task(self) -> str:
        """Subject token: the measurement."""
        return self.measurement


class SubsetMeasured(Event):
    """What one short training came to (``measure_gain``). Its adapter is deleted: it is no checkpoint."""

    measurement: str
    iteration: int
    number: int
    """The subset's place, from 0."""
    gain: float
    """Accuracy on the probe after the training less that before it."""
    outcomes: str
    """One character a task of the probe: 1 solved, 0 not, ? undecided."""
    samples: int
    """Accepted answers of the subset."""
    replay: int
    """Earlier answers that were replayed."""
    steps: int
    tokens: int = 0
    """That the trained student wrote for the probe."""
    wall_s: float = 0.0
    """Of the training."""

    @property
    def task(self) -> str:
        """Subject token: the measurement."""
        return self.measurement


class RewardAssigned(Event):
    """A reward with its receipt (``assign_reward``). The student's names its attempt; the teacher's (attempt ``-``)
    closes the task."""

    task: str
    attempt: str = "-"
    iteration: int
    role: Role
    set: str
    parts: tuple[RewardPart, ...]
    total: float
    checkpoint: str
    """Whose doing is rewarded."""
    facts: dict[str, Any] = Field(default_factory=dict)
    """Numbers about the task or attempt that curriculum and tables use (solve_rate, correct, tool_ok…)."""
