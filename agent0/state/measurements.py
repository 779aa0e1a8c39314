"""What is measured of a checkpoint, of tasks and of a teacher while a run goes on, as values of its state."""

from dataclasses import dataclass

from agent0.events.checkpoints import EvaluationRequested
from agent0.events.tasks import GainRequested, ProbeSelected


@dataclass(frozen=True)
class EvaluationState:
    """What is known of an evaluation under way: its request, and how many of its items are scored."""

    request: EvaluationRequested
    size: int
    """Items."""
    scored: int = 0

    @property
    def complete(self) -> bool:
        """Whether every item is scored."""
        return self.scored == self.size


@dataclass(frozen=True)
class GainState:
    """What is known of the measurement of an iteration's gains: its request, what it trains and is scored on, and the
    gain of each subset so far."""

    request: GainRequested
    probe: ProbeSelected | None = None
    gains: tuple[float, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every subset is measured, or there is none."""
        return self.probe is not None and len(self.gains) == len(self.probe.subsets)


@dataclass(frozen=True)
class Proposals:
    """A teacher's screened proposals of one iteration: how many, how many held a task, how many were accepted."""

    screened: int
    readable: int
    accepted: int
