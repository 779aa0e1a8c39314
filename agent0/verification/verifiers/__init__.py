"""Who decides what is right. One file a way of deciding; each is bounded and says why.

A verdict is True, False or None: what cannot be decided is undecided, never wrong.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from agent0.grading import Grade
from agent0.grading.answer_types import left_undone
from agent0.grading.math.symbolic import decide
from agent0.ports.sandbox import Sandbox
from agent0.registry import Registry
from agent0.verification.panel import Evidence
from events.values import Task, Vote

PANEL = "panel"
NOTHING = Evidence()
"""No evidence beside the answers, and the rules of a new run."""


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


async def compared(expected: str, answer: str | None, sandbox: Sandbox, evidence: Evidence, kind: str = "") -> Verdict:
    """The verdict on one answer where one is ``expected``, both of a ``kind`` (empty: as ``expected`` reads).

    Where a value is expected, an answer must be written as one, not as work left undone; runs of the first edition of
    verification have no such rule.

    Raises:
        SandboxUnavailableError: the symbolic engine would have to be asked, and there is no sandbox.
    """
    if answer is not None and undone(expected, answer, evidence, kind):
        return Verdict(False, "work left undone where a value is wanted", expected[:200], answer[:200])
    return verdict_of(await decide(expected, answer, sandbox, kind=kind))


def undone(expected: str, answer: str, evidence: Evidence, kind: str = "") -> bool:
    """Whether ``answer`` leaves work undone, by rules that forbid it."""
    return evidence.rules.edition > 1 and left_undone(kind, expected, answer)


class Judge(Protocol):
    """How a verifier decides; only collective and informed ones look at the evidence."""

    def __call__(
        self, task: Task, answers: Sequence[str | None], sandbox: Sandbox, evidence: Evidence = NOTHING
    ) -> Awaitable[list[Verdict]]:
        """One verdict an answer."""
        ...


Deciding = Callable[..., Awaitable[list[Verdict]]]
GradeSteps = Callable[..., Awaitable[Sequence[bool | None]]]


@dataclass(frozen=True)
class Verifier:
    """A registered way of deciding. ``applies`` says for which tasks; ``collective`` ones see all attempts at once.

    ``grade`` decides one attempt's subgoals but the last, None where they cannot be decided. ``informed`` ones get the
    evidence, in which the run's rules are; collective ones always do.
    """

    name: str
    judge: Judge
    applies: Callable[[Task], bool]
    rank: int
    collective: bool
    grade: GradeSteps | None = None
    informed: bool = False


_verifiers = Registry[str, Verifier]("verifiers", __name__, order=lambda _, entry: entry.rank)


def verifier(
    name: str,
    *,
    applies: Callable[[Task], bool],
    rank: int,
    collective: bool = False,
    grade: GradeSteps | None = None,
    informed: bool = False,
) -> Callable[[Deciding], Deciding]:
    """Register ``async judge(task, answers, sandbox) -> one verdict an answer``; a collective or informed one also gets
    the evidence, and so does the ``grade`` of an informed one. Lower ranks are asked first.

    Raises:
        ValueError: a collective verifier has a ``grade``, which is for one attempt.
    """
    if collective and grade:
        raise ValueError(f"verifier {name} sees all attempts at once: it cannot grade one")

    with_evidence = collective or informed

    def made(judge: Deciding) -> Verifier:
        async def decide(
            task: Task, answers: Sequence[str | None], sandbox: Sandbox, evidence: Evidence = NOTHING
        ) -> list[Verdict]:
            return await (judge(task, answers, sandbox, evidence) if with_evidence else judge(task, answers, sandbox))

        return Verifier(name, decide, applies, rank, collective, grade, informed)

    return _verifiers.adding(name, made)


async def graded(
    judge: Verifier,
    task: Task,
    given: Sequence[str | None],
    answer: Verdict,
    sandbox: Sandbox,
    evidence: Evidence = NOTHING,
) -> tuple[bool | None, ...]:
    """A verdict for each subgoal of ``task``, none for a short one. The last is that of the answer itself; what was not
    ``given`` is wrong where right could be told."""
    if not task.subgoals:
        return ()
    earlier = len(task.subgoals) - 1
    answers = [*given[:earlier], *(None for _ in range(earlier - len(given)))]
    if judge.grade is None:
        return (*(None for _ in answers), answer.correct)
    beside = (evidence,) if judge.informed else ()
    return (*await judge.grade(task, answers, sandbox, *beside), answer.correct)


def credit_of(verdicts: Sequence[bool | None]) -> float | None:
    """The share that is right among what was decided, None where nothing was."""
    decided = [verdict for verdict in verdicts if verdict is not None]
    return sum(decided) / len(decided) if decided else None


def verifiers() -> dict[str, Verifier]:
    """Every verifier by name, best first."""
    return _verifiers.all()


def verifier_for(task: Task, unchecked: str = "") -> Verifier:
    """The best verifier that applies to ``task``. Where nothing computes its answer, ``unchecked`` names the collective
    one that compares its attempts; the panel where it names none."""
    able = [entry for entry in verifiers().values() if entry.applies(task)]
    wanted = unchecked if unchecked in {entry.name for entry in able if entry.collective} else PANEL
    return next(entry for entry in able if not entry.collective or entry.name == wanted)


def collective() -> list[str]:
    """Names of the verifiers for what nothing computes."""
    return [entry.name for entry in verifiers().values() if entry.collective]
