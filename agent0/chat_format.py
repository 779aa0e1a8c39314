r"""How an answer is marked in what a model writes: ``\boxed{...}``. The one reader of boxes, for runs, benchmarks,
signals and search.

Balanced braces, escaped ones aside; ``\fbox{...}`` and ``\boxed {...}`` are boxes too. Time is linear in the text.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

COMMANDS = "boxed|fbox"
"""LaTeX commands that make a box."""
CANONICAL = "\\boxed{"
_brace = re.compile(rf"\\(?:{COMMANDS})\s*\{{|\\[{{}}\\]|[{{}}]")


@dataclass(frozen=True)
class Box:
    """A box in a text: where its opening begins and ends, and where the brace stands that closes it, -1 for none."""

    start: int
    inside: int
    end: int

    @property
    def closed(self) -> bool:
        """Whether a brace closes it."""
        return self.end >= 0


def boxes(text: str, start: int = 0, end: int | None = None) -> list[Box]:
    """Every box between ``start`` and ``end``, in order of their openings."""
    stack: list[int] = []
    found: list[Box] = []
    for mark in _brace.finditer(text, start, len(text) if end is None else end):
        word = mark[0]
        if word == "{":
            stack.append(-1)
        elif word == "}" and stack:
            if (place := stack.pop()) >= 0:
                found[place] = Box(found[place].start, found[place].inside, mark.start())
        elif len(word) > 2:
            stack.append(len(found))
            found.append(Box(mark.start(), mark.end(), -1))
    return found


def boxed(text: str) -> str | None:
    """What is inside the box that opens last of all that are closed, None where none is."""
    last = next((box for box in reversed(boxes(text)) if box.closed), None)
    return text[last.inside : last.end] if last else None


def unboxed(text: str) -> str:
    """``text`` without the box around the whole of it, where there is one."""
    first = next(iter(boxes(text)), None)
    whole = first is not None and first.start == 0 and first.end == len(text) - 1
    return text[first.inside : first.end] if first and whole else text


def plain_boxes(text: str) -> Iterator[str]:
    r"""What is inside each ``\boxed{...}`` of this spelling that has no braces in it, in order: a try of a search has
    none, and earlier versions read no other answers of teachers."""
    for box in boxes(text):
        inside = text[box.inside : box.end]
        if box.closed and text[box.start : box.inside] == CANONICAL and not set(inside) & set("{}"):
            yield inside


LONGEST_ANSWER = 1_000


OPEN, CLOSE = "<tool_call>", "</tool_call>"


def format_call(name: str, arguments: Mapping[str, Any]) -> str:
    """The canonical spelling of a call (that of Qwen2.5's chat template); ``parse_turn`` reads it back unchanged."""
    body = json.dumps({"name": name, "arguments": dict(arguments)}, ensure_ascii=False)
    if "tool_call>" in body:
        body = body.replace("<", "\\u003c")
    return f"{OPEN}\n{body}\n{CLOSE}"
