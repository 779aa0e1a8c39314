"""Python in the sandbox, in the work folder."""

from typing import Annotated

from agent0.events.values import ToolResult, ToolState
from agent0.tools import tool
from agent0.tools.definition import Example
from agent0.tools.results import answer
from agent0.tools.workspace import Workspace
from agent0.turns.programs import with_last_value


@tool(
    pure=True,
    examples=[
        Example({"code": "print(6 * 7)"}, "42"),
        Example(
            {"code": "print(open('notes.txt').read())"},
            "kept",
            after=(("python", {"code": "open('notes.txt', 'w').write('kept')"}),),
        ),
        Example({"code": "raise SystemExit('no such day')"}, "no such day", ToolState.ERROR),
    ],
)
async def python(work: Workspace, code: Annotated[str, "a whole program"]) -> ToolResult:
    """Run a Python program and get back what it prints. The standard library, sympy and numpy are there. Files you
    write are kept for later calls; variables are not. Example: {"code": "print(6 * 7)"}
    """
    return answer(await work.python(with_last_value(code)))
