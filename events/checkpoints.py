"""The story of a checkpoint: asked for, trained, evaluated, promoted or rejected."""

from typing import Any, Literal

from pydantic import Field

from events.base import Event
from events.values import Artifact, PairedTest, Role, Split


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


class CheckpointTrained(Event):
    """A new adapter exists (``train_checkpoint``). ``adapter`` None: there was nothing to learn from, parent kept.

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


class EvaluationRequested(Event):
    """Score a student checkpoint on a held-out split (``advance_run``)."""

    evaluation: str
    checkpoint: str
    adapter: Artifact | None = None
    iteration: int
    split: Split
    n: int
    seed: int
    forced_tool: bool = False
    state_sha: str


class CheckpointEvaluated(Event):
    """Greedy accuracy on held-out tasks (``evaluate_checkpoint``). Undecided items count as wrong here.

    ``items`` is an artifact: JSON lines with task, answer, verdict, tool calls and seconds of every item.
    """

    evaluation: str
    checkpoint: str
    iteration: int
    split: Split
    forced_tool: bool = False
    n: int
    correct: int
    accuracy: float
    lower95: float
    upper95: float
    tool_use: float
    """Share of items with at least one successful tool call."""
    undecided: int = 0
    by_domain: dict[str, float] = Field(default_factory=dict)
    by_level: dict[str, float] = Field(default_factory=dict)
    latency_p50_s: float = 0.0
    latency_p95_s: float = 0.0
    items: Artifact | None = None
    outcomes: str = ""
    """One character an item in set order: 1 correct, 0 wrong, ? undecided. For paired comparison."""
    wall_s: float = 0.0


class CheckpointPromoted(Event):
    """The student goes on with this checkpoint (``judge_checkpoint``)."""

    checkpoint: str
    iteration: int
    accuracy: float
    against: float | None = None
    reason: str
    test: PairedTest | None = None
    improved: bool = False
    """Whether the paired test allows the word."""


class CheckpointRejected(Event):
    """The student goes on with the checkpoint promoted before (``judge_checkpoint``)."""

    checkpoint: str
    iteration: int
    accuracy: float
    against: float | None = None
    reason: str
    test: PairedTest | None = None


class CheckpointRolledBack(Event):
    """A person or a guard went back to an earlier checkpoint."""

    checkpoint: str
    to: str
    reason: str
    cause_kind: Literal["person", "guard"] = "person"
