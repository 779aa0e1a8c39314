"""How far a training is, as its process tells it. Nothing heavy is imported here: the parent reads these."""

import time
from collections.abc import Callable
from dataclasses import dataclass

EVERY_S = 0.5


@dataclass(frozen=True)
class Told:
    """``done`` of ``total`` steps, and how long the rest will take (None: cannot be told yet). ``room`` says what
    memory the training is thought to need, before its model is loaded."""

    done: int = 0
    total: int = 0
    left_s: float | None = None
    room: str = ""


class Pace:
    """Counts steps and tells of them now and then; the last one always."""

    def __init__(self, total: int, done: int, tell: Callable[[Told], None], room: str = "") -> None:
        self._total, self._done, self._begun, self._tell, self._room = total, done, done, tell, room
        self._start = self._last = time.monotonic()
        tell(Told(done, total, None, room))

    def step(self) -> None:
        """One more was taken, or left out."""
        self._done += 1
        now = time.monotonic()
        if now - self._last < EVERY_S and self._done < self._total:
            return
        self._last = now
        each = (now - self._start) / (self._done - self._begun)
        self._tell(Told(self._done, self._total, each * (self._total - self._done), self._room))
