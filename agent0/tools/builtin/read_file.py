"""Text files of the work folder, a page at a time."""

from typing import Annotated

from pydantic import Field

from agent0.events.base import sha256
from agent0.events.values import ToolResult, ToolState
from agent0.tools import tool
from agent0.tools.definition import VALUES, Example
from agent0.tools.paths import missing, mistaken, plain
from agent0.tools.results import LIMIT, clean, shorten
from agent0.tools.workspace import Workspace

LARGEST = 4 << 20
"""Bytes of a file that is read here."""
MOST_LINES = 2000


@tool(
    pure=True,
    states=VALUES,
    examples=[
        Example(
            {"path": "notes.txt"},
            "first\nsecond",
            after=(("write_file", {"path": "notes.txt", "content": "first\nsecond\n"}),),
        ),
        Example(
            {"path": "notes.txt", "start": 2, "lines": 1},
            "b\n[line 2 of 3; read on with start 3]",
            after=(("write_file", {"path": "notes.txt", "content": "a\nb\nc\n"}),),
        ),
    ],
)
async def read_file(
    work: Workspace,
    path: Annotated[str, "the file, relative to the work folder"],
    start: Annotated[int, Field(ge=1), "first line to read"] = 1,
    lines: Annotated[int, Field(ge=1, le=MOST_LINES), "how many lines"] = 200,
) -> ToolResult:
    """Read a text file of your work folder. Long files come page by page: read on with start.
    Example: {"path": "notes.txt"} or {"path": "notes.txt", "start": 201}
    """
    path = plain(path)
    if problem := missing(path, work.files):
        return mistaken(problem)
    data = work.files[path]
    if len(data) > LARGEST:
        return mistaken(
            f"{path} has {len(data)} bytes, too many to read here. Search it with the shell: grep, head, sed"
        )
    text = decoded(data)
    if text is None:
        return mistaken(f"{path} is no text: {len(data)} bytes, sha256 {sha256(data)[:16]}, begins {data[:8].hex(' ')}")
    return _page(text.split("\n"), start, lines)


def decoded(data: bytes) -> str | None:
    """Text of ``data``, None where it is binary."""
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def _page(lines: list[str], start: int, count: int) -> ToolResult:
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return ToolResult(state=ToolState.OK, output="[the file is empty]")
    if start > len(lines):
        return mistaken(f"start: the file has only {len(lines)} lines.")
    shown: list[str] = []
    for line in lines[start - 1 : start - 1 + count]:
        if shown and sum(map(len, shown)) + len(shown) + len(line) > LIMIT:
            break
        shown.append(shorten(clean(line), LIMIT))
    last = start + len(shown) - 1
    if (start, last) != (1, len(lines)):
        which = f"line {start}" if start == last else f"lines {start} to {last}"
        more = f"; read on with start {last + 1}" if last < len(lines) else ""
        shown.append(f"[{which} of {len(lines)}{more}]")
    return ToolResult(state=ToolState.OK, output="\n".join(shown))
