"""One exact change to a text file, answered by the difference it made."""

import difflib
import re
from typing import Annotated

from agent0.events.values import ToolResult, ToolState
from agent0.tools import tool
from agent0.tools.builtin.read_file import decoded
from agent0.tools.builtin.write_file import LARGEST, put
from agent0.tools.definition import VALUES, Example
from agent0.tools.paths import missing, mistaken, plain, unwritable
from agent0.tools.results import clean, shorten
from agent0.tools.workspace import Workspace

_AROUND = 3
"""Unchanged lines shown before and after a change."""
_COMPARED, _WIDTH = 1000, 200
"""Lines, and characters of each, among which the nearest is sought."""
_MOST = 10
"""Occurrences that are told."""

_WRITTEN = (("write_file", {"path": "double.py", "content": "def double(x):\n    return x + 2\n"}),)


@tool(
    pure=True,
    states=VALUES,
    examples=[
        Example(
            {"path": "double.py", "old": "x + 2", "new": "2 * x"},
            "--- double.py\n+++ double.py\n@@ -1,2 +1,2 @@\n def double(x):\n-    return x + 2\n+    return 2 * x",
            after=_WRITTEN,
        ),
        Example(
            {"path": "double.py", "old": "return x+2", "new": "return 2 * x"},
            "old: it does not occur in double.py. The nearest line is 2:     return x + 2",
            ToolState.ERROR,
            _WRITTEN,
        ),
    ],
)
async def edit_file(
    work: Workspace,
    path: Annotated[str, "the file, relative to the work folder"],
    old: Annotated[str, "text that occurs exactly once in it"],
    new: Annotated[str, "what takes its place"],
) -> ToolResult:
    """Replace one exact piece of text in a file of your work folder and get back the difference. The old text must
    occur exactly once, spaces and line ends included: take in a line more where it occurs more often.
    Example: {"path": "double.py", "old": "x + 2", "new": "2 * x"}
    """
    path = plain(path)
    if problem := missing(path, work.files) or unwritable(path, work.files, work.policy):
        return mistaken(problem)
    text = decoded(work.files[path]) if len(work.files[path]) <= LARGEST else None
    if text is None:
        return mistaken(f"{path} is no text, or longer than {LARGEST} bytes.")
    if "\r\n" in text and "\r" not in old + new:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    if problem := _unfit(path, text, old, new):
        return mistaken(problem)
    after = text.replace(old, new)
    written = put(work, path, after)
    return (
        written
        if written.state is not ToolState.OK
        else _difference(path, text, after, text.index(old), len(old), len(new))
    )


def _unfit(path: str, text: str, old: str, new: str) -> str:
    """Why ``old`` cannot be replaced, empty where it can."""
    if not old:
        return "old: it is empty. To make a file or to write it anew, call write_file."
    if old == new:
        return "new: it is the same as old."
    starts = _occurrences(text, old)
    if not starts:
        return f"old: it does not occur in {path}. {_nearest(text, old)}"
    times = f"{len(starts)} times" if len(starts) <= _MOST else f"more than {_MOST} times"
    at = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts[:_MOST])
    more = f"old: it occurs {times} in {path}, at lines {at}. Take in more of the text around the one you mean."
    return more if len(starts) > 1 else ""


def _occurrences(text: str, old: str) -> list[int]:
    """Where ``old`` begins, overlapping ones too; at most one more than ``_MOST``."""
    starts = [text.find(old)]
    while starts[-1] >= 0 and len(starts) <= _MOST + 1:
        starts.append(text.find(old, starts[-1] + 1))
    return starts[:-1]


def _nearest(text: str, old: str) -> str:
    first = next((line for line in old.splitlines() if line.strip()), "")[:_WIDTH]
    lines = [line[:_WIDTH] for line in text.splitlines()[:_COMPARED]]
    near = difflib.get_close_matches(first.strip(), [line.strip() for line in lines], n=1, cutoff=0.4)
    if not near:
        return "No line is like it. Read the file first."
    number = next(n for n, line in enumerate(lines, 1) if line.strip() == near[0])
    return f"The nearest line is {number}: {clean(lines[number - 1])}"


def _difference(path: str, before: str, after: str, at: int, gone: int, come: int) -> ToolResult:
    """The unified difference. Only the lines around the change are compared."""
    first = max(before.count("\n", 0, at) - _AROUND, 0)
    pieces = (_window(before, first, at + gone), _window(after, first, at + come))
    shown = []
    for line in difflib.unified_diff(*pieces, path, path, lineterm="", n=_AROUND):
        if match := re.fullmatch(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@", line):
            line = f"@@ -{int(match[1]) + first}{match[2] or ''} +{int(match[3]) + first}{match[4] or ''} @@"
        shown.append(clean(line).rstrip("\r"))
    return ToolResult(state=ToolState.OK, output=shorten("\n".join(shown)))


def _window(text: str, first: int, end: int) -> list[str]:
    """Lines from ``first`` (from 0) to some behind the one that holds character ``end``."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines[first : text.count("\n", 0, end) + 1 + _AROUND]
