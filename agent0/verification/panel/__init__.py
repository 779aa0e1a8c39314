"""The verification panel, for answers that nothing computes: several independent checks, one file each, one vote each.

Two checks that say yes and none that says no make an answer right; two that say no, and more than say yes, make it
wrong; everything else is undecided. So no single check can be talked into a verdict by an answer that praises itself.
An unevaluated numeric expression (``76*26+89``) gets no vote for it, whatever its value.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from agent0.events.values import Task, Vote
from agent0.grading.answer_types import grade_as
from agent0.grading.answer_types.value import arithmetic_left
from agent0.grading.math.undone import UNDONE
from agent0.grading.normal_form import normal_form
from agent0.ports.environments import Environments
from agent0.ports.storage import Artifacts
from agent0.registry import Registry
from agent0.settings import VerificationConfig

NEEDED = 2
"""Checks that must say the same."""

VoteAndReason = tuple[bool | None, str]
"""True, False, or None where it cannot be told; and why."""
Opinion = Callable[[Task, str], Awaitable[VoteAndReason]]
"""What a judge model says about one answer."""
Reader = Callable[[str, str], Awaitable[str]]
"""From a signature and a docstring to a program that defines the function, empty where a model wrote none."""


@dataclass(frozen=True)
class VerificationContext:
    """What a verifier knows beside task and answers.

    ``computed``: for each answer, whether a tool printed it without having been given it. ``rules``: the
    run's verification settings. ``ask``: the judge model, None where there is none; ``read``: the same as a reader of
    docstrings. ``artifacts``: where work folders are, ``environments`` what reaches those of others, None where nobody
    has any. ``again``: it was judged before, and is not to be believed what it recorded.
    """

    computed: tuple[bool, ...] = ()
    rules: VerificationConfig = field(default_factory=VerificationConfig)
    ask: Opinion | None = None
    artifacts: Artifacts | None = None
    environments: Environments | None = None
    again: bool = False
    read: Reader | None = None


@dataclass(frozen=True)
class PanelCase:
    """A task's attempts as the checks see them: answers (None where there is none), which are equal, and the context.

    ``groups`` numbers equal answers alike, None where there is no answer.
    """

    task: Task
    answers: tuple[str | None, ...]
    groups: tuple[int | None, ...]
    context: VerificationContext

    @property
    def computed(self) -> tuple[bool, ...]:
        """For each answer, whether a tool computed it; False for all where that is not recorded."""
        recorded = self.context.computed
        return recorded if len(recorded) == len(self.answers) else (False,) * len(self.answers)


Check = Callable[[PanelCase], Awaitable[list[VoteAndReason]]]
_checks = Registry[str, Check]("checks", __name__)


def check(name: str) -> Callable[[Check], Check]:
    """Register ``async fn(case) -> [(True, False or None; why)]``, one pair per answer; None: it cannot decide."""
    return _checks.adding(name, lambda fn: fn)


def checks() -> dict[str, Check]:
    """Return every registered check of the panel, by name."""
    return _checks.all()


def case_of(task: Task, answers: Sequence[str | None], context: VerificationContext) -> PanelCase:
    """Make the case of ``answers``, grouping those that are equal."""
    representatives: list[str] = []
    groups = [None if answer is None else _group_of(representatives, answer) for answer in answers]
    return PanelCase(task, tuple(answers), tuple(groups), context)


def _group_of(representatives: list[str], answer: str) -> int:
    """The group of ``answer``; ``representatives`` has one answer of each."""
    form = normal_form(answer)
    for group, other in enumerate(representatives):
        if normal_form(other) == form or grade_as("", other, answer).correct is True:
            return group
    representatives.append(answer)
    return len(representatives) - 1


async def votes_on(case: PanelCase) -> list[tuple[Vote, ...]]:
    """Ask every check about a case; returns the votes on each answer. No check votes for unevaluated arithmetic."""
    undone = [is_unevaluated(case.task, answer) for answer in case.answers]
    columns = [
        [_vote(name, opinion, left) for opinion, left in zip(await fn(case), undone, strict=True)]
        for name, fn in checks().items()
    ]
    return [tuple(row) for row in zip(*columns, strict=True)]


def is_unevaluated(task: Task, answer: str | None) -> bool:
    """Return whether ``answer`` is arithmetic left to be done."""
    return answer is not None and arithmetic_left(answer, task.question)


def _vote(check: str, opinion: VoteAndReason, undone: bool) -> Vote:
    correct, why = (None, UNDONE) if undone and opinion[0] else opinion
    return Vote(check=check, correct=correct, reason=why[:200])


def combine_votes(votes: Sequence[Vote]) -> bool | None:
    """Combine the checks' votes on one answer into a verdict: True, False or None (undecided)."""
    yes, no = (sum(vote.correct is verdict for vote in votes) for verdict in (True, False))
    if yes >= NEEDED and not no:
        return True
    return False if no >= NEEDED and no > yes else None


def disputed(votes: Sequence[Vote]) -> bool:
    """Whether one check says yes and another says no."""
    return {True, False} <= {vote.correct for vote in votes}
