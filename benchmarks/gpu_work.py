"""What both sides of ``benchmarks.gpu`` do, and how its cost is measured."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

GROUP = 8


@dataclass(frozen=True)
class Work:
    """What both sides do."""

    folder: str
    device: str
    quantization: str
    rows: int
    tokens: int
    rank: int = 16
    turns: int = 2


@dataclass(frozen=True)
class Cost:
    """Of the last turn: seconds and GiB for each part; ``tokens`` of completions."""

    tokens: int
    rollout_s: float
    rollout_gib: float
    train_s: float
    train_gib: float


def question(number: int) -> str:
    """A prompt of about a hundred tokens, another for each group."""
    return f"Task {number}. " + "Add the numbers, then say what you did. " * 2


class Meter:
    """Seconds and peak memory of a part."""

    def __init__(self, device: str) -> None:
        import torch

        self._cuda, self._start = torch.cuda if device != "cpu" else None, 0.0

    def begin(self) -> None:
        """From here on."""
        if self._cuda:
            self._cuda.synchronize()
            self._cuda.reset_peak_memory_stats()
        self._start = time.perf_counter()

    def end(self) -> tuple[float, float]:
        """(seconds, GiB that tensors held at most) since then."""
        if self._cuda:
            self._cuda.synchronize()
        seconds = time.perf_counter() - self._start
        return seconds, self._cuda.max_memory_allocated() / 2**30 if self._cuda else 0.0

    def time(self, work: Callable[[], Any]) -> tuple[Any, float, float]:
        """(what it gave, seconds, GiB)."""
        self.begin()
        found = work()
        return found, *self.end()

    def clear(self) -> None:
        """Give back what nobody holds."""
        if self._cuda:
            self._cuda.empty_cache()
