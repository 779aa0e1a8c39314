"""Calls without a mark: objects and expressions of Python that stand for themselves, in a fence or on lines of their
own, and messages of gpt-oss to a tool. Only what is shaped like a call and like nothing else is one."""

import re
from collections.abc import Iterator

from agent0.events.values import ToolCall
from agent0.turns.calls.bodies import Body, CallSpan, expression_calls, json_calls, with_raw
from agent0.turns.calls.objects import call_of, object_in
from agent0.turns.calls.spellings import read_or_why
from agent0.turns.calls.toolbox import Toolbox
from agent0.turns.marks import channel_messages

MOST_FAILED = 8
"""Objects that cannot be read, after which no more are looked at."""
_fence = re.compile(r"```(?P<language>[A-Za-z_]{0,12})[ \t]*\n(?P<space>\s*)")
_fence_end = re.compile(r"\s*(?:```|\Z)")
_LANGUAGES = frozenset(("", "json", "jsonc", "json5", "tool_call", "tool_calls", "tool", "function", "tool_code"))
_LANGUAGES |= {"text", "python", "py", "javascript", "js", "plaintext", "xml"}
_object = re.compile(r"(?:^|:)[ \t]{0,8}(?=[{\[])", re.MULTILINE)
_expression = re.compile(r"^[ \t]{0,8}(?=\[?[ \t]{0,4}(?P<tool>[A-Za-z_][\w.]{0,63})[ \t]{0,4}\()", re.MULTILINE)
_standing_alone = re.compile(f"{_object.pattern}|{_expression.pattern}", re.MULTILINE)
_named_object = re.compile(r"\{\s{0,9}[\"'](?:name|function|tool)[\"']\s{0,9}:")
_list = re.compile(r"\[\s{0,9}\{")
_line_end = re.compile(r"[ \t]{0,8}[,;]?[ \t]*(?:\n|\Z|</|<\|)")
_to_tool = re.compile(
    r"\b(?:commentary|analysis)?\s*to=(?P<tool>functions\.[\w.-]{1,64}|python)\s*(?:<\|constrain\|>)?\s*(?:json|code)?\s*"
    r"(?:<\|message\|>)?(?=\{)"
)
_RECIPIENTS = ("user", "all", "assistant")


def channel_spans(text: str, toolbox: Toolbox) -> list[CallSpan]:
    """Find the messages of ``text`` to a tool, in the channels of gpt-oss; nothing behind the first is prose."""
    messages = [message for message in channel_messages(text) if message.recipient not in {"", *_RECIPIENTS}]
    if messages:
        calls = [_to_recipient(message.recipient, message.content, toolbox) for message in messages]
        return [CallSpan(messages[0].start, len(text), calls)]
    head = _to_tool.search(text)
    value, end, problem = read_or_why(text, head.end(), unclosed=True) if head else (None, 0, "no message")
    if head is None or problem:
        return []
    return [CallSpan(head.start(), len(text), [call_of(head["tool"], value, text[head.start() : end], toolbox)])]


def _to_recipient(recipient: str, content: str, toolbox: Toolbox) -> ToolCall:
    """A message to a tool: an object of its arguments, or for ``python`` a program."""
    if object_in(content) is None and toolbox.named(recipient) == "python":
        return call_of("python", {toolbox.text_arguments.get("python", "code"): content.strip()}, content, toolbox)
    value, _, problem = read_or_why(content, len(content) - len(content.lstrip()), unclosed=True)
    return call_of(recipient, content if problem else value, content, toolbox)


def fenced_spans(text: str, toolbox: Toolbox) -> list[CallSpan]:
    """Find call objects in fences; anything else in a fence is prose."""
    spans: list[CallSpan] = []
    position = failed = 0
    while failed < MOST_FAILED and (opening := _fence.search(text, position)):
        position = opening.end()
        if opening["language"].lower() not in _LANGUAGES:
            continue
        if body := _fenced(text, opening, toolbox):
            spans.append(CallSpan(opening.start(), body[1], body[0]))
            position = body[1]
        else:
            failed += text[position : position + 1] in ("{", "[")
    return spans


def _fenced(text: str, opening: re.Match[str], toolbox: Toolbox) -> Body | None:
    """The calls of one fence and where it ends."""
    start = opening.end()
    body = json_calls(text, start, toolbox, shaped=True)
    if body is None and opening["language"].lower() == "tool_code":
        body = expression_calls(text, start, toolbox)
    closing = _fence_end.match(text, body[1]) if body else None
    if body is None or closing is None:
        return None
    raw = text[opening.start("space") : closing.end() - 3 if closing[0].endswith("```") else closing.end()]
    return with_raw(body[0], raw), closing.end()


def bare_spans(text: str, toolbox: Toolbox) -> list[CallSpan]:
    """Find calls on lines of their own, outside of fences."""
    return [*_bare(text, toolbox)] or [*_last(text, toolbox)]


def _last(text: str, toolbox: Toolbox) -> Iterator[CallSpan]:
    """The object that a turn ends with, where it calls a tool that there is, though text stands before it."""
    for _, opening in zip(range(MOST_FAILED), _named_object.finditer(text), strict=False):
        body = json_calls(text, opening.start(), toolbox, shaped=True)
        if body and not text[body[1] :].strip() and all(call.name in toolbox.names for call in body[0]):
            yield CallSpan(opening.start(), body[1], body[0])
            return


def _bare(text: str, toolbox: Toolbox) -> Iterator[CallSpan]:
    """Every object and expression that is a call."""
    fences = _fence_spans(text)
    position = failed = 0
    while failed < MOST_FAILED and (head := _standing_alone.search(text, position)):
        position = max(head.end(), head.start() + 1)
        if span := next((span for span in fences if span[0] <= position < span[1]), None):
            position = span[1]
        elif not head["tool"] or not toolbox.names or toolbox.named(head["tool"]) in toolbox.names:
            body = _standing(text, head.end(), toolbox)
            failed += body is None
            position = max(body[1], position) if body else position
            if body and body[0] and _line_end.match(text, body[1]):
                yield CallSpan(head.end(), body[1], body[0])


def _standing(text: str, position: int, toolbox: Toolbox) -> Body | None:
    """The calls at ``position`` and where they end; no calls where something else stands there, None if unreadable."""
    if text.startswith("{", position) or _list.match(text, position):
        if body := json_calls(text, position, toolbox, shaped=True):
            return body
        _, end, problem = read_or_why(text, position)
        return None if problem else ([], end)
    body = expression_calls(text, position, toolbox)
    if body and all(call.name in toolbox.names and not call.error for call in body[0]):
        return body
    is_whole = body is not None and text.startswith("[", position) and not (text[:position] + text[body[1] :]).strip()
    return body if is_whole and not toolbox.names else None


def _fence_spans(text: str) -> list[tuple[int, int]]:
    """Where the fences of ``text`` begin and end."""
    lines = [line.start() for line in re.finditer(r"^[ \t]*(?:```|~~~)", text, re.MULTILINE)]
    return [(start, end) for start, end in zip(lines[::2], [*lines[1::2], len(text)], strict=False)]
