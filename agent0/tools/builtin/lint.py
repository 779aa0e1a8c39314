"""What ruff says of Python files in the work folder."""

import shlex
from typing import Annotated

from agent0.events.values import ToolResult, ToolState
from agent0.ports.sandbox import SandboxResult
from agent0.tools import tool
from agent0.tools.definition import Example
from agent0.tools.paths import listed, missing, mistaken, plain
from agent0.tools.results import answer, refused
from agent0.tools.workspace import Workspace

_RUFF = (
    "RAYON_NUM_THREADS=1 ruff check --isolated --no-cache --no-respect-gitignore --quiet --output-format concise -- "
)
_FOUND, _FAILED, _ABSENT = 1, 2, 127


@tool(
    pure=True,
    needs=[("executable", "bash"), ("executable", "ruff")],
    examples=[
        Example(
            {"path": "a.py"},
            "a.py:1:8: F401 [*] `os` imported but unused",
            after=(("write_file", {"path": "a.py", "content": "import os\n"}),),
        ),
        Example(
            {"path": "a.py"}, "No problems found.", after=(("write_file", {"path": "a.py", "content": "x = 1\n"}),)
        ),
    ],
)
async def lint(
    work: Workspace, path: Annotated[str, "a Python file or a folder; empty: the whole folder"] = ""
) -> ToolResult:
    """Check Python files of your work folder with ruff and get back what it finds: unused names, undefined names,
    syntax errors, with line and column. Nothing is run or changed. Example: {"path": "double.py"}
    """
    path = plain(path)
    below = f"{path}/" if path else ""
    if path not in work.files and not any(name.startswith(below) and name.endswith(".py") for name in work.files):
        return mistaken(missing(path, work.files) if path else f"There is no Python file. {listed('', work.files)}")
    return _lint_answer(await work.shell(_RUFF + shlex.quote(path or ".")))


def _lint_answer(result: SandboxResult) -> ToolResult:
    read = answer(result)
    if result.rc == _ABSENT:
        return refused("ruff is not installed on this machine; a person installs it with: pip install ruff")
    if result.state is ToolState.OK and not read.output:
        return read.model_copy(update={"output": "No problems found."})
    if result.state is ToolState.ERROR and result.rc == _FOUND:
        return read.model_copy(update={"state": ToolState.OK})
    return read
