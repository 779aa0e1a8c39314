"""Verifies tasks that are rows of a file: by the published answer, or by the tests of the program that is asked for."""

from collections.abc import Sequence

from agent0.events.values import Task
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
        await (verdict_by_tests(task, answer, sandbox) if row.tests else compare_answer(row.answer, answer, sandbox))
        for answer in answers
    ]
