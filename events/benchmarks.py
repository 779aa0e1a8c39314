"""Events of benchmark scoring, calibration of confidence, and human review."""

import re
from typing import Any, Literal

from pydantic import Field

from agent0.events.base import TOKEN, Event, sha256
from agent0.events.values import Artifact, Conversation, End, ReliabilityBin, Usage

Mode = Literal["tools", "plain"]
Control = Literal["", "visible", "refined"]
"""How samples in work folders come about: ``visible`` ones are checked by what the student can see, ``refined`` ones as
well, and each goes on from what the one before it left, greedily."""


class BenchmarkStarted(Event):
    """``agent0 bench run`` began: everything its numbers depend on. ``files`` are digests of the rows by file name."""

    name: str
    benchmarks: tuple[str, ...]
    modes: tuple[Mode, ...]
    samples: int
    limit: int
    seed: int
    actor: dict[str, Any]
    """Configuration of the student that is scored."""
    adapter: Artifact | None = None
    checkpoint: str = "base"
    files: dict[str, str]
    versions: dict[str, str] = Field(default_factory=dict)
    """Benchmark -> digest of its prompt and judge."""
    control: Control = ""


class ItemScored(Event):
    """One sample of one benchmark item was answered and verified. ``correct`` None is undecided, which is not wrong."""

    benchmark: str
    item: str
    mode: Mode
    sample: int
    answer: str | None
    correct: bool | None
    reason: str
    end: End
    turns: int = 0
    tool_calls: int = 0
    tool_ok: int = 0
    parse_errors: int = 0
    confidence: float | None = None
    """Mean probability of the sampled tokens, where the provider tells."""
    conversation: Conversation | None = None
    conversation_artifact: Artifact | None = None
    """The conversation where it is over 64 KB."""
    usage: Usage = Usage()
    wall_s: float = 0.0
    facts: dict[str, str] = Field(default_factory=dict)
    """What the row says of itself: subject, level…"""
    metrics: dict[str, float] = Field(default_factory=dict)
    """Other scores of this sample: acc_norm where the provider gives likelihoods."""
    signals: dict[str, float] = Field(default_factory=dict)
    """How sure the student was, signal by signal, each in [0, 1]."""
    error: str = ""
    """Class of the mistake, empty where there is none: no_answer, format, wrong_value, timeout…"""
    authors: dict[str, int] = Field(default_factory=dict)
    """Turns that other models wrote than the one that was meant, by model."""

    @property
    def task(self) -> str:
        """Subject token: the benchmark in its mode."""
        return _token(f"{self.benchmark}-{self.mode}", 40)

    @property
    def attempt(self) -> str:
        """Subject token, unique in its run: benchmark, mode, item and sample."""
        item = self.item.removeprefix(f"{self.benchmark}/")
        item = item if "-" in item else item.replace("/", "-")  # of two items that differ, so do these
        return f"{self.task}-{_token(item, 18)}-{self.sample}"


def _token(text: str, longest: int) -> str:
    """``text`` where a subject may hold it; else its readable beginning with a part of its digest."""
    if len(text) <= longest and TOKEN.fullmatch(text):
        return text
    readable = re.sub(r"[^A-Za-z0-9_]+", "-", text)[: longest - 11].strip("-")
    return f"{readable}-{sha256(text)[:10]}".lstrip("-")


class BenchmarkScored(Event):
    """All samples of one benchmark in one mode were scored. ``pass_at`` is unbiased pass@k, by k; intervals are
    Wilson's, 95 %."""

    benchmark: str
    mode: Mode
    n: int
    samples: int
    correct: int
    undecided: int
    truncated: int = 0
    """Samples without an answer whose reply met the limit of tokens."""
    accuracy: float
    lower95: float
    upper95: float
    pass_at: dict[str, float] = Field(default_factory=dict)
    metrics: dict[str, float] = Field(default_factory=dict)
    wall_s: float = 0.0


class BenchmarkFinished(Event):
    """Every benchmark of the run is scored. ``results`` is the results file as lm-eval writes it."""

    results: Artifact


class BenchmarksIndexed(Event):
    """The benchmark items that generated tasks are compared with, so that none is trained on (``screen_task``).

    ``files`` are digests by name; ``ngram`` words in a row, or an embedding nearer than ``limit``, are an overlap.
    """

    benchmarks: tuple[str, ...]
    files: dict[str, str]
    items: int
    ngram: int
    limit: float
    embedder: str


SAMPLED = "sampled"
"""Behind a model's name: calibrators for answers that were sampled, as a run's attempts are, and not greedy."""


ROUTED = "routed"
"""Behind a model's name: calibrators of single turns, as a router measures them (``agent0 router calibrate``)."""


class CalibratorFitted(Event):
    """A calibrator of confidence was fitted, on other items than it is scored on (``agent0 calibrate``, ``agent0 router
    calibrate``)."""

    name: str
    """The model's."""
    signal: str
    """One of ``agent0.rollout.confidence.signals``, or several with a plus between them."""
    method: Literal["temperature", "platt", "isotonic", "logistic"]
    parameters: tuple[float, ...]
    """As ``agent0.stats.calibrators.Calibrator`` has them; ``logistic``: as ``agent0.stats.logistic.Fusion``."""
    fitted_on: int
    scored_on: int
    ece_before: float
    ece_after: float
    lower95: float
    upper95: float
    brier_before: float
    brier_after: float
    source: str = ""
    """The evaluation whose items it saw."""
    revision: int = 1
    """Counts up with each calibrator of this name and signal."""
    checkpoint: str = "base"
    before_lower95: float = 0.0
    before_upper95: float = 1.0
    reliability: tuple[ReliabilityBin, ...] = ()
    """After calibration; bins without items are left out."""
    log_loss: float | None = None
    """Cross-validated on the items it was fitted on, nats: the lowest one of a run is the one to use."""
    auroc: float | None = None
    """Chance that a right answer has the higher confidence; 0.5 tells nothing, however well calibrated."""
    ece_floor: float | None = None
    """What chance alone leaves of as many items if every confidence were exactly right."""


class TaskReviewed(Event):
    """A reviewer decided about an attempt (``agent0 task review``); a reviewer's verdict outweighs the others."""

    task: str
    attempt: str
    correct: bool | None
    reviewer: str
    reason: str = ""
