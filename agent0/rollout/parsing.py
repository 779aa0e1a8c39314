"""Parses what a model wrote, without trusting it: calls of tools in any form that models are taught, and an answer.

Malformed text is data (``ToolCall.error``, ``ParsedTurn.errors``), never an exception; time is linear in the text,
whose length is capped. Only text that a model sampled is parsed here, never a task nor a tool's output. Thoughts call
nothing and answer nothing, and so does what follows the end of the turn.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agent0.chat_format import LONGEST_ANSWER, boxed, is_placeholder, respelled_boxes
from agent0.events.values import ToolCall, Turn
from agent0.ports.models import Generation, ToolSpec
from agent0.rollout.tool_prompts import FENCE
from agent0.turns.calls.actions import labelled_answer
from agent0.turns.calls.blocks import languages, tool_blocks
from agent0.turns.calls.objects import DEEPEST, FINAL_ACTION
from agent0.turns.calls.reading import read_calls
from agent0.turns.calls.spellings import read_or_why
from agent0.turns.calls.toolbox import Toolbox
from agent0.turns.marks import own_turn
from agent0.turns.retractions import box_taken_back
from agent0.turns.thoughts import split_thoughts

__all__ = ["DEEPEST", "LONGEST", "MOST_CALLS", "ParsedTurn", "parse_turn"]

LONGEST = 32_768
"""Characters read of one turn; the rest is cut off and reported."""

MOST_CALLS = 16
"""Calls read of one turn."""

NO_ACTION, NO_CHANGE = "Your turn calls no tool", "No file has been changed yet"
DONE = r"\boxed{done}"
"""How prompts ask to end a task whose answer is a work folder."""
_final_action = re.compile(rf"\{{\s*[\"']action[\"']\s*:\s*[\"']{FINAL_ACTION}[\"']", re.IGNORECASE)
_almost = (
    (re.compile(r"[\"'](?:name|function|tool\w*)[\"']\s*:.{0,200}?[\"'](?:arguments|parameters)[\"']\s*:", re.DOTALL),
     "what looks like a call cannot be read as one"),
    (re.compile(r"^[ \t*]*action input[* \t]*:", re.IGNORECASE | re.MULTILINE), "an Action Input without an Action"),
    (re.compile(r"<\|im_start\|>\s*\Z"), "an opening mark and nothing after it"),
    (re.compile(r"(?m)<(?:execute(?:_\w+)?|python|tool)\b[^<>\n]{0,80}>|\[tool_call[:\s]|^[ \t]*<code>[ \t]*\n"),
     "a tag that calls no tool"),
    (re.compile(r"</(?:tool_call|function|parameter|invoke)>"), "the end of a call without its beginning"),
)  # fmt: skip
"""What only a call is written with, and what is wrong where none was read."""
_of_no_tool = re.compile(r"^`{3}(?!js|json|text|txt|output)(?P<name>[A-Za-z_][\w.-]{0,40})[ \t]*\n\s*\{", re.MULTILINE)
"""A block of arguments in the name of what may be no tool."""


@dataclass(frozen=True)
class ParsedTurn:
    """A parsed assistant turn: ``calls`` in order, malformed ones with their ``error``; ``answer`` outside of any call,
    None where there is none; ``errors`` of the turn as a whole; ``reminder``: what is missing of one that was read."""

    calls: tuple[ToolCall, ...] = ()
    answer: str | None = None
    errors: tuple[str, ...] = ()
    reminder: str = ""


def parse_turn(text: str, toolbox: Toolbox | Mapping[str, str] | None = None, *, form: str = "") -> ParsedTurn:
    r"""Parse one assistant turn.

    Calls between marks come first; where there are none, messages to a tool in channels, objects in fences and on lines
    of their own, then actions (ReAct). In form ``fence`` the first block in a tool's name is the one call. ``toolbox``
    is what is known of the tools, or their text arguments alone. The answer is the last balanced ``\boxed{...}``,
    else the last ``Final Answer:`` or ``Answer:`` line.
    """
    errors = [f"cut at {LONGEST} characters"] if len(text) > LONGEST else []
    text = text[:LONGEST].encode(errors="replace").decode()
    reply = split_thoughts(own_turn(text))
    tools = toolbox if isinstance(toolbox, Toolbox) else Toolbox(text_arguments=toolbox or {})
    calls, prose, mentioned = read_calls(reply.visible, tools, blocks=form == FENCE)
    answer = _answer(prose)
    if len(calls) > MOST_CALLS:
        errors.append(f"{len(calls)} calls, {MOST_CALLS} read")
    if not calls and answer is None:
        errors += ["it ends within its thoughts"] if reply.unclosed else _unread(prose, tools, mentioned)
    return ParsedTurn(tuple(calls[:MOST_CALLS]), answer, tuple(errors))


def as_message(parsed: ParsedTurn, written: Generation, tool: str) -> ParsedTurn:
    """``parsed``, a turn that was ``written``, as a call of ``tool`` that sends it as a message, where it is whole,
    calls nothing, and there is such a tool."""
    message = split_thoughts(own_turn(written.text[:LONGEST])).visible.strip()
    if not tool or parsed.calls or parsed.errors or not message or written.finish == "length":
        return parsed
    return ParsedTurn((ToolCall(name=tool, arguments={"message": message}),))


def as_action(
    parsed: ParsedTurn, tools: Sequence[ToolSpec], previous: Turn, *, steps: bool, files: bool, changed: bool
) -> ParsedTurn:
    """``parsed``, a turn of an attempt whose answer is its ``steps`` or its ``files``: one that neither calls any of
    ``tools`` nor says that it is done gets a reminder, and one that says so where no file was ``changed``, unless
    ``previous`` is one already."""
    idle = not (parsed.calls or parsed.errors or parsed.answer is not None) and (steps or files)
    unchanged = files and not changed and parsed.answer is not None and not parsed.calls
    if not (idle or unchanged) or previous.content.startswith((NO_ACTION, NO_CHANGE)):
        return parsed
    names, or_end = ", ".join(tool.name for tool in tools), "" if steps else f", or write {DONE}"
    reminder = f"{NO_ACTION if idle else NO_CHANGE}. End your turn with a call of one of: {names}{or_end}"
    return replace(parsed, answer=None, reminder=f"{reminder}{' again' if unchanged else ''}.")


def _answer(prose: str) -> str | None:
    prose = respelled_boxes(prose)
    retraction = box_taken_back(prose)
    answer = None if retraction else boxed(prose)
    answer = answer if answer is not None else labelled_answer(prose[retraction.end if retraction else 0 :])
    answer = (answer if answer is not None else _final_input(prose) or "").strip()
    return None if is_placeholder(answer) else answer[:LONGEST_ANSWER] or None


def _final_input(prose: str) -> str | None:
    """What LangChain's action of the final answer says."""
    opening = _final_action.search(prose)
    value, _, problem = read_or_why(prose, opening.start(), unclosed=True) if opening else (None, 0, "none")
    return str(value.get("action_input", "")) if not problem and isinstance(value, dict) else None


def _unread(prose: str, tools: Toolbox, mentioned: int) -> list[str]:
    """What looks like a call in a turn in which none was read."""
    if mentioned:
        return ["a call that is quoted, warned against or without contents is not made"]
    problems = [problem for pattern, problem in _almost if pattern.search(prose)]
    if not problems and next(tool_blocks(prose, languages(tools.names)), None):
        problems = ["a block of code alone calls no tool"]
    if not problems and tools.names and (block := _of_no_tool.search(prose)) and block["name"] not in tools.names:
        problems = [f"there is no tool named {block['name']}; the tools are: {', '.join(sorted(tools.names))}"]
    return problems[:1]
