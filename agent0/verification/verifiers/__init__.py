"""Verifiers: who decides whether an answer is right. One file per way of deciding; each is bounded and gives a reason.

A verdict is True, False or None: what cannot be decided is undecided, never wrong.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from inspect import iscoroutinefunction, signature
from typing import Protocol

from agent0.errors import OperationError
from agent0.events.values import Task, Vote
from agent0.grading import Grade
from agent0.grading.answer_types import left_undone
from agent0.grading.math.symbolic import decide
from agent0.grading.math.undone import UNDONE
from agent0.ports.sandbox import Sandbox
from agent0.registry import Registry, declared_in
from agent0.verification.panel import VerificationContext

PANEL = "panel"
NO_CONTEXT = VerificationContext()
"""No evidence beside the answers, and the rules of a new run."""


@dataclass(frozen=True)
class Verdict:
    """A verdict with its reason and both normal forms; ``votes`` where it combines several checks.

    ``credit`` is the share that is earned of a task without subgoals, where parts of it count; ``changed_lines``, where
    a repository is changed, are its lines of code that are others.
    """

    correct: bool | None
    reason: str
    expected: str = ""
    got: str = ""
    votes: tuple[Vote, ...] = ()
    credit: float | None = None
    changed_lines: int | None = None


def verdict_of(grade: Grade) -> Verdict:
    """Turn a grade into a verdict, texts cut to what an event carries."""
    return Verdict(grade.correct, grade.reason, grade.expected[:200], grade.got[:200])


async def compare_answer(expected: str, answer: str | None, sandbox: Sandbox, kind: str = "") -> Verdict:
    """Verify one answer where ``expected`` is right, both of a ``kind`` (empty: as ``expected`` reads).

    Where a value is expected, an answer must be written as one, not as an unevaluated expression.

    Raises:
        SandboxUnavailableError: symbolic algebra would have to be run, and there is no sandbox.
    """
    if answer is not None and left_undone(kind, expected, answer):
        return Verdict(False, UNDONE, expected[:200], answer[:200])
    return verdict_of(await decide(expected, answer, sandbox, kind=kind))


class Judge(Protocol):
    """The function of a verifier; only collective and informed verifiers read the context."""

    def __call__(
        self, task: Task, answers: Sequence[str | None], sandbox: Sandbox, context: VerificationContext = NO_CONTEXT
    ) -> Awaitable[list[Verdict]]:
        """Verify ``answers``; returns one verdict each."""
        ...


Deciding = Callable[..., Awaitable[list[Verdict]]]
ARGUMENTS = ("task", "answers", "sandbox")
"""What a verifier's function is called with."""
GradeSteps = Callable[..., Awaitable[Sequence[bool | None]]]


@dataclass(frozen=True)
class Verifier:
    """A registered verifier. ``applies`` says for which tasks; ``collective`` ones see all attempts at once.

    ``grade`` decides one attempt's subgoals but the last, None where they cannot be decided. ``informed`` ones get the
    context, which holds the run's rules; collective ones always do.
    """

    name: str
    judge: Judge
    applies: Callable[[Task], bool]
    rank: int
    collective: bool
    grade: GradeSteps | None = None
    informed: bool = False


_verifiers = Registry[str, Verifier]("verifiers", __name__, order=lambda name, entry: (entry.rank, name))


def verifier(
    name: str,
    *,
    applies: Callable[[Task], bool],
    rank: int,
    collective: bool = False,
    grade: GradeSteps | None = None,
    informed: bool = False,
) -> Callable[[Deciding], Deciding]:
    """Register ``async judge(task, answers, sandbox) -> one verdict an answer``. Lower ranks are asked first.

    A collective or informed one also gets the context, and so does the ``grade`` of an informed one.

    Raises:
        ValueError: a collective verifier has a ``grade``, which is for one attempt.
        TypeError: the function is not async, or does not take these arguments.
    """
    if collective and grade:
        raise ValueError(f"verifier {name} sees all attempts at once: it cannot grade one")

    with_context = collective or informed

    def register(judge: Deciding) -> Verifier:
        _require_form(name, judge, (*ARGUMENTS, "context") if with_context else ARGUMENTS)

        async def decide(
            task: Task, answers: Sequence[str | None], sandbox: Sandbox, context: VerificationContext = NO_CONTEXT
        ) -> list[Verdict]:
            arguments = (task, answers, sandbox, context) if with_context else (task, answers, sandbox)
            return _one_each(name, judge, await judge(*arguments), answers)

        decide.__module__, decide.__wrapped__ = judge.__module__, judge  # type: ignore[attr-defined]  # whose it is
        return Verifier(name, decide, applies, rank, collective, grade, informed)

    return _verifiers.adding(name, register)


def _require_form(name: str, judge: Deciding, arguments: Sequence[str]) -> None:
    """Refuse a function that cannot be awaited on these arguments."""
    called = f"is called as `await {name}({', '.join(arguments)})`"
    if not iscoroutinefunction(judge):
        raise TypeError(f"verifier {name} {called}: it must be an async function")
    try:
        signature(judge).bind(*arguments)
    except TypeError as error:
        hint = "" if "context" in arguments else "; with informed=True it gets a context, too"
        raise TypeError(f"verifier {name} {called} ({error}{hint})") from error


def _one_each(name: str, judge: Deciding, verdicts: list[Verdict], answers: Sequence[str | None]) -> list[Verdict]:
    """The verdicts as ``judge`` gave them, if there is one for each answer."""
    listed = isinstance(verdicts, list | tuple)
    other = [verdict for verdict in verdicts if not isinstance(verdict, Verdict)] if listed else [verdicts]
    if listed and not other and len(verdicts) == len(answers):
        return verdicts
    line = getattr(getattr(judge, "__code__", None), "co_firstlineno", 0)
    where = f"verifier {name} of {declared_in(judge)}, line {line},"
    problem = (
        f"{other[0]!r:.40}, which is no {'Verdict' if listed else 'list'}," if other else f"{len(verdicts)} verdicts"
    )
    fix = f"Let {name} return a list with one Verdict for each answer."
    raise OperationError(f"The {where} gave {problem} for {len(answers)} answers.", "", fix)


async def graded(
    judge: Verifier,
    task: Task,
    subgoal_answers: Sequence[str | None],
    answer: Verdict,
    sandbox: Sandbox,
    context: VerificationContext = NO_CONTEXT,
) -> tuple[bool | None, ...]:
    """Verify each subgoal of ``task``; none for a short one. The last verdict is that of the answer itself.

    Subgoals that were not ``subgoal_answers`` an answer are wrong where right could be decided.
    """
    if not task.subgoals:
        return ()
    earlier = len(task.subgoals) - 1
    answers = [*subgoal_answers[:earlier], *(None for _ in range(earlier - len(subgoal_answers)))]
    if judge.grade is None:
        return (*(None for _ in answers), answer.correct)
    beside = (context,) if judge.informed else ()
    return (*await judge.grade(task, answers, sandbox, *beside), answer.correct)


def credit_of(verdicts: Sequence[bool | None]) -> float | None:
    """The share of right subgoals among those decided; None where none was."""
    decided = [verdict for verdict in verdicts if verdict is not None]
    return sum(decided) / len(decided) if decided else None


def verifiers() -> dict[str, Verifier]:
    """Return every registered verifier by name, in the order they are asked."""
    return _verifiers.all()


def verifier_for(task: Task, unchecked: str = "") -> Verifier:
    """The best verifier that applies to ``task``.

    Where nothing computes its answer, ``unchecked`` names the collective verifier that compares its attempts; the panel
    where it names none.
    """
    able = [entry for entry in verifiers().values() if entry.applies(task)]
    chosen = unchecked if unchecked in {entry.name for entry in able if entry.collective} else PANEL
    return next(entry for entry in able if not entry.collective or entry.name == chosen)


def collective() -> list[str]:
    """Names of the collective verifiers, for tasks whose answer nothing computes."""
    return [entry.name for entry in verifiers().values() if entry.collective]
