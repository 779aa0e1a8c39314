"""A task with a checking program: the program's output, run in the verifier's own sandbox, is the answer."""

from collections.abc import Sequence

from agent0.answers import normal_form
from agent0.ports import Sandbox, SandboxCall
from agent0.tools import call_tool
from agent0.tools.workspace import Workspace
from agent0.verifiers import Verdict, verifier
from events.values import Task, ToolCall, ToolState


async def _grade(task: Task, given: Sequence[str | None], sandbox: Sandbox) -> list[bool | None]:
    """Run each step's own program; without programs nothing is decided."""
    if len(task.programs) != len(given) + 1:
        return [None for _ in given]
    outcomes = [await _printed(program, sandbox) for program in task.programs[:-1]]
    return [
        None if printed is None else (await _compare(printed, answer, sandbox)).correct
        for (printed, _), answer in zip(outcomes, given, strict=True)
    ]


@verifier("execution", applies=lambda task: bool(task.program), rank=1, grade=_grade)
async def execution(task: Task, answers: Sequence[str | None], sandbox: Sandbox) -> list[Verdict]:
    """Run the program once; compare as text, then symbolically (also in the sandbox)."""
    printed, why = await _printed(task.program, sandbox)
    if printed is None:
        return [Verdict(None, why) for _ in answers]
    return [await _compare(printed, answer, sandbox) for answer in answers]


async def _printed(program: str, sandbox: Sandbox) -> tuple[str | None, str]:
    """What a checking program prints, or None and why that cannot be told."""
    result = await sandbox.call(SandboxCall("python", program))
    printed = result.stdout.strip()
    if result.state is ToolState.OK and printed:
        return printed, ""
    return None, f"the checking program ended {result.state} and printed {len(printed)} characters"


async def _compare(printed: str, answer: str | None, sandbox: Sandbox) -> Verdict:
    expected = normal_form(printed)
    if answer is None:
        return Verdict(False, "no answer", expected[:200])
    got = normal_form(answer)
    if got == expected:
        return Verdict(True, "equals the checking program's output", expected[:200], got[:200])
    call = ToolCall(name="sympy", arguments={"operation": "equal", "expression": printed, "other": answer})
    symbolic = await call_tool(call, Workspace(sandbox, ("sympy",)))
    equal = symbolic.state is ToolState.OK and symbolic.output.strip() == "True"
    reason = "symbolically equal" if equal else "differs from the checking program's output"
    return Verdict(equal, reason, expected[:200], got[:200])
