"""Verifies tasks that are rows of a file: by the published answer, or by the tests of the program that is asked for."""

from collections.abc import Sequence

from agent0.events.values import SourceRow, Task
from agent0.ports.sandbox import Sandbox
from agent0.verification.programs import Problem, check
from agent0.verification.programs.source import written_program
from agent0.verification.verifiers import Verdict, compare_answer, verifier

LONGEST = 32_768
"""Characters of a turn that is an answer: it stands in an event."""
WALL_S = 30.0
"""Seconds of all tests of a program."""


@verifier("rows", applies=lambda task: task.row is not None, rank=3)
async def rows(task: Task, answers: Sequence[str | None], sandbox: Sandbox) -> list[Verdict]:
    """Compare each answer with the row's, or run its tests on each program."""
    row = task.row
    if row is None:
        return [Verdict(None, "the task is no row") for _ in answers]
    return [
        await (_tested(row, answer, sandbox) if row.tests else compare_answer(row.answer, answer, sandbox))
        for answer in answers
    ]


async def _tested(row: SourceRow, answer: str | None, sandbox: Sandbox) -> Verdict:
    if answer is None:
        return Verdict(False, "no program", row.entry)
    problem = Problem(row.tests, "", row.entry, WALL_S, reference=row.answer)
    outcome = await check(problem, answer, sandbox)
    return Verdict(outcome.passed, outcome.reason, row.entry, f"{outcome.calls} calls")


def program_of(task: Task, turns: Sequence[str]) -> str:
    """Return the turn of a student that is its answer where ``task`` asks for a program: the last that has it. Empty
    where none has, and for any other task."""
    if task.row is None or not task.row.tests:
        return ""
    return written_program([turn for turn in turns if len(turn) <= LONGEST], task.row.entry)
