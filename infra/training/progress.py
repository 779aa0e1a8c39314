"""Progress of a training as its process reports it. Nothing heavy is imported here: the parent reads these."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent0.events.values import TrainingStep

EVERY_S = 0.5
NEWEST = 500
"""Steps that are reported with the progress; all are recorded when the training has ended."""


@dataclass(frozen=True)
class StepProgress:
    """``done`` of ``total`` steps, and the seconds left (None: not known yet). ``room`` is the estimated memory need,
    known before the model is loaded; ``steps`` are the newest steps as `TrainingStep` has them, up to the one that is
    ``done``."""

    done: int = 0
    total: int = 0
    left_s: float | None = None
    room: str = ""
    steps: Sequence[Mapping[str, object]] = ()


class Pace:
    """Counts training steps and reports progress every half second; the last step is always reported."""

    def __init__(self, total: int, done: int, report: Callable[[StepProgress], None], room: str = "") -> None:
        self._total, self._done, self._begun, self._report, self._room = total, done, done, report, room
        self._start = self._last = time.monotonic()
        report(StepProgress(done, total, None, room))

    def step(self, steps: Sequence[TrainingStep] = ()) -> None:
        """One more was taken, or left out; ``steps`` are all so far."""
        self._done += 1
        moment = time.monotonic()
        if moment - self._last < EVERY_S and self._done < self._total:
            return
        self._last = moment
        each = (moment - self._start) / (self._done - self._begun)
        newest = [step.model_dump() for step in steps[-NEWEST:]]
        self._report(StepProgress(self._done, self._total, each * (self._total - self._done), self._room, newest))


def progress_file_name(checkpoint: str, seed: int) -> str:
    """Name the file that holds the training progress of ``checkpoint``."""
    return f"{checkpoint or 'training'}-{seed}.json"


def pace_of(folder: Path, checkpoint: str, seed: int) -> StepProgress | None:
    """How far a training is that keeps its files in ``folder``, in whatever process; None where none is under way."""
    try:
        return StepProgress(**json.loads((folder / progress_file_name(checkpoint, seed)).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
