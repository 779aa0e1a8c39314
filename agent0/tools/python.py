"""Python in the sandbox."""

from agent0.ports import Sandbox, SandboxCall
from agent0.tools import tool
from agent0.tools.answer import answer
from events.values import ToolResult


@tool(pure=True)
async def python(sandbox: Sandbox, code: str) -> ToolResult:
    """Run a Python program and get back what it prints. The standard library, sympy and numpy are there.
    Nothing is kept between calls. Example: {"code": "print(6 * 7)"}
    """
    return answer(await sandbox.call(SandboxCall("python", code)))
