"""Roles of training: what is trained on, and who trains."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent0.settings import ActorConfig
from events.values import Artifact, Trajectory, Turn


@dataclass(frozen=True)
class Sample:
    """One trajectory with what the objective needs: ``advantage`` (any real), ``weight`` (>= 0), and the trajectory
    that this one is preferred ``over`` (preference pairs only)."""

    trajectory: Trajectory
    advantage: float = 0.0
    clip_high: float = 0.2
    weight: float = 1.0
    over: Trajectory | None = None


@dataclass(frozen=True)
class Lesson:
    """A conversation that no policy wrote as it stands, so that it has no token ids: the trainer makes them. Only what
    the assistant says is learned. ``event`` is the fact it was made from.

    ``learned`` are places (start, end) in the last turn: of it, only these count, and its end where ``closed``.
    ``origin``: what of these is whose, as ``CheckpointTrained.learned`` has it.
    """

    turns: tuple[Turn, ...]
    weight: float = 1.0
    event: str = ""
    learned: tuple[tuple[int, int], ...] | None = None
    closed: bool = True
    origin: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainJob:
    """Train one adapter: the objective that ``settings`` names on ``samples``, plus likelihood on ``replay`` (verified
    successes) and ``lessons``."""

    samples: tuple[Sample, ...]
    replay: tuple[Sample, ...]
    parent: Artifact | None
    seed: int
    settings: Mapping[str, Any]
    metadata: Mapping[str, str] = field(default_factory=dict)
    lessons: tuple[Lesson, ...] = ()


@dataclass(frozen=True)
class Trained:
    """A new adapter and the numbers of its making (loss, steps, tokens, clip share, seconds…)."""

    adapter: Artifact
    metrics: dict[str, float]
    environment: dict[str, str] = field(default_factory=dict)
    """Threads, torch build, CPU capability: what bit-equality depends on."""


class Trainer(Protocol):
    """Turns weighted trajectories into an adapter, in a process of its own."""

    async def train(self, job: TrainJob) -> Trained:
        """Same job, same adapter (on one machine kind)."""
        ...


class Trainers(Protocol):
    """Opens the trainer that belongs to a role's provider."""

    def open(self, actor: ActorConfig) -> Trainer:
        """The trainer for ``actor``'s model.

        Raises:
            ConfigError: the provider's models cannot be trained here.
        """
        ...
