"""What is wrong with what a teacher's free question brings to judge answers by: before anybody is asked it, and by what
attempts at it came to."""

from typing import Literal

from agent0.events.values import Task
from agent0.grading.normal_form import normal_form
from agent0.ports.sandbox import Sandbox
from agent0.rollout.confidence.signals import agreement
from agent0.state.run_state import TaskState
from agent0.tasks.families import OPEN_FAMILY
from agent0.tasks.screening import Fault
from agent0.verification.verifiers.checker import fault_of_checker
from agent0.verification.verifiers.execution import program_fault
from agent0.verification.verifiers.tests import fault_of_tests

Doubt = Literal["", "ambiguous", "unanswerable"]
AGREEING, LEAST = 0.5, 3
"""Share of all attempts that agree on another answer than the program's, and how many these are at least."""


async def task_fault(task: Task, sandbox: Sandbox) -> Fault | None:
    """Return what is wrong with the program, tests or checker of ``task``; None where nothing is, for tasks of a
    family, and where the sandbox itself failed.

    Raises:
        SandboxUnavailableError: there is no sandbox.
    """
    if task.family != OPEN_FAMILY or not task.program:
        return None
    if task.tests:
        return await fault_of_tests(task, sandbox)
    fault = await program_fault(task, sandbox)
    return fault or (await fault_of_checker(task, sandbox) if task.checker else None)


def doubt_of(task: TaskState) -> Doubt:
    """Why the answer of a free question's program may be wrong: attempts agree among themselves on another one
    (``ambiguous``), or none of several agrees with it (``unanswerable``)."""
    proposal = task.proposal
    if proposal is None or proposal.family != OPEN_FAMILY or not proposal.program:
        return ""
    judged = [a for a in task.attempts.values() if a.attempted and a.correct is not None]
    if len(judged) < LEAST:
        return ""
    answers = agreement(a.answer for a in judged)
    right = {normal_form(a.answer) for a in judged if a.correct and a.answer is not None}
    if answers.count >= LEAST and answers.share >= AGREEING and answers.majority not in right:
        return "ambiguous"
    return "" if right else "unanswerable"
