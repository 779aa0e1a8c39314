"""Whether an answer holds that nothing computes: several independent checks, one file each, every one a single vote.

Two checks that say yes and none that says no make an answer right; two that say no, and more than say yes, make it
wrong; everything else is undecided. So no check alone can be talked into a verdict by an answer that praises itself.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from agent0.grading.answer_types import grade_as
from agent0.grading.normal_form import normal_form
from agent0.registry import Registry
from agent0.settings import VerificationConfig
from events.values import Task, Vote

NEEDED = 2
"""Checks that must say the same."""

Said = tuple[bool | None, str]
"""True, False, or None where it cannot be told; and why."""
Opinion = Callable[[Task, str], Awaitable[Said]]
"""What a judge model says about one answer."""


@dataclass(frozen=True)
class Evidence:
    """What is known beside the answers. ``computed``: a tool printed the answer without having been given it, one an
    answer, None where that is not known; ``ask`` None: there is no judge model."""

    computed: tuple[bool | None, ...] = ()
    rules: VerificationConfig = field(default_factory=VerificationConfig)
    ask: Opinion | None = None


@dataclass(frozen=True)
class Case:
    """A task's attempts: their answers (None where one gave none), which of these are the same, and what else is known.

    ``groups`` numbers equal answers alike, None where there is no answer.
    """

    task: Task
    answers: tuple[str | None, ...]
    groups: tuple[int | None, ...]
    evidence: Evidence

    @property
    def computed(self) -> tuple[bool | None, ...]:
        """One an answer."""
        known = self.evidence.computed
        return known if len(known) == len(self.answers) else (False,) * len(self.answers)


Check = Callable[[Case], Awaitable[list[Said]]]
_checks = Registry[str, Check]("checks", __name__)


def check(name: str) -> Callable[[Check], Check]:
    """Register ``async fn(case) -> (True, False or None; why)``, one an answer. None: it cannot tell."""
    return _checks.adding(name, lambda fn: fn)


def checks() -> dict[str, Check]:
    """Every check by name."""
    return _checks.all()


def case_of(task: Task, answers: Sequence[str | None], evidence: Evidence) -> Case:
    """The case of ``answers``, those that say the same put together."""
    known: list[str] = []
    groups = [None if answer is None else _place(known, answer) for answer in answers]
    return Case(task, tuple(answers), tuple(groups), evidence)


def _place(known: list[str], answer: str) -> int:
    """The group of ``answer``; ``known`` has one answer of each."""
    form = normal_form(answer)
    for place, other in enumerate(known):
        if normal_form(other) == form or grade_as("", other, answer).correct is True:
            return place
    known.append(answer)
    return len(known) - 1


async def votes_on(case: Case) -> list[tuple[Vote, ...]]:
    """What each check says, answer by answer."""
    columns = [
        [Vote(check=name, correct=c, reason=why[:200]) for c, why in await fn(case)] for name, fn in checks().items()
    ]
    return [tuple(row) for row in zip(*columns, strict=True)]


def combined(votes: Sequence[Vote]) -> bool | None:
    """The verdict that votes add up to."""
    yes, no = (sum(vote.correct is wanted for vote in votes) for wanted in (True, False))
    if yes >= NEEDED and not no:
        return True
    return False if no >= NEEDED and no > yes else None


def disputed(votes: Sequence[Vote]) -> bool:
    """Whether one check says yes and another no."""
    return {True, False} <= {vote.correct for vote in votes}
