"""Files of the work folder, written whole."""

from typing import Annotated

from agent0.events.values import ToolResult, ToolState
from agent0.tools import tool
from agent0.tools.definition import VALUES, Example
from agent0.tools.paths import mistaken, overfull, plain, unwritable
from agent0.tools.workspace import Workspace

LARGEST = 1 << 20
"""Bytes of a file that is written here."""


@tool(
    pure=True,
    states=VALUES,
    examples=[
        Example(
            {"path": "double.py", "content": "def double(x):\n    return 2 * x\n"}, "wrote double.py: 2 lines, 32 bytes"
        )
    ],
)
async def write_file(
    work: Workspace,
    path: Annotated[str, "the file, relative to the work folder; its folders are made"],
    content: Annotated[str, "its whole text"],
) -> ToolResult:
    """Write a file into your work folder, in place of what was there under that name. Later calls see it.
    Example: {"path": "double.py", "content": "def double(x):\\n    return 2 * x\\n"}
    """
    path = plain(path)
    return mistaken(problem) if (problem := unwritable(path, work.files, work.policy)) else put(work, path, content)


def put(work: Workspace, path: str, content: str) -> ToolResult:
    """Write ``content`` and say so, unless it is too much."""
    try:
        data = content.encode()
    except UnicodeEncodeError as error:
        return mistaken(f"content: character {error.start} is half of a surrogate pair, which no text can hold.")
    if len(data) > LARGEST:
        return mistaken(f"content: {len(data)} bytes; at most {LARGEST} can be written at once.")
    files = {**work.files, path: data}
    if problem := overfull(files):
        return mistaken(problem)
    before = work.files.get(path)
    work.files = files
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    instead = f", in place of {len(before)}" if before is not None else ""
    output = f"wrote {path}: {lines} line{'s' * (lines != 1)}, {len(data)} bytes{instead}"
    return ToolResult(state=ToolState.OK, output=output)
