"""Progress of a training as its process reports it. Nothing heavy is imported here: the parent reads these."""

import time
from collections.abc import Callable
from dataclasses import dataclass

EVERY_S = 0.5


@dataclass(frozen=True)
class StepProgress:
    """``done`` of ``total`` steps, and the seconds left (None: not known yet). ``room`` is the estimated memory
    need, known before the model is loaded."""

    done: int = 0
    total: int = 0
    left_s: float | None = None
    room: str = ""


class Pace:
    """Counts training steps and reports progress every half second; the last step is always reported."""

    def __init__(self, total: int, done: int, report: Callable[[StepProgress], None], room: str = "") -> None:
        self._total, self._done, self._begun, self._report, self._room = total, done, done, report, room
        self._start = self._last = time.monotonic()
        report(StepProgress(done, total, None, room))

    def step(self) -> None:
        """One more was taken, or left out."""
        self._done += 1
        moment = time.monotonic()
        if moment - self._last < EVERY_S and self._done < self._total:
            return
        self._last = moment
        each = (moment - self._start) / (self._done - self._begun)
        self._report(StepProgress(self._done, self._total, each * (self._total - self._done), self._room))
