"""The values inside events, which ports take and return too."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from agent0.events.base import Value
from agent0.events.digest import NOT_EMPTY
from agent0.events.episodes import Episode, EpisodeStep

Role = Literal["teacher", "student"]
Split = Literal["train", "validation", "test"]
End = Literal["answered", "no_answer", "turn_limit", "length", "budget"]
"""How an attempt ended."""


class Artifact(Value):
    """Claim check for anything over 64 KB: content lives in the artifact store under its sha256."""

    sha256: str
    size: int
    media: str = "application/octet-stream"


class TrainingStep(Value):
    """One step of an optimiser. What is None is not known, or is nothing that the step's objective has: not 0.

    Means are over the tokens it learned from, of the model before the step moved it, at the objective's temperature.
    """

    kind: Literal["policy", "replay"]
    """What its loss is: the objective's, or the likelihood of what is replayed."""
    loss: float | None
    """None: no finite number, as the norm."""
    gradient_norm: float | None
    """L2, of all weights that are trained, before it is clipped."""
    learning_rate: float
    tokens: int
    """That it learned from."""
    entropy_estimate: float | None = None
    """Mean negative log-probability of the tokens, nats: their entropy, estimated by one sample each."""
    parent_kl: float | None = None
    """KL(parent || model), nats a token, by k3 on the tokens that the parent sampled."""
    penalised_kl: float | None = None
    """KL(model || the checkpoint that ``kl_to`` names), nats a token, as the penalty estimates and weighs it."""
    clip_below: float | None = None
    """Share of tokens whose ratio was clipped from below, or above."""
    clip_above: float | None = None
    mismatch: float | None = None
    """Mean |log p - log p| of the sampler's and the trainer's parent, nats a token: where the trainer computes the
    parent, and at the first step, which begins with it."""
    skipped: bool = False
    """The weights were not moved: loss or norm is no finite number."""


QUESTIONS, DOCUMENTS = "questions", "documents"
"""The families of tasks that are rows of a file, and of those that a teacher writes about passages of documents (their
domain, too). Neither is registered: there is nothing to draw or to solve."""
REPAIR = "repair"
"""The domain of tasks that ask to change files until tests pass which nobody sees."""
HARBOR = "harbor"
"""The domain of tasks from others' task folders, and the verifier that runs their tests."""
TESTING = "testing"
"""The domain of tasks that ask for tests which reject wrong versions that nobody sees."""
REVIEWING = "reviewing"
"""The domain of tasks that ask which lines of files are wrong."""
REFACTORING = "refactoring"
"""The domain of tasks that ask for simpler code with the same values."""
DOCUMENTING = "documenting"
"""The domain of tasks that ask for docstrings from which functions can be written."""
SOLVING, SOLUTION = "solving", "solution"
"""The domain of tasks on a person's own repository (``agent0 solve``), and the verifier that runs their check."""
JUDGED = "judged"
"""The kind of a row's answer that a judge model compares, where one is named."""


class Passage(Value):
    """Characters ``start`` to ``end`` of a document's text, about which a teacher was to write a question. ``sha256``
    is that of the passage, ``quotation`` the sentence that holds the answer; empty where no question came of it."""

    document: str
    sha256: str
    start: int
    end: int
    quotation: str = ""


class Repository(Value):
    """The files that a task asks to change. ``tree`` is the manifest of the work folder that an attempt begins with,
    ``hidden`` what decides about it, which no student sees; ``package``: whose files they are."""

    package: str
    tree: Artifact
    hidden: Artifact
    format: Annotated[str, NOT_EMPTY] = ""
    """``harbor``: a task folder of Harbor; ``solution``: a person's own; empty: mined."""


class SourceRow(Value):
    """The row of a file of questions that a task is, or the passage of a document that it is about, with what decides
    about answers to it: the published ``answer``, or where a program is asked for ``tests`` of its function ``entry``,
    which ``answer`` passes. Where it asks to change a ``repository``, an answer names a work folder."""

    id: str
    epoch: int = 0
    """How often all rows were asked before; 0 of a held-out one."""
    answer: str
    tests: str = ""
    entry: str = ""
    kind: Annotated[str, NOT_EMPTY] = ""
    """The kind of its answer; empty: as the answer reads."""
    tolerance: Annotated[str, NOT_EMPTY] = ""
    """By how much a number may differ from the answer: ``0.01``, or ``1%`` of it; empty: not at all."""
    tools: Annotated[tuple[str, ...], NOT_EMPTY] = ()
    """Of the run's tools, those that may be called for it; ``none`` alone: none; empty: all."""
    passage: Annotated[str, NOT_EMPTY] = ""
    """The text of the passage, where the student reads it before the question."""
    repository: Annotated[Repository | None, NOT_EMPTY] = None
    """Of a mined task."""
    episode: Annotated[Episode | None, NOT_EMPTY] = None
    """Of an environment that says itself what an answer is worth."""


class Task(Value):
    """A question with what is needed to verify it. ``canonical`` is its identity: two tasks with one are the same.

    A ``long`` task has ``subgoals``, in order, the last of which is the task's own answer. They say what is asked at
    each step; what is right is nowhere in the task, unless it is a ``row`` of a file.
    """

    question: str
    domain: str
    family: str
    level: int
    canonical: str
    params: dict[str, Any] = Field(default_factory=dict)
    program: str = ""
    """A teacher's checking program (open tasks only): prints the answer, run in the verifier's sandbox. Where it brings
    ``tests``, the program that is asked for; where it brings a ``checker``, what it prints is one right answer."""
    kind: Literal["short", "long"] = "short"
    subgoals: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    """A teacher's checking programs for the subgoals (open long tasks only): one each, or none at all."""
    row: Annotated[SourceRow | None, NOT_EMPTY] = None
    """Where it comes from a file of questions."""
    tests: Annotated[str, NOT_EMPTY] = ""
    """A teacher's tests of the program that is asked for (open tasks only)."""
    checker: Annotated[str, NOT_EMPTY] = ""
    """A teacher's function ``check(answer)`` that says whether an answer is right (open tasks only)."""


class ToolCall(Value):
    """A call as the student wrote it. ``error`` says why it could not be parsed (then ``name`` may be empty)."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    raw: str = ""
    error: str = ""


class ToolState(StrEnum):
    """How a sandboxed call ended. Only ``ok`` and ``error`` are the code's own doing within its limits."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    OUTPUT_FLOOD = "output_flood"
    REFUSED = "refused"
    BUSY = "busy"
    CANCELLED = "cancelled"
    SANDBOX_ERROR = "sandbox_error"


class ToolResult(Value):
    """What a tool returned and what it cost (seconds, MiB, bytes printed).

    ``reason`` says why a call was refused or ended early. ``work`` is the manifest of the attempt's work folder after
    the call (``agent0.tools.snapshots``), None where it is empty; ``files`` and ``file_bytes`` measure it.
    """

    state: ToolState
    output: str = ""
    rc: int | None = None
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_mem_mib: float = 0.0
    tier: str = ""
    backend: str = ""
    cached: bool = False
    artifact: Artifact | None = None
    reason: str = ""
    output_bytes: int = 0
    work: Artifact | None = None
    files: int = 0
    file_bytes: int = 0
    step: Annotated[EpisodeStep | None, NOT_EMPTY] = None
    """Of an environment's tool."""


class Usage(Value):
    """The tokens and seconds that a model call took; ``first_s`` of them until the first token, None where nobody
    knows. What came before the call had its turn at the model does not count."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    wall_s: float = 0.0
    first_s: float | None = None

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens written a second after the first, None where that is not known."""
        seconds = self.wall_s - self.first_s if self.first_s is not None else 0.0
        return (self.completion_tokens - 1) / seconds if seconds > 0 and self.completion_tokens > 1 else None


class TokenCounts(Value):
    """The tokens of a remote call by kind. ``cache_read`` and ``cache_write`` are parts of ``read``, ``cache_write_1h``
    (written to be kept an hour) is one of ``cache_write``, ``reasoning`` one of ``written``: whatever the vendor's own
    convention is."""

    read: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    written: int = 0
    reasoning: int = 0
    searches: int = 0
    """Web searches that the vendor made, not tokens."""


class OpenReservation(Value):
    """What a budget holds for a call under way: ``amount`` in nano-dollars, until ``expires`` (Unix time, seconds)."""

    call: str
    amount: int
    expires: int


class RouteOption(Value):
    """A model that a question could be asked of. ``cost``: the most that it might have cost in nano-dollars, None:
    nobody knows. ``right``: how often it is right as the settings have it. ``refused``: why it could not be asked."""

    model: str
    cost: int | None = None
    right: float | None = None
    refused: str = ""


class RouteAnswer(Value):
    """What a model answered: ``key`` is equal for equal answers. ``features`` are what its ``confidence`` follows from,
    None where there are none; ``cost`` in nano-dollars. ``calibrator``: the version of what made it of
    them, empty where that has none, or nothing did. ``calls``: it calls a tool, and its model costs nothing."""

    model: str
    key: str
    confidence: float | None = None
    features: dict[str, float] = Field(default_factory=dict)
    cost: int | None = None
    calibrator: str = ""
    calls: bool = False


class RouteStep(Value):
    """One decision of a strategy: the model that it had asked, or whose answer it gave, and why."""

    ask: str = ""
    give: str = ""
    reason: str = ""


Capture = Literal["", "tokens", "logprobs", "text"]
"""How much a model server gave of what its model wrote: the ids of prompt and completion with log-probabilities, the
latter only, or neither. Empty: no server, or not recorded."""


class Trajectory(Value):
    """What the model saw and wrote, by token. All three have one length T.

    ``mask[i]`` is 1 where token i was sampled by the policy (0: prompt, tool output, forced prefix);
    ``logprobs[i]`` is the behaviour policy's log-probability there at its sampling temperature, else 0.
    """

    token_ids: tuple[int, ...] = ()
    mask: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()


class Turn(Value):
    """One message of a transcript. ``token_ids`` are the sampled ids of an assistant turn (never re-encoded).
    ``thinking`` is the thought that a server gave apart from it: recorded, never graded, never sent again."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    name: str = ""
    token_ids: tuple[int, ...] = ()
    thinking: str = ""


class ToolUse(Value):
    """One tool call with its result and its assistant turn (from 0). ``inner``: it is a step of the plan call that
    follows."""

    turn: int
    call: ToolCall
    result: ToolResult
    inner: bool = False


class Conversation(Value):
    """What was said in an attempt, its prompt included, and the tool calls that were made in it."""

    transcript: tuple[Turn, ...] = ()
    calls: tuple[ToolUse, ...] = ()


class ImportedFile(Value):
    """The file of another framework that a run's attempts come from: ``format`` names what wrote it."""

    name: str
    sha256: str
    format: str
    attempts: int


class ForeignLine(Value):
    """Where an imported attempt stands in its file, and what the file says of it that no event keeps."""

    location: str
    losses: tuple[str, ...] = ()


class SelfCritique(Value):
    """A student's judgement of its own answer, asked for in a turn of its own behind the attempt.

    ``probability`` is that of the answer being right, ``verdict`` what it said of it; both None where it could not tell
    or be asked, and ``problem`` says why. ``by``: the likelihood of the two words it may say, the probability of the
    tokens it wrote, or the text alone (then ``probability`` is 0 or 1).
    """

    prompt: str
    """Version of the prompt."""
    question: str
    text: str = ""
    verdict: bool | None = None
    probability: float | None = None
    by: Literal["", "likelihood", "tokens", "text"] = ""
    problem: str = ""
    usage: Usage = Usage()


class Vote(Value):
    """One independent check of an answer: True, False, or None where it cannot decide."""

    check: str
    correct: bool | None
    reason: str = ""


class ReliabilityBin(Value):
    """Items of about the same confidence: its mean, and the share of them that was right."""

    confidence: float
    accuracy: float
    items: int


class PairedTest(Value):
    """Two checkpoints on the same items: mean difference with its 95 % interval and the exact McNemar p.

    ``detectable`` is the smallest true difference that would be significant with a power of 80 %.
    """

    against: str
    mean: float
    lower95: float
    upper95: float
    p: float
    items: int
    gained: int
    lost: int
    detectable: float


class RewardPart(Value):
    """One part of a receipt; the receipt's set combines parts into its total. ``value`` None means unscored, which is
    not zero."""

    name: str
    inputs: dict[str, Any] = Field(default_factory=dict)
    value: float | None
    weight: float = 1.0
