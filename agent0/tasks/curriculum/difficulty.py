"""The difficulty of a task for the present student: solve rate with an interval, and what attempts took."""

from dataclasses import dataclass
from typing import Literal

from agent0.stats.intervals import wilson

Grade = Literal["unknown", "mastered", "easy", "frontier", "hard", "unsolved"]
BAND = (0.1, 0.9)


@dataclass(frozen=True)
class Difficulty:
    """A task's solve rate with its 95 % interval; ``turns`` and ``calls`` are means per attempt, None
    without attempts."""

    grade: Grade
    solved: int
    tried: int
    rate: float | None = None
    lower95: float = 0.0
    upper95: float = 1.0
    turns: float | None = None
    calls: float | None = None


def grade(
    solved: int, tried: int, band: tuple[float, float] = BAND, turns: float | None = None, calls: float | None = None
) -> Difficulty:
    """Grade the difficulty of a task that ``solved`` of ``tried`` attempts solved; the interval is Wilson's (1927).

    ``frontier``: the rate lies inside ``band``. Outside it a task is ``hard`` or ``easy`` as long as its interval
    reaches into the band, and ``unsolved`` or ``mastered`` where it no longer does.

    Raises:
        ValueError: more solved than tried.
    """
    if not 0 <= solved <= tried:
        raise ValueError(f"{solved} of {tried} attempts cannot have solved it")
    if not tried:
        return Difficulty("unknown", 0, 0)
    rate, (low, high) = solved / tried, wilson(solved, tried)
    label: Grade = "frontier"
    if rate < band[0]:
        label = "unsolved" if high < band[0] else "hard"
    elif rate > band[1]:
        label = "mastered" if low > band[1] else "easy"
    return Difficulty(label, solved, tried, rate, low, high, turns, calls)
