"""Calls between marks, whatever the mark: ``<tool_call>``, ``[TOOL_CALLS]``, ``<function=…>``, ``<|python_tag|>`` …

A mark is a word for a call in brackets. A call ends where what it says ends, not at the next closing mark: that may
stand in one of its texts.
"""

import re

from agent0.events.values import ToolCall
from agent0.turns.calls.bodies import SPACE, Body, CallSpan, parameter_calls, read_body, skipped, with_raw
from agent0.turns.calls.objects import call_of
from agent0.turns.calls.spellings import read_or_why
from agent0.turns.calls.toolbox import Toolbox

MOST_FAILED = 8
"""Calls that cannot be read, after which each is looked for up to the next mark only."""
_STRONG = "tool[_\u2581]?calls?|function[_\u2581]?calls?|tool[_\u2581]?uses?|tool[_\u2581]?code|action_start|plugin"
_WEAK = "tools?|actions?|im_start"
"""Words that mark a call only where one follows: a list of tools begins so, too, and ``<|im_start|>`` is a turn's."""
_pipe = "[|\uff5c]?"
_edge = "(?:begin|start|section|end|stop|argument|sep)"
_opening = re.compile(
    rf"(?i)(?P<left>[<\[])(?P<pipe>{_pipe})(?P<slash>/?){_pipe}(?:(?!{_edge}_)[a-z]{{1,20}}[:_|\uff5c])?(?P<before>{_edge}_)?"
    rf"(?:(?P<word>{_STRONG})|(?P<weak>{_WEAK}))(?P<after>(?:[_\u2581]?{_edge})*)(?P<last>{_pipe})(?P<right>[>\]])"
    rf"|(?P<python><\|python_tag\|>)|(?P<function>(?=<{SPACE}(?:function(?:_call)?|invoke)(?:=|\s+name\s*=)))"
    "|(?P<sign>\u273fFUNCTION\u273f:[ \\t]*(?P<named>[\\w.-]{1,64})\\s*\u273fARGS\u273f:[ \\t]*)"
)
_result = re.compile(r"(?im)<\|?(?:tool|function)_(?:response|result|output)s?\|?>|^[ \t]*observation:")
_padding = re.compile(r"[\s}\],;]*")
_words = re.compile(r"[ \t]*(?:[a-z]+\b|[.,;:])[^\n{}<>\[\]]*?(?:[.!?](?=\s)|\n|\Z)")
_bare_name = re.compile(r"\s*([A-Za-z_][\w.-]{0,63})\s*(?=<|\[/|\Z)")


def marked_spans(text: str, toolbox: Toolbox) -> list[CallSpan]:
    """Find the calls of ``text`` that stand between marks; what follows a result that the text itself makes up is not
    read."""
    spans: list[CallSpan] = []
    position = failed = 0
    is_calling = False
    while opening := _opening.search(text, position):
        if is_calling and _result.search(text, position, opening.start()):
            break
        if is_calling and not text[opening.end() :].strip():
            spans.append(CallSpan(opening.start(), len(text), []))  # small models end a call as they began it
            break
        body = _read(text, opening, toolbox, shortly=failed >= MOST_FAILED)
        position = max(body[1] if body else opening.end(), opening.start() + 1)
        if body:
            spans.append(CallSpan(opening.start(), position, body[0]))
            is_calling = is_calling or bool(body[0])
            failed += any(call.error for call in body[0])
    result = _result.search(text, position) if is_calling else None
    return [*spans, CallSpan(result.start(), len(text), [])] if result else spans


def _read(text: str, opening: re.Match[str], toolbox: Toolbox, *, shortly: bool) -> Body | None:
    """The calls that ``opening`` opens and where they end, None where it opens none."""
    start, end = opening.span()
    if text[start - 1 : start] == "`" or (text[start - 1 : start] in ("'", '"') and text[end : end + 1] in ("'", '"')):
        return None
    if opening["python"]:
        return _of_python(text, end, toolbox)
    if opening["function"] is not None:
        return parameter_calls(text, start, toolbox) or _unreadable(text, start, start + 1, "no tool is named")
    if opening["sign"]:
        value, after, problem = read_or_why(text, end, unclosed=True)
        return None if problem else ([call_of(opening["named"], value, text[start:after], toolbox)], after)
    if _closes(opening):
        return [], end
    return _between(text, opening, toolbox, shortly=shortly)


def _closes(mark: re.Match[str]) -> bool:
    around = f"{mark['before'] or ''}{mark['after'] or ''}".lower()
    return bool(mark["slash"] or (mark["last"] and not mark["pipe"])) or "end" in around or "stop" in around


def _between(text: str, opening: re.Match[str], toolbox: Toolbox, *, shortly: bool) -> Body | None:
    """The calls behind a mark in brackets."""
    start = opening.end()
    following = _opening.search(text, start)
    if following and not text[start : following.start()].strip() and not _closes(following):
        return [], start
    scope = text[: following.start()] if shortly and following else text
    body = read_body(scope, start, toolbox) or _by_name(text, start, toolbox)
    if body is None:
        return None if opening["weak"] else _unreadable(text, start, start, _why(scope, start))
    calls, end = body
    if opening["weak"] and any(call.error for call in calls):
        return None
    closing = _opening.match(text, skipped(_padding, text, end))
    if closing and _closes(closing):
        return with_raw(calls, text[start : closing.start()]), closing.end()
    beyond = _opening.search(text, end)
    if beyond is None and opening["left"] == "<":
        return with_raw(calls, text[start:]), len(text)
    if beyond and _closes(beyond) and not _result.search(text, end, beyond.start()):
        raw = text[start : beyond.start()]
        return [ToolCall(name="", raw=raw, error="text after the JSON object")], beyond.end()
    return calls, end


def _by_name(text: str, start: int, toolbox: Toolbox) -> Body | None:
    """A tool's name alone, which is a call without arguments."""
    name = _bare_name.match(text, start)
    if not name or toolbox.named(name[1]) not in toolbox.names:
        return None
    return [call_of(name[1], {}, name[0], toolbox)], name.end()


def _unreadable(text: str, start: int, position: int, why: str) -> Body:
    """A call that cannot be read: up to the next mark, or of words to the end of their sentence."""
    following = _opening.search(text, position)
    while following and following["function"] is not None and following.start() <= start:
        following = _opening.search(text, following.start() + 1)
    words = None if following else _words.match(text, start)
    inner_end = following.start() if following else words.end() if words else len(text)
    end = following.end() if following and _closes(following) else inner_end
    return [ToolCall(name="", raw=text[start:inner_end], error=why)], max(end, position)


def _why(text: str, start: int) -> str:
    first = len(text) - len(text[start:].lstrip())
    return f"no JSON: {read_or_why(text, first)[2] or 'no call that can be read'}"


def _of_python(text: str, start: int, toolbox: Toolbox) -> Body:
    """What follows Llama's mark of code: calls, or else a program."""
    if (body := read_body(text, start, toolbox)) and not text[body[1] :].strip(" \n\t;"):
        return body
    argument = toolbox.text_arguments.get("python", "code")
    return [call_of("python", {argument: text[start:].strip()}, text[start:], toolbox)], len(text)
