"""Verifies rows whose answers are free text, where a person has named a judge model for them: by its opinion, which is
no proof. Nothing else is ever decided by it alone."""

from collections.abc import Sequence

from agent0.events.values import JUDGED, Task
from agent0.grading.answer_types import grade_as
from agent0.ports.sandbox import Sandbox
from agent0.verification.panel import VerificationContext
from agent0.verification.verifiers import Verdict, verifier

NOBODY = "a judge model decides, and none is asked here"


@verifier("judge", applies=lambda task: bool(task.row and task.row.kind == JUDGED), rank=3, informed=True)
async def judge(
    task: Task, answers: Sequence[str | None], sandbox: Sandbox, context: VerificationContext
) -> list[Verdict]:
    """Ask the judge model whether each answer says what the row's does; in the row's own words it is right unasked.
    Undecided where its reply is no verdict."""
    return [await _opinion(task, answer, context) for answer in answers]


async def _opinion(task: Task, answer: str | None, context: VerificationContext) -> Verdict:
    expected = task.row.answer if task.row else ""
    if answer is None:
        return Verdict(False, "no answer", expected[:200])
    if grade_as("text", expected, answer).correct:
        return Verdict(True, "it is the row's answer", expected[:200], answer[:200])
    correct, reason = await context.ask(task, answer) if context.ask else (None, NOBODY)
    return Verdict(correct, reason, expected[:200], answer[:200])
