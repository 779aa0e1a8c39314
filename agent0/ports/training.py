"""Roles of training: what is trained on, and the trainer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agent0.events.values import Artifact, TrainingStep, Trajectory, Turn
from agent0.settings import ActorConfig

GRADIENT_NORM = 1.0
"""L2 norm to which a trainer clips the gradient of a step."""
Source = Literal["own", "taught", "made"]


@dataclass(frozen=True)
class Sample:
    """One trajectory to train on, with its ``advantage`` (any real) and ``weight`` (>= 0).

    ``over`` is the trajectory that this one is preferred to (preference pairs only). ``source`` says whose tokens are
    learned: the policy's ``own``, what its base was ``taught``, or an example that was ``made`` of its attempts.
    ``stale``: a checkpoint before the parent wrote it.
    """

    trajectory: Trajectory
    advantage: float = 0.0
    clip_high: float = 0.2
    weight: float = 1.0
    over: Trajectory | None = None
    source: Source = "own"
    stale: bool = False


@dataclass(frozen=True)
class TrainingExample:
    """A conversation to learn by likelihood that no policy sampled as it stands: it has no token ids, the trainer
    tokenises it.

    Only assistant text is learned. ``event`` is the id of the event it was made from.
    """

    turns: tuple[Turn, ...]
    weight: float = 1.0
    event: str = ""


@dataclass(frozen=True)
class TrainJob:
    """One adapter to train: the objective named in ``settings`` on ``samples``, plus likelihood on ``replay`` (verified
    successes) and ``examples``."""

    samples: tuple[Sample, ...]
    replay: tuple[Sample, ...]
    parent: Artifact | None
    seed: int
    settings: Mapping[str, Any]
    metadata: Mapping[str, str] = field(default_factory=dict)
    examples: tuple[TrainingExample, ...] = ()
    optimizer: Artifact | None = None
    """What the optimizer remembered of ``parent``, where a training goes on with that."""


@dataclass(frozen=True)
class TrainingResult:
    """A trained adapter with the metrics of its training (loss, steps, tokens, clip share, seconds…), and each of its
    steps where the trainer reports them."""

    adapter: Artifact
    metrics: dict[str, float]
    environment: dict[str, str] = field(default_factory=dict)
    """Threads, torch build, CPU capability: what bit-equality depends on."""
    steps: tuple[TrainingStep, ...] = ()
    optimizer: Artifact | None = None
    """What the optimizer remembers of the adapter, where the next training may go on with that."""


class Trainer(Protocol):
    """Trains an adapter on weighted trajectories, in a process of its own."""

    async def train(self, job: TrainJob) -> TrainingResult:
        """Train the adapter of ``job``. The same job gives the same adapter on one machine kind."""
        ...


class Trainers(Protocol):
    """Opens the trainer that belongs to a role's model provider."""

    def open(self, actor: ActorConfig) -> Trainer:
        """Return the trainer for ``actor``'s model.

        Raises:
            ConfigError: the provider's models cannot be trained here.
        """
        ...
