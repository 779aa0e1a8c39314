"""Evaluation protocols: how often and at which temperature a student attempts held-out tasks, and what is read from it:
accuracy, pass@k (verifier-selected) and maj@k.

The controls that need no training are protocols of the base: greedy, sampled at several temperatures, with its tool
forced, the majority of 8, 32 checked attempts.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent0.stats.intervals import wilson

if TYPE_CHECKING:
    from agent0.events.checkpoints import StudentExamined
    from agent0.events.values import Split


OWN_SETS = "own sets"
"""Among ``excluded``: the validation and test sets of the checkpoint's own run."""


@dataclass(frozen=True)
class EvaluationProtocol:
    """How a student is evaluated: ``attempts`` at each of ``n`` tasks of ``split``, drawn by ``seed``, at
    ``temperature``.

    ``temperature`` 0 is greedy, where more than one attempt says nothing new. ``levels`` (empty: all) of the tasks;
    ``forced_tool``: each attempt begins with a tool call, and a student without a tool is given one; ``excluded``: sets
    whose tasks are not drawn (``OWN_SETS``).
    """

    n: int
    seed: int
    attempts: int = 1
    temperature: float = 0.0
    split: "Split" = "test"
    forced_tool: bool = False
    levels: tuple[int, ...] = ()
    excluded: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The protocol for display: ``8 at T=1, tool forced``."""
        heat = f"{self.attempts} at T={self.temperature:g}" if self.temperature else "greedy"
        return f"{heat}, tool forced" if self.forced_tool else heat


def scores(event: "StudentExamined") -> dict[str, float | str]:
    """Read the scores of an event: one attempt, pass@k (verifier-selected) and maj@k, as shares of tasks with 95 %
    Wilson intervals.

    The interval of one attempt is that of the mean over attempts, as if each task counted once.
    """
    n = len(event.right)
    single = sum(event.right) / (n * event.attempts)
    shares = {
        "single": single,
        "within": sum(right > 0 for right in event.right) / n,
        "majority": event.majority.count("1") / n,
    }
    row: dict[str, float | str] = {"exam": event.exam, "n": n, "attempts": event.attempts}
    for name, share in shares.items():
        low, high = wilson(round(share * n), n)
        row |= {name: round(share, 4), f"{name}_lower95": round(low, 4), f"{name}_upper95": round(high, 4)}
    return row
