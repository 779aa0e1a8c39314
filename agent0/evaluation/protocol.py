"""A student asked several times: what one attempt, several checked ones and their majority come to, at any temperature.

The controls that need no training are such exams of the base: greedy, sampled at several temperatures, with its tool
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


@dataclass(frozen=True)
class Exam:
    """``attempts`` of each of ``n`` tasks of ``split``, drawn by ``seed``, of ``levels`` (empty: all), at
    ``temperature`` (0: greedy, where more than one attempt says nothing new); ``forced_tool``: each begins with a call,
    and who has no tool is lent one; ``beyond``: of numbers larger than those that training draws. Tasks of the sets
    ``excluded`` (names in ``DRAWN``) are not drawn."""

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
            event.excluded,
        )
        return told == self


@dataclass(frozen=True)
class ExamSet:
    """Held-out tasks that several exams are of: those of ``levels`` in ``split``, drawn by ``seed``, without those of
    the sets ``excluded``."""

    name: str
    title: str
    n: int
    seed: int
    levels: tuple[int, ...] = ()
    split: "Split" = "test"
    beyond: bool = False
    excluded: tuple[str, ...] = ()

    def exam(self, attempts: int = 1, temperature: float = 0.0, *, forced_tool: bool = False) -> Exam:
        """Its tasks, so asked."""
        return Exam(
            self.n, self.seed, attempts, temperature, self.split, forced_tool, self.levels, self.beyond, self.excluded
        )


@dataclass(frozen=True)
class Drawn:
    """Tasks of countdown in the test split as they were drawn once; ``rule``: of the split, then."""

    name: str
    n: int
    seed: int
    levels: tuple[int, ...]
    rule: int
    excluded: tuple[str, ...] = ()
    beyond: bool = False

    def set(self, name: str, title: str) -> ExamSet:
        """The same tasks, so named on a page."""
        return ExamSet(name, title, self.n, self.seed, self.levels, beyond=self.beyond, excluded=self.excluded)


EARLIER = (
    Drawn("search 1", 200, 20260101, (2, 3), 1),
    Drawn("fresh 1", 150, 20270101, (2, 3), 1),
    Drawn("harder 1", 60, 20270202, (4,), 1),
    Drawn("fresh 2", 150, 20270303, (2, 3), 1),
    Drawn("taught 1", 60, 20270404, (1,), 1),
    Drawn("search 2", 200, 20260101, (2, 3), 2),
)
"""What students of profile search were scored on before; ``search`` 1 and 2 are the test sets of its runs."""
_SEEN = tuple(one.name for one in EARLIER)
DRAWN = {
    one.name: one
    for one in (
        *EARLIER,
        Drawn("fresh 3", 150, 20261122, (2, 3), 2, _SEEN),
        Drawn("harder 2", 60, 20261123, (4,), 2, _SEEN),
        Drawn("taught 2", 60, 20261124, (1,), 2, _SEEN),
        Drawn("outside 1", 150, 20261125, (2, 3), 2, _SEEN, beyond=True),
    )
}
"""Every set that a claim was made on, in the order in which they were drawn. A new one is added at the end and excludes
those before it."""


@cache
def forms(name: str) -> frozenset[str]:
    """Canonical forms of the tasks of the set ``name`` of ``DRAWN``."""
    from agent0.tasks.splits import heldout

    one = DRAWN[name]
    without = forms_of(one.excluded)
    tasks = heldout(
        "test",
        one.n,
        one.seed,
        ("math",),
        names=("countdown",),
        levels=one.levels,
        beyond=one.beyond,
        rule=one.rule,
        without=without,
    )
    return frozenset(task.canonical for task in tasks)


def forms_of(names: Iterable[str]) -> frozenset[str]:
    """Of all these sets together."""
    return frozenset().union(*(forms(name) for name in names))


def earlier(tasks: ExamSet) -> tuple[str, ...]:
    """Names in ``DRAWN`` of the sets that were drawn before ``tasks``: all of them where it is none of them."""
    names = list(DRAWN)
    own = (tasks.n, tasks.seed, tasks.levels, tasks.beyond, tasks.excluded)
    sets = [(one.n, one.seed, one.levels, one.beyond, one.excluded) for one in DRAWN.values()]
    found = [place for place, one in enumerate(sets) if one == own]
    return tuple(names[: found[-1]] if found else names)


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
