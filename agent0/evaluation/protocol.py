"""Evaluation protocols: how often and at which temperature a student attempts held-out tasks, and what is read from it:
accuracy, pass@k (verifier-selected) and maj@k.

The controls that need no training are protocols of the base: greedy, sampled at several temperatures, with its tool
forced, the majority of 8, 32 checked attempts.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from agent0.stats.intervals import wilson

if TYPE_CHECKING:
    from events.checkpoints import StudentExamined
    from events.values import Split


OWN_SETS = "own sets"
"""Among ``excluded``: the validation and test sets of the checkpoint's own run."""


@dataclass(frozen=True)
class EvaluationProtocol:
    """How a student is evaluated: ``attempts`` at each of ``n`` tasks of ``split``, drawn by ``seed``, at
    ``temperature``.

    ``temperature`` 0 is greedy, where more than one attempt says nothing new. ``levels`` (empty: all) of the tasks;
    ``forced_tool``: each attempt begins with a tool call, and a student without a tool is given one; ``beyond``: tasks
    with numbers larger than those that training draws; ``excluded``: names in ``DRAWN`` of sets whose tasks are not
    drawn, or ``OWN_SETS``.
    """

    n: int
    seed: int
    attempts: int = 1
    temperature: float = 0.0
    split: "Split" = "test"
    forced_tool: bool = False
    levels: tuple[int, ...] = ()
    beyond: bool = False
    excluded: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The protocol for display: ``8 at T=1, tool forced``."""
        heat = f"{self.attempts} at T={self.temperature:g}" if self.temperature else "greedy"
        return f"{heat}, tool forced" if self.forced_tool else heat

    def matches(self, event: "StudentExamined") -> bool:
        """Whether ``event`` records a result under this protocol."""
        found = EvaluationProtocol(
            len(event.right),
            event.seed,
            event.attempts,
            event.temperature,
            event.split,
            event.forced_tool,
            event.levels,
            event.beyond,
            event.excluded,
        )
        return found == self


@dataclass(frozen=True)
class TaskSet:
    """Held-out tasks that several protocols share: of ``levels`` in ``split``, drawn by ``seed``, without those of the
    sets ``excluded``."""

    name: str
    title: str
    n: int
    seed: int
    levels: tuple[int, ...] = ()
    split: "Split" = "test"
    beyond: bool = False
    excluded: tuple[str, ...] = ()

    def protocol(self, attempts: int = 1, temperature: float = 0.0, *, forced_tool: bool = False) -> EvaluationProtocol:
        """The protocol that attempts these tasks in the given way."""
        return EvaluationProtocol(
            self.n, self.seed, attempts, temperature, self.split, forced_tool, self.levels, self.beyond, self.excluded
        )


@dataclass(frozen=True)
class DrawnSet:
    """A set of countdown tasks of the test split that was drawn once."""

    name: str
    n: int
    seed: int
    levels: tuple[int, ...]
    excluded: tuple[str, ...] = ()
    beyond: bool = False

    def set(self, name: str, title: str) -> TaskSet:
        """The same tasks under a name and title for a page."""
        return TaskSet(name, title, self.n, self.seed, self.levels, beyond=self.beyond, excluded=self.excluded)


SOLVED = "solved before"
SOLVED_TASKS = frozenset(
    (
        "countdown 11 from 1,4,6", "countdown 12 from 6,9,9", "countdown 12 from 9,9,12", "countdown 14 from 79,93",
        "countdown 17 from 1,3,6,9", "countdown 7 from 5,7,9",
    )
)  # fmt: skip
"""Tasks that students of profile search were scored on before the sets below were drawn; none of these holds them."""
_BEFORE = (SOLVED, "search")
DRAWN = {
    one.name: one
    for one in (
        DrawnSet("search", 200, 20260101, (2, 3)),
        DrawnSet("fresh", 150, 20261122, (2, 3), _BEFORE),
        DrawnSet("harder", 60, 20261123, (4,), _BEFORE),
        DrawnSet("taught", 60, 20261124, (1,), _BEFORE),
        DrawnSet("outside", 150, 20261125, (2, 3), _BEFORE, beyond=True),
    )
}
"""Every set that a claim was made on, in the order in which they were drawn; ``search`` is the test set of its runs. A
new one is added at the end and excludes those before it."""


@cache
def canonical_forms(name: str) -> frozenset[str]:
    """Canonical forms of the tasks of the set ``name`` in ``DRAWN``, or of those ``SOLVED`` before."""
    from agent0.tasks.splits import heldout

    if name == SOLVED:
        return SOLVED_TASKS
    one = DRAWN[name]
    without = canonical_forms_of(one.excluded)
    tasks = heldout(
        "test",
        one.n,
        one.seed,
        ("math",),
        names=("countdown",),
        levels=one.levels,
        beyond=one.beyond,
        without=without,
    )
    return frozenset(task.canonical for task in tasks)


def canonical_forms_of(names: Iterable[str]) -> frozenset[str]:
    """Canonical forms of the tasks of all these sets of ``DRAWN`` together."""
    return frozenset().union(*(canonical_forms(name) for name in names if name != OWN_SETS))


def earlier_sets(tasks: TaskSet) -> tuple[str, ...]:
    """Names in ``DRAWN`` of the sets that were drawn before ``tasks``; all of them where it is not among them."""
    names = list(DRAWN)
    own = (tasks.n, tasks.seed, tasks.levels, tasks.beyond, tasks.excluded)
    sets = [(one.n, one.seed, one.levels, one.beyond, one.excluded) for one in DRAWN.values()]
    found = [place for place, one in enumerate(sets) if one == own]
    return tuple(names[: found[-1]] if found else names)


def scores(event: "StudentExamined") -> dict[str, Any]:
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
    found: dict[str, Any] = {"exam": event.exam, "n": n, "attempts": event.attempts}
    for name, share in shares.items():
        low, high = wilson(round(share * n), n)
        found |= {name: round(share, 4), f"{name}_lower95": round(low, 4), f"{name}_upper95": round(high, 4)}
    return found
