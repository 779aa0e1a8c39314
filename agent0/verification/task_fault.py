"""What is wrong with what a teacher's free question brings to judge answers by, before anybody is asked it."""

from agent0.events.values import Task
from agent0.ports.sandbox import Sandbox
from agent0.tasks.families import OPEN_FAMILY
from agent0.tasks.screening import Fault
from agent0.verification.verifiers.checker import fault_of_checker
from agent0.verification.verifiers.execution import program_fault
from agent0.verification.verifiers.tests import fault_of_tests


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
