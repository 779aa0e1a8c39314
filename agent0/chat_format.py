r"""How an answer is marked in what a model writes: ``\boxed{...}``. The one reader of boxes, for runs, benchmarks,
signals and search.

Balanced braces, escaped ones aside; ``\fbox{...}`` and ``\boxed {...}`` are boxes too. Time is linear in the text.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

COMMANDS = "boxed|fbox|framebox"
"""LaTeX commands that make a box."""
CANONICAL = "\\boxed{"
BOX = r"\\boxed"
"""Pattern of the command that nearly all models use."""
_unbraced = re.compile(
    r"\\boxed\s*(\\[dt]?frac\s*(?:\d\s*\d|\{[^{}]*\}\{[^{}]*\})|\d|(?<=\s)[A-Za-z])(?=[\s.,;$\\]|\Z)"
)
_escaped = re.compile(r"(?<!\\)\\\\(?=(?:boxed|frac|sqrt|text|begin|end|left|right|pi|cdot|times|circ)(?![A-Za-z]))")
_bare = re.compile(r"(?<![\w\\])boxed(?=\s*\{)|\x08oxed(?=\s*\{)")
"""The command without its backslash, or with a backspace in its place: a string took it for an escape."""
_number = re.compile(r"\\boxed[ \t]+(-?\d[\d.,]*\d|-?\d)(?=[\s.,;$]|\Z)")
_begun = re.compile(rf"\\(?:{COMMANDS}|b|bo|box|boxe)\s*\Z")
_form = re.compile(
    r"\s*(?:\\text(?:bf)?\{)?\s*(?:(?:(?:your|the|my) )?(?:final )?answer(?: here)?|\.{3}|…|\\[lc]?dots)\s*\}?\s*", re.I
)
_brace = re.compile(rf"\\(?:{COMMANDS})\s*\{{|\\[{{}}\\]|[{{}}]")


@dataclass(frozen=True)
class Box:
    r"""One ``\boxed{`` or ``\fbox{`` in a text, as character positions: ``start`` of the command, ``inside`` its
    content, ``end`` at the closing brace (-1 where none closes it)."""

    start: int
    inside: int
    end: int

    @property
    def closed(self) -> bool:
        """Whether a brace closes the box."""
        return self.end >= 0


def boxes(text: str, start: int = 0, end: int | None = None) -> list[Box]:
    """Find every box between ``start`` and ``end``, in order of their openings."""
    stack: list[int] = []
    openings: list[Box] = []
    for token in _brace.finditer(text, start, len(text) if end is None else end):
        written = token[0]
        if written == "{":
            stack.append(-1)
        elif written == "}" and stack:
            if (index := stack.pop()) >= 0:
                openings[index] = Box(openings[index].start, openings[index].inside, token.start())
        elif len(written) > 2:
            stack.append(len(openings))
            openings.append(Box(token.start(), token.end(), -1))
    return openings


def boxed(text: str) -> str | None:
    """Return the content of the last closed box to open that is more than the form of one (``answer``, ``...``); None
    where none is closed, or one was begun behind it."""
    every = [box for box in boxes(text) if not (box.closed and _form.fullmatch(text, box.inside, box.end))]
    last = next((box for box in reversed(every) if box.closed), None)
    if last is None or every[-1].start > last.end or _begun.search(text, last.end):
        return None
    return text[last.inside : last.end]


def respelled_boxes(text: str) -> str:
    r"""Return ``text`` with ``\\boxed`` in a string's spelling, and ``\boxed 12``, as boxes."""
    if "oxed" not in text:
        return text
    text = _bare.sub(r"\\boxed", text)
    return _number.sub(r"\\boxed{\1}", _escaped.sub(r"\\", text) if "\\\\boxed" in text else text)


def unbraced_boxes(text: str) -> list[str]:
    r"""Return what stands in boxes without braces, in order: ``\boxed 3``, ``\boxed\frac12``."""
    return _unbraced.findall(text)


def opened(text: str) -> str:
    """Return ``text`` with the content of every closed box in its place."""
    closed = [box for box in boxes(text) if box.closed]
    commands = {index for box in closed for index in (*range(box.start, box.inside), box.end)}
    return "".join(letter for index, letter in enumerate(text) if index not in commands) if commands else text


LONGEST_ANSWER = 1_000
_dots = re.compile(
    r"(?:\?+|\.{2,}|…+|_{2,}|(?:\\(?:[lc]?dots|square|Box|quad|[_,;])\s*)+|(?:\\underline )?\\hspace\*? [\w.]+)\.?"
)
_around = re.compile(r"\\(?:text(?:bf|it|rm)?|math(?:rm|bf)|boxed)\s*(?=\{)|[\s\"“”`*$<>{}()\[\]]+")
_placeholder = re.compile(
    r"(?:(?:your|my|the) )?(?:final )?(?:answer|ans)(?: (?:goes )?here)?|idk|tbd|todo|placeholder"
    r"|(?:(?:sorry|well),? )?(?:(?:i )?(?:really )?(?:do not|don['’]?t) know|(?:i ?['’]?a?m )?not sure|no idea"  # noqa: RUF001
    r"|i (?:can ?not|can['’]t) (?:say|tell|answer|solve)(?: (?:this|that|it)\b[^.\n]{0,40})?)",  # noqa: RUF001
    re.IGNORECASE,
)


def is_placeholder(answer: str) -> bool:
    r"""Return whether ``answer`` stands in the place of one and is none: ``answer``, ``?``, ``...``, "I don't know"."""
    text = _around.sub(" ", answer).strip(" '!,")
    return bool(_dots.fullmatch(text) or _placeholder.fullmatch(text.rstrip(".")))


OPEN, CLOSE = "<tool_call>", "</tool_call>"


def format_call(name: str, arguments: Mapping[str, Any]) -> str:
    """Write a tool call in the canonical form of Qwen2.5's chat template; ``parse_turn`` reads it back unchanged."""
    body = json.dumps({"name": name, "arguments": dict(arguments)}, ensure_ascii=False)
    if "tool_call>" in body:
        body = body.replace("<", "\\u003c")
    return f"{OPEN}\n{body}\n{CLOSE}"


ACTION_INPUT = "Action Input:"


def format_action(name: str, arguments: Mapping[str, Any]) -> str:
    """Write a tool call as two lines, as ReAct does (arXiv 2210.03629); ``parse_turn`` reads it back unchanged."""
    return f"Action: {name}\n{ACTION_INPUT} {json.dumps(dict(arguments), ensure_ascii=False)}"
