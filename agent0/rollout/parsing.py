"""Parses what a model wrote, without trusting it: tool calls in three dialects, and a final answer.

Malformed text is data (``ToolCall.error``, ``ParsedTurn.errors``), never an exception; time is linear in the text,
whose length is capped. Only text that a model sampled is parsed here, never a task nor a tool's output.
"""

import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from agent0.chat_format import CLOSE, LONGEST_ANSWER, OPEN, boxed
from agent0.rollout.tool_prompts import FENCE
from agent0.turns.fence import FencedBlock, first_block, languages
from events.values import ToolCall

LONGEST = 32_768
"""Characters read of one turn; the rest is cut off and reported."""

MOST_CALLS = 16
"""Calls read of one turn."""


DEEPEST = 32
"""Nesting of a call's arguments."""


_name = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_fence = re.compile(r"```(?:json|tool_call)?[ \t]*\n(\s*)")
_fence_end = re.compile(r"\s*```")
_label = re.compile(r"[ \t*#>]{0,8}(final answer|answer|action input|action|observation|thought)[* \t]{0,4}:", re.I)
_bracket = re.compile(r"([A-Za-z0-9_.-]{1,64})[ \t]*\[(.*)\]", re.S)


@dataclass(frozen=True)
class ParsedTurn:
    """A parsed assistant turn: ``calls`` in order, malformed ones with their ``error``; ``answer`` outside of any call,
    None where there is none; ``errors`` of the turn as a whole."""

    calls: tuple[ToolCall, ...] = ()
    answer: str | None = None
    errors: tuple[str, ...] = ()


def parse_turn(
    text: str, text_argument: Mapping[str, str] | None = None, *, tools: Collection[str] = (), form: str = ""
) -> ParsedTurn:
    r"""Parse one assistant turn.

    In form ``fence`` its first block in the name of one of ``tools`` is its one call.

    Dialects, the first that occurs wins: ``<tool_call>{JSON}</tool_call>`` (several; the last may be unclosed), a
    fenced JSON object with ``name`` and ``arguments``, and ``Action: name[input]`` or ``Action: name`` with ``Action
    Input: input``. Input that is no JSON object becomes the argument ``text_argument[name]`` (``input``). The answer is
    the last balanced ``\boxed{...}``, else the last ``Final Answer:`` or ``Answer:`` line.
    """
    errors = [f"cut at {LONGEST} characters"] if len(text) > LONGEST else []
    text = text[:LONGEST].encode(errors="replace").decode()
    if form == FENCE and (block := first_block(text, languages(tools))):
        return ParsedTurn((_block_call(block, text_argument or {}),), _answer(text[: block.start]), tuple(errors))
    calls, prose = _marked(text)
    if not calls:
        calls, prose = _fenced(text)
    if not calls:
        calls, prose = _acted(text, text_argument or {})
    if len(calls) > MOST_CALLS:
        errors.append(f"{len(calls)} calls, {MOST_CALLS} read")
    return ParsedTurn(tuple(calls[:MOST_CALLS]), _answer(prose), tuple(errors))


def _block_call(block: FencedBlock, text_argument: Mapping[str, str]) -> ToolCall:
    """The call that a block is: its text is the one text argument, or a JSON object of all."""
    argument = text_argument.get(block.tool, "")
    arguments = _object(block.body)
    if arguments is None or (argument and list(arguments) != [argument]):
        if not argument:
            return ToolCall(name=block.tool, raw=block.body, error="the block is no JSON object of arguments")
        arguments = {argument: block.body}
    if not block.closed:
        return ToolCall(name=block.tool, raw=block.body, error="the block is not closed")
    return _call({"name": block.tool, "arguments": arguments}, block.body)


def _marked(text: str) -> tuple[list[ToolCall], str]:
    """Calls between ``<tool_call>`` marks, and the text around them."""
    before, *bodies = text.split(OPEN)
    calls, prose = [], [before]
    for body in bodies:
        inside, closed, after = body.partition(CLOSE)
        calls.append(_read(inside, whole=bool(closed)))
        prose.append(after)
    return calls, "\n".join(prose)


def _read(raw: str, whole: bool) -> ToolCall:
    """The call that ``raw`` spells. Text after the JSON object is an error only where ``whole``."""
    body = raw.strip()
    try:
        value, end = _decoder.raw_decode(body)
    except (ValueError, RecursionError) as problem:
        return ToolCall(name="", raw=raw, error=f"no JSON: {_brief(problem)}")
    if whole and body[end:].strip():
        return ToolCall(name="", raw=raw, error="text after the JSON object")
    return _call(value, raw)


def _call(value: object, raw: str) -> ToolCall:
    if not isinstance(value, dict):
        return ToolCall(name="", raw=raw, error="no JSON object")
    name, arguments = value.get("name"), value.get("arguments", value.get("parameters", {}))
    if not isinstance(name, str) or not _name.fullmatch(name):
        return ToolCall(name="", raw=raw, error="no valid tool name")
    if isinstance(arguments, str):
        arguments = _object(arguments)
    if not isinstance(arguments, dict):
        return ToolCall(name=name, raw=raw, error="arguments are no JSON object")
    if problem := _unsound(arguments):
        return ToolCall(name=name, raw=raw, error=problem)
    return ToolCall(name=name, arguments=arguments, raw=raw)


def _object(text: str) -> dict[str, Any] | None:
    """``text`` as a JSON object, None where it is none."""
    try:
        value, end = _decoder.raw_decode(text.strip())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not text.strip()[end:] else None


def _fenced(text: str) -> tuple[list[ToolCall], str]:
    """Call objects in fences, and the text around them; JSON of any other shape is prose."""
    calls: list[ToolCall] = []
    prose, place = [], 0
    while opened := _fence.search(text, place):
        prose.append(text[place : opened.start()])
        call, place = _fenced_call(text, opened)
        calls += [call] if call else []
    return calls, "\n".join([*prose, text[place:]])


def _fenced_call(text: str, opened: re.Match[str]) -> tuple[ToolCall | None, int]:
    """The call in the fence that ``opened`` opens, and the fence's end; where there is none, None and its beginning."""
    try:
        found, end = _decoder.raw_decode(text, opened.end())
    except (ValueError, RecursionError):
        return None, opened.end()
    closed = _fence_end.match(text, end)
    if closed and isinstance(found, dict) and "name" in found and ("arguments" in found or "parameters" in found):
        return _call(found, text[opened.start(1) : closed.end() - 3]), closed.end()
    return None, opened.end()


def _acted(text: str, text_argument: Mapping[str, str]) -> tuple[list[ToolCall], str]:
    """ReAct actions. What follows the first observation that a model wrote after an action is its own invention and
    is not read."""
    calls: list[ToolCall] = []
    prose: list[str] = []
    pending = ""
    for label, body in _sections(text):
        if label == "observation" and (calls or pending):
            break
        if pending:
            calls.append(_action(pending, body if label == "action input" else "", text_argument))
            pending = ""
            if label == "action input":
                continue
        if label == "action":
            pending = body.strip() or "?"
        else:
            prose.append(f"{label}: {body}" if label else body)
    if pending:
        calls.append(_action(pending, "", text_argument))
    return calls, "\n".join(prose)


def _sections(text: str) -> list[tuple[str, str]]:
    """The text cut at lines that begin with a ReAct label: (label, what follows up to the next one)."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        if label := _label.match(line):
            found.append((label[1].lower(), [line[label.end() :].strip()]))
        else:
            found[-1][1].append(line)
    return [(label, "\n".join(lines)) for label, lines in found]


def _action(head: str, body: str, text_argument: Mapping[str, str]) -> ToolCall:
    raw = f"{head}\n{body}" if body else head
    if not body and (bracketed := _bracket.fullmatch(head)):
        head, body = bracketed[1], bracketed[2]
    name = head.strip(" \t`*")
    if not _name.fullmatch(name):
        return ToolCall(name="", raw=raw, error="no valid tool name")
    body = _unfenced(body.strip())
    arguments = _object(body)
    if arguments is None:
        arguments = {text_argument.get(name, "input"): body} if body else {}
    return _call({"name": name, "arguments": arguments}, raw)


def _unfenced(body: str) -> str:
    """``body`` without a code fence around it."""
    if len(body) > 6 and body.startswith("```") and body.endswith("```"):
        return body[3:-3].partition("\n")[2].strip()
    return body


def _answer(prose: str) -> str | None:
    found = boxed(prose)
    found = found if found is not None else _labelled(prose)
    found = (found or "").strip()
    return found[:LONGEST_ANSWER] or None


def _labelled(prose: str) -> str | None:
    """The first line with text after the last answer label."""
    answers = [body for label, body in _sections(prose) if label in ("answer", "final answer") and body.strip()]
    return answers[-1].strip().splitlines()[0].strip(" \t*`$") if answers else None


def _unsound(value: object, room: int = DEEPEST) -> str:
    """Why ``value`` could not be stored as JSON text, empty where it could."""
    if isinstance(value, str):
        return "" if value.isascii() or _encodes(value) else "half a surrogate pair in a string"
    if not isinstance(value, dict | list):
        return ""
    if not room:
        return "nested too deeply"
    inner = [*value, *value.values()] if isinstance(value, dict) else value
    return next((problem for item in inner if (problem := _unsound(item, room - 1))), "")


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _finite(literal: str) -> float:
    if math.isfinite(number := float(literal)):
        return number
    raise ValueError("number out of range")


def _constant(literal: str) -> None:
    raise ValueError(f"{literal} is no JSON")


def _brief(problem: Exception) -> str:
    return "nested too deeply" if isinstance(problem, RecursionError) else str(problem)[:120]


_decoder = json.JSONDecoder(parse_float=_finite, parse_constant=_constant, strict=False)
