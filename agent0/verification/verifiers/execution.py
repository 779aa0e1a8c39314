"""Verifies tasks with a checking program: its output, run in the verifier's own sandbox, is the expected answer."""

from collections.abc import Sequence

from agent0.chat_format import LONGEST_ANSWER
from agent0.events.values import Task, ToolState
from agent0.grading import answer_in
from agent0.grading.answer_types import ANSWER_KIND, grade_as
from agent0.ports.sandbox import Sandbox, SandboxCall, SandboxResult
from agent0.tasks.screening import Fault
from agent0.verification.verifiers import Verdict, compare_answer, verifier

STATED = "the question states its answer"


async def _grade(task: Task, answers: Sequence[str | None], sandbox: Sandbox) -> list[bool | None]:
    """Run each step's own program; without programs nothing is decided."""
    if len(task.programs) != len(answers) + 1:
        return [None for _ in answers]
    outcomes = [await output_of(program, sandbox) for program in task.programs[:-1]]
    return [
        None if printed is None else (await _compare(task, printed, answer, sandbox)).correct
        for (printed, _), answer in zip(outcomes, answers, strict=True)
    ]


@verifier("execution", applies=lambda task: bool(task.program), rank=3, grade=_grade)
async def execution(task: Task, answers: Sequence[str | None], sandbox: Sandbox) -> list[Verdict]:
    """Run the program once; compare answers with its output, as the task's kind of answer or as the output reads.
    Nothing is decided where the question says what the program prints."""
    printed, why = await output_of(task.program, sandbox)
    if printed is not None and _states(task, printed):
        printed, why = None, STATED
    if printed is None:
        return [Verdict(None, why) for _ in answers]
    return [await _compare(task, printed, answer, sandbox) for answer in answers]


async def program_fault(task: Task, sandbox: Sandbox) -> Fault | None:
    """Return what is wrong with what a checking program prints; None where nothing is, or the sandbox itself failed.

    Raises:
        SandboxUnavailableError: there is no sandbox.
    """
    result = await sandbox.call(SandboxCall("python", task.program))
    if result.state in (ToolState.BUSY, ToolState.CANCELLED, ToolState.SANDBOX_ERROR):
        return None
    printed = result.stdout.strip()
    if result.state is not ToolState.OK or not 0 < len(printed) <= LONGEST_ANSWER:
        return "broken_program", _ended(result)
    return ("trivial", STATED) if _states(task, printed) else None


def _states(task: Task, printed: str) -> bool:
    """Whether the question gives its answer away, in a form in which answers are given."""
    stated = answer_in(task.question)
    return stated is not None and grade_as(str(task.params.get(ANSWER_KIND, "")), printed, stated).correct is True


async def output_of(program: str, sandbox: Sandbox) -> tuple[str | None, str]:
    """Return what a checking program prints, or None and why it printed no answer.

    Raises:
        SandboxUnavailableError: there is no sandbox.
    """
    result = await sandbox.call(SandboxCall("python", program))
    printed = result.stdout.strip()
    if result.state is ToolState.OK and printed:
        return printed, ""
    return None, _ended(result)


def _ended(result: SandboxResult) -> str:
    return f"the checking program ended {result.state} and printed {len(result.stdout.strip())} characters"


async def _compare(task: Task, printed: str, answer: str | None, sandbox: Sandbox) -> Verdict:
    return await compare_answer(printed, answer, sandbox, str(task.params.get(ANSWER_KIND, "")))
