"""Who decides what is right. One file a way of deciding; each is bounded and says why.

A verdict is True, False or None: what cannot be decided is undecided, never wrong.
"""

import functools
import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from agent0.grading import Grade
from agent0.panel import Evidence
from agent0.ports import Sandbox
from events.values import Task, Vote

PANEL = "panel"
NOTHING = Evidence()
"""No evidence beside the answers."""


@dataclass(frozen=True)
class Verdict:
    """A decision with its reason and both normal forms; ``votes`` where it was made from several checks."""

    correct: bool | None
    reason: str
    expected: str = ""
    got: str = ""
    votes: tuple[Vote, ...] = ()


def verdict_of(found: Grade) -> Verdict:
    """A grade as a verdict, cut to what an event carries."""
    return Verdict(found.correct, found.reason, found.expected[:200], found.got[:200])


class Judge(Protocol):
    """How a verifier decides; only collective ones look at the evidence."""

    def __call__(
        self, task: Task, answers: Sequence[str | None], sandbox: Sandbox, evidence: Evidence = NOTHING
    ) -> Awaitable[list[Verdict]]:
        """One verdict an answer."""
        ...


Deciding = Callable[..., Awaitable[list[Verdict]]]
GradeSteps = Callable[[Task, Sequence[str | None], Sandbox], Awaitable[Sequence[bool | None]]]


@dataclass(frozen=True)
class Verifier:
    """A registered way of deciding. ``applies`` says for which tasks; ``collective`` ones see all attempts at once.

    ``grade`` decides one attempt's subgoals but the last, None where they cannot be decided.
    """

    name: str
    judge: Judge
    applies: Callable[[Task], bool]
    rank: int
    collective: bool
    grade: GradeSteps | None = None


_verifiers: dict[str, Verifier] = {}


def verifier(
    name: str, *, applies: Callable[[Task], bool], rank: int, collective: bool = False, grade: GradeSteps | None = None
) -> Callable[[Deciding], Deciding]:
    """Register ``async judge(task, answers, sandbox) -> one verdict an answer``; a collective one also gets the
    evidence. Lower ranks are asked first.

    Raises:
        ValueError: a collective verifier has a ``grade``, which is for one attempt.
    """
    if collective and grade:
        raise ValueError(f"verifier {name} sees all attempts at once: it cannot grade one")

    def register(judge: Deciding) -> Deciding:
        async def decide(
            task: Task, answers: Sequence[str | None], sandbox: Sandbox, evidence: Evidence = NOTHING
        ) -> list[Verdict]:
            return await (judge(task, answers, sandbox, evidence) if collective else judge(task, answers, sandbox))

        _verifiers[name] = Verifier(name, decide, applies, rank, collective, grade)
        return judge

    return register


async def graded(
    judge: Verifier, task: Task, given: Sequence[str | None], answer: Verdict, sandbox: Sandbox
) -> tuple[bool | None, ...]:
    """A verdict for each subgoal of ``task``, none for a short one. The last is that of the answer itself; what was not
    ``given`` is wrong where right could be told."""
    if not task.subgoals:
        return ()
    earlier = len(task.subgoals) - 1
    answers = [*given[:earlier], *(None for _ in range(earlier - len(given)))]
    verdicts = await judge.grade(task, answers, sandbox) if judge.grade else [None] * earlier
    return (*verdicts, answer.correct)


def credit_of(verdicts: Sequence[bool | None]) -> float | None:
    """The share that is right among what was decided, None where nothing was."""
    decided = [verdict for verdict in verdicts if verdict is not None]
    return sum(decided) / len(decided) if decided else None


def verifiers() -> dict[str, Verifier]:
    """Every verifier by name, best first."""
    _import_all()
    return dict(sorted(_verifiers.items(), key=lambda item: item[1].rank))


def verifier_for(task: Task, unchecked: str = "") -> Verifier:
    """The best verifier that applies to ``task``. Where nothing computes its answer, ``unchecked`` names the collective
    one that compares its attempts; the panel where it names none."""
    able = [entry for entry in verifiers().values() if entry.applies(task)]
    wanted = unchecked if unchecked in {entry.name for entry in able if entry.collective} else PANEL
    return next(entry for entry in able if not entry.collective or entry.name == wanted)


def collective() -> list[str]:
    """Names of the verifiers for what nothing computes."""
    return [entry.name for entry in verifiers().values() if entry.collective]


@functools.cache
def _import_all() -> None:
    for found in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{found}")
