"""Verifies tasks that are rows of a file: by the published answer, or by the tests of the program that is asked for."""

from collections.abc import Sequence

from agent0.events.values import SourceRow, Task
from agent0.grading.math.undone import UNDONE
from agent0.grading.tolerance import within
from agent0.ports.sandbox import Sandbox
from agent0.verification.verifiers import Verdict, compare_answer, verifier
from agent0.verification.verifiers.tests import verdict_by_tests


@verifier("rows", applies=lambda task: task.row is not None, rank=4)
async def rows(task: Task, answers: Sequence[str | None], sandbox: Sandbox) -> list[Verdict]:
    """Compare each answer with the row's, or run its tests on each program."""
    row = task.row
    if row is None:
        return [Verdict(None, "the task is no row") for _ in answers]
    return [
        await (verdict_by_tests(task, answer, sandbox) if row.tests else _compare(row, answer, sandbox))
        for answer in answers
    ]


async def _compare(row: SourceRow, answer: str | None, sandbox: Sandbox) -> Verdict:
    """By value and kind; what differs may be near enough, but not an expression that is left to compute."""
    verdict = await compare_answer(row.answer, answer, sandbox, row.kind)
    if verdict.correct is True or verdict.reason == UNDONE or answer is None or not row.tolerance:
        return verdict
    near = within(row.answer, answer, row.tolerance)
    if near is None:
        return verdict
    reason = f"within {row.tolerance}" if near else f"not within {row.tolerance}"
    return Verdict(near, reason, row.answer[:200], answer[:200])
