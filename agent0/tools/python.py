"""Python in the sandbox."""

from agent0.tools import tool
from agent0.tools.answer import answer
from agent0.tools.workspace import Workspace
from events.values import ToolResult


@tool(pure=True)
async def python(work: Workspace, code: str) -> ToolResult:
    """Run a Python program and get back what it prints. The standard library, sympy and numpy are there.
    Nothing is kept between calls. Example: {"code": "print(6 * 7)"}
    """
    return answer(await work.python(code))
