"""Bash in the sandbox, with the executables of its root file system and no other."""

from agent0.tools import tool
from agent0.tools.answer import answer
from agent0.tools.workspace import Workspace
from events.values import ToolResult


@tool(pure=False)
async def shell(work: Workspace, command: str) -> ToolResult:
    """Run a bash command line and get back what it prints. Text tools such as grep, sed, awk, sort, cut, tr and bc
    are there. Nothing is kept between calls. Example: {"command": "echo '3 1 2' | tr ' ' '\\n' | sort"}
    """
    return answer(await work.shell(command))
