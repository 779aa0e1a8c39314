"""A student asked several times: what one attempt, several checked ones and their majority come to, at any temperature.

The controls that need no training are such exams of the base: greedy, sampled at several temperatures, with its tool
forced, the majority of 8, 32 checked attempts.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent0.statistics import wilson

if TYPE_CHECKING:
    from events.checkpoints import StudentExamined
    from events.values import Split


@dataclass(frozen=True)
class Exam:
    """``attempts`` of each of ``n`` tasks of ``split``, drawn by ``seed``, of ``levels`` (empty: all), at
    ``temperature`` (0: greedy, where more than one attempt says nothing new); ``forced_tool``: each begins with a call,
    and who has no tool is lent one; ``beyond``: of numbers larger than those that training draws."""

    n: int
    seed: int
    attempts: int = 1
    temperature: float = 0.0
    split: "Split" = "test"
    forced_tool: bool = False
    levels: tuple[int, ...] = ()
    beyond: bool = False

    @property
    def name(self) -> str:
        """For people: ``8 at T=1, tool forced``."""
        heat = f"{self.attempts} at T={self.temperature:g}" if self.temperature else "greedy"
        return f"{heat}, tool forced" if self.forced_tool else heat

    def is_that_of(self, event: "StudentExamined") -> bool:
        """Whether ``event`` tells how somebody did in it."""
        told = Exam(
            len(event.right),
            event.seed,
            event.attempts,
            event.temperature,
            event.split,
            event.forced_tool,
            event.levels,
            event.beyond,
        )
        return told == self


@dataclass(frozen=True)
class ExamSet:
    """Held-out tasks that several exams are of: those of ``levels`` in ``split``, drawn by ``seed``."""

    name: str
    title: str
    n: int
    seed: int
    levels: tuple[int, ...] = ()
    split: "Split" = "test"
    beyond: bool = False

    def exam(self, attempts: int = 1, temperature: float = 0.0, *, forced_tool: bool = False) -> Exam:
        """Its tasks, so asked."""
        return Exam(self.n, self.seed, attempts, temperature, self.split, forced_tool, self.levels, self.beyond)


def scores(event: "StudentExamined") -> dict[str, Any]:
    """One attempt, any of all (a check picks), their majority (nobody picks): shares of tasks with 95 % intervals
    (Wilson 1927; one attempt's is of the mean over attempts, as if each task counted once)."""
    n = len(event.right)
    single = sum(event.right) / (n * event.attempts)
    shares = {
        "single": single,
        "within": sum(right > 0 for right in event.right) / n,
        "majority": event.majority.count("1") / n,
    }
    told: dict[str, Any] = {"exam": event.exam, "n": n, "attempts": event.attempts}
    for name, share in shares.items():
        low, high = wilson(round(share * n), n)
        told |= {name: round(share, 4), f"{name}_lower95": round(low, 4), f"{name}_upper95": round(high, 4)}
    return told
