"""Bash in the sandbox, in the work folder, with the executables of its root file system and no other."""

import difflib
from typing import Annotated

from agent0.events.values import ToolResult, ToolState
from agent0.tools import tool
from agent0.tools.definition import Example
from agent0.tools.paths import printable
from agent0.tools.results import answer
from agent0.tools.shell_commands import missing_programs
from agent0.tools.workspace import Workspace

_BIN = ("/usr/bin/", "/bin/")


@tool(
    pure=False,
    needs=[("executable", "bash")],
    examples=[
        Example({"command": "echo '3 1 2' | tr ' ' '\\n' | sort -n | tail -1"}, "3"),
        Example(
            {"command": "gerp -c a words.txt"},
            "bash: line 1: gerp: command not found\n[there is no program gerp here; did you mean grep?]",
            ToolState.ERROR,
        ),
    ],
)
async def shell(work: Workspace, command: Annotated[str, "a bash command line, or several lines"]) -> ToolResult:
    """Run a bash command line and get back what it prints. Text tools such as grep, sed, awk, sort, cut, tr and bc
    are there. Files you write are kept for later calls; variables are not.
    Example: {"command": "echo '3 1 2' | tr ' ' '\\n' | sort"}
    """
    ran = await work.shell(command)
    result, absent = answer(ran), absent_programs(ran.stderr, work.policy.executables)
    if not absent or result.state not in (ToolState.OK, ToolState.ERROR):
        return result
    notes = "\n".join(f"[{_note(program, work)}]" for program in absent[:5])
    return result.model_copy(update={"output": f"{result.output}\n{notes}".strip()})


def absent_programs(stderr: str, executables: tuple[str, ...]) -> list[str]:
    """List the programs that bash did not find, by its own words in ``stderr``, and that are not among
    ``executables``."""
    programs = missing_programs(stderr)
    bare = [
        next((program.removeprefix(top) for top in _BIN if program.startswith(top)), program) for program in programs
    ]
    return [program for program in bare if "/" not in program and program not in executables]


def _note(program: str, work: Workspace) -> str:
    if program.startswith("python") and "python" in work.allowed:
        return f"there is no program {program} here; call the tool python"
    near = difflib.get_close_matches(program[:64], work.policy.executables, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {' '.join(work.policy.executables)}"
    return f"there is no program {printable(program[:64])} here; {hint}"
