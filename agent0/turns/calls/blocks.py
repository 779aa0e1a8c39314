"""Calls as fenced blocks: a block in the name of a tool ends the turn and calls it, its output comes back in another.

So do the executors of PAL-like agents (ToRA, arXiv 2309.17452; Qwen2.5-Math), and models write it that never learned
another form. A block is the tool's one text argument, or a JSON object of its arguments.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from agent0.turns.calls.mentions import is_answered, is_mentioned
from agent0.turns.programs import is_python

ALIASES = {"python": ("py", "python3", "ipython"), "shell": ("bash", "sh", "console")}
"""Languages that name a tool beside its own name."""
_opening = re.compile(
    r"^(?P<indent>[ \t]{0,8})(?:(?P<sign>`{3,}|~{3,})[ \t]{0,8}(?P<language>[\w.+-]{0,64})[^\n`]*\n"
    r"|<code>(?:[ \t]*\n)?)",
    re.MULTILINE,
)
_printing = re.compile(r"\bprint\s*\(")
MOST_TRIED, MOST_CLOSINGS = 16, 8
"""Blocks whose end is looked for as that of a program, and fences at which one is tried to end."""
STOPS = ("```\n\n", "```output")
"""What only a closed block is followed by; a bare opening is not."""


class FencedBlock(NamedTuple):
    """A block from ``start`` to the ``end`` of what closes it."""

    tool: str
    body: str
    start: int
    end: int
    closed: bool


def first_block(text: str, tools: Mapping[str, str]) -> FencedBlock | None:
    """Find the first block of ``text`` that calls one of ``tools`` (languages with the tool that each names): one that
    is not only talked about, and before any answer."""
    blocks = tool_blocks(text, tools)
    block = next((block for block in blocks if not is_mentioned(text, block.start, block.end)), None)
    return block if block and not is_answered(text[: block.start]) else None


def tool_blocks(text: str, tools: Mapping[str, str]) -> Iterator[FencedBlock]:
    """Find the blocks of ``text`` in the name of one of ``tools``.

    A block without a language, or in a tag of code, is of the tool of ``python`` where it is a program that prints.
    """
    position = tried = 0
    while opening := _opening.search(text, position):
        language = (opening["language"] or "").lower()
        tool = tools.get(language, "")
        is_program = tried < MOST_TRIED and (not language or tool == "python")
        tried += is_program
        closing = _closing_of(text, opening, is_program=is_program)
        inner_end, position = closing.span() if closing else (len(text), len(text))
        body = _unindented(text[opening.end() : inner_end].strip("\n"), opening["indent"])
        if not language and _printing.search(body) and is_python(body):
            tool = tools.get("python", "")
        if tool:
            yield FencedBlock(tool, body, opening.start(), position, closing is not None)


def _unindented(body: str, indent: str) -> str:
    """``body`` without the ``indent`` of its fences, as in a list, where each line has it."""
    lines = body.split("\n")
    is_indented = bool(indent) and all(line.startswith(indent) for line in lines if line.strip())
    return "\n".join(line.removeprefix(indent) for line in lines) if is_indented else body


def _closing_of(text: str, opening: re.Match[str], *, is_program: bool) -> re.Match[str] | None:
    """What closes a block: the first fence, or of a program the first with which it is one, since its strings may hold
    fences; None where nothing does."""
    start = opening.end()
    sign = opening["sign"]
    pattern = rf"^[ \t]{{0,8}}{sign[0]}{{{len(sign)},}}(?=[ \t]*$)" if sign else r"\n?[ \t]{0,8}</code>(?=[ \t]*$)"
    closings = list(islice(re.compile(pattern, re.MULTILINE).finditer(text, start), MOST_CLOSINGS))
    if not is_program or not closings:
        return closings[0] if closings else None
    whole = next((closing for closing in closings if is_python(text[start : closing.start()])), None)
    return whole or (None if is_python(text[start:]) else closings[0])


def languages(tools: Collection[str]) -> dict[str, str]:
    """Map every language of a block to the tool among ``tools`` that it names."""
    aliases = {alias: tool for tool, names in ALIASES.items() if tool in tools for alias in names}
    return aliases | {name.lower(): name for name in tools}


def output_block(output: str) -> str:
    """Write a tool's ``output`` as a block that it cannot close itself."""
    return f"```output\n{output.replace('```', chr(39) * 3)}\n```"
