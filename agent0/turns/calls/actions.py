"""ReAct (arXiv 2210.03629): a turn in labelled sections, its actions as calls and its answer under a label.

The input of an action is an object, a fence, or text that goes on while it is no whole program: a line of code may look
like a label.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from agent0.events.values import ToolCall
from agent0.turns.calls.bodies import CallSpan, expression_calls
from agent0.turns.calls.objects import call_of, calls_of, is_call, object_in
from agent0.turns.calls.spellings import read_or_why
from agent0.turns.calls.toolbox import NAME, Toolbox
from agent0.turns.programs import is_python

MOST_CUTS = 8
"""Lines that look like a label at which a program is tried to end."""
ANSWERS = ("answer", "final answer")
_label = (
    r"^(?P<lead>[ \t*#>]{0,8})(?P<label>final answer|answer|action input|action|observation|thought)"
    r"(?: \d{1,2})?[* \t]{0,4}:"
    r"\**"
)
_mark = re.compile(
    rf"{_label}|^[ \t]{{0,8}}(?P<sign>`{{3,}}|~{{3,}})[ \t]{{0,8}}(?P<language>[\w+-]{{0,64}})[^\n`]*$",
    re.IGNORECASE | re.MULTILINE,
)
_fence_open = re.compile(r"\s*(?:`{3,}|~{3,})[^\n`]*(?:\n|(?=\S))")
_fence_sign = re.compile(r"```+|~~~+")
_phrase = r"(?: [\w'’*()$\\+/=.,;:-]+)"  # noqa: RUF001
_sentence = re.compile(
    rf"^[ \t]*(?:-{{3,}}|[*_(>• \t-]{{0,6}}(?:[A-Z][\w'’]*[,:]?[*_]{{0,2}}{_phrase}{{2,}}[.:!?…)*_]{{0,4}}"  # noqa: RUF001
    rf"|[a-z]+{_phrase}{{3,}}(?<=[.!…)])[.!…)]*))[ \t]*$",
    re.MULTILINE,
)
"""A line that speaks of what a program is for."""
_no_action = re.compile(r"(?i)\W*(?:none|n/a|no (?:action|tool)|nothing)(?: (?:is )?(?:needed|required|necessary))?\W*")
_pause = re.compile(r"\n\s*PAUSE\s*\Z")
_fragment = re.compile(r"\"{3}|'{3}|[({\[,:\\]\Z")
_line_end = re.compile(r"[ \t]*$", re.MULTILINE)
_fence_end = re.compile(r"^[ \t]*(?:```+|~~~+)[ \t]*$", re.MULTILINE)
_bracket = re.compile(r"([A-Za-z0-9_.-]{1,64})[ \t]*\[(.*)\]", re.DOTALL)
_around = re.compile(r"\A[ \t*`$]+|[*`$]+\.\Z|[ \t*`$]+\Z")
_TEXT = ("", "text", "txt", "markdown", "md", "latex", "plaintext")
"""Languages of fences in which labels are labels, not code."""


class Section(NamedTuple):
    """The ``body`` behind a label, which begins at ``head``, up to ``end``."""

    label: str
    body: str
    head: int
    end: int


def action_spans(text: str, toolbox: Toolbox) -> list[CallSpan]:
    """Find the actions of ``text``. What follows the first observation that a model wrote after an action is its own
    invention and is not read."""
    spans: list[CallSpan] = []
    action: Section | None = None
    for section in sections(text):
        if section.label == "observation" and (spans or action):
            spans += [_span(action, toolbox)] if action else []
            return [*spans, CallSpan(section.head, len(text), [])]
        if action:
            is_input = section.label == "action input"
            spans.append(_span(action, toolbox, section if is_input else None))
            action = None
            if is_input:
                continue
        if section.label == "action" and not _no_action.fullmatch(section.body):
            action = section
    return [*spans, _span(action, toolbox)] if action else spans


def _span(action: Section, toolbox: Toolbox, input_section: Section | None = None) -> CallSpan:
    """The call of ``action``, an object as LangChain's agents write it, or a name with the input of the section
    ``input_section``."""
    objects = [] if input_section else _action_object(action.body, toolbox)
    end = input_section.end if input_section else action.end
    return CallSpan(
        action.head, end, objects or [_action(action.body or "?", input_section.body if input_section else "", toolbox)]
    )


def sections(text: str) -> Iterator[Section]:
    """Cut ``text`` at its labels, and where the input of an action ends. Labels in code are none."""
    label, head, start, position = "", 0, 0, 0
    is_closed = True
    while mark := _mark.search(text, position):
        position = mark.end()
        if mark["sign"]:
            closing = _fence_end.search(text, position) if is_closed and mark["language"].lower() not in _TEXT else None
            is_closed = is_closed and (closing is not None or mark["language"].lower() in _TEXT)
            position = closing.end() if closing else position
            continue
        yield Section(label, text[start : mark.start()].strip(), head, mark.start())
        label, head, start = mark["label"].lower(), mark.start(), mark.end()
        if label == "action input":
            position = _end_of_input(text, start)
            yield Section(label, text[start:position].strip(), head, position)
            label, head, start = "", position, position
    yield Section(label, text[start:].strip(), head, len(text))


def _end_of_input(text: str, start: int) -> int:
    """Where the input of an action ends that begins at ``start``."""
    body = text[start:]
    if fence := _fence_open.match(body):
        closing = (_fence_end if "\n" in fence[0] else _fence_sign).search(text, start + fence.end())
        return closing.end() if closing else len(text)
    first = start + len(body) - len(body.lstrip())
    if text.startswith("{", first):
        value, end, problem = read_or_why(text, first)
        if not problem and isinstance(value, dict) and _line_end.match(text, end):
            return end
    labels = (mark.start() for mark in _mark.finditer(text, start) if mark["label"] and "#" not in mark["lead"])
    ends = [end for _, end in zip(range(MOST_CUTS), labels, strict=False) if text[start:end].strip()]
    whole = next((end for end in ends if is_python(text[start:end].strip())), None)
    if whole is None:
        whole = len(text) if not ends or is_python(body.strip()) else ends[0]
    return _before_prose(text, first, whole)


def _before_prose(text: str, start: int, end: int) -> int:
    """Where the input from ``start`` to ``end`` ends before the first sentence on a line of its own, where what stands
    before it is one line or a program; ``end`` where all of it is a program."""
    if pause := _pause.search(text, start, end):
        end = pause.start()
    if is_python(text[start:end].strip()):
        return end
    for _, line in zip(range(MOST_CUTS), _sentence.finditer(text, start, end), strict=False):
        before = text[start : line.start()].strip()
        if before and (is_python(before) or ("\n" not in before and not _fragment.search(before))):
            return line.start()
    return end


def _action(head: str, body: str, toolbox: Toolbox) -> ToolCall:
    """The action ``head`` with the input ``body``, which may stand in brackets behind its name."""
    raw = f"{head}\n{body}" if body else head
    if not body and (bracketed := _bracket.fullmatch(head)):
        head, body = bracketed[1], bracketed[2]
    if not body and (written := expression_calls(head, 0, toolbox)) and written[1] == len(head):
        return written[0][0]
    name = toolbox.named(head.strip(" \t`*"))
    if not NAME.fullmatch(name):
        return ToolCall(name="", raw=raw, error="no valid tool name")
    body = _unfenced(body.strip())
    arguments = object_in(body)
    if arguments is None:
        arguments = {toolbox.text_arguments.get(name, "input"): body} if body else {}
    return call_of(name, arguments, raw, toolbox)


def _action_object(body: str, toolbox: Toolbox) -> list[ToolCall]:
    """The calls of an action that is an object, as LangChain's agents write it; none where it is a name."""
    inner = _unfenced(body)
    if not inner.startswith(("{", "[")):
        return []
    value, end, problem = read_or_why(inner, unclosed=True)
    is_whole = not problem and not inner[end:].strip("` \n")
    return calls_of(value, body, toolbox) if is_whole and is_call(value, toolbox) else []


def _unfenced(body: str) -> str:
    """``body`` without a code fence around it."""
    if len(body) > 6 and body.startswith("```") and body.endswith("```"):
        head, line_break, rest = body[3:-3].partition("\n")
        return (rest if line_break else head).strip()
    return body


def labelled_answer(prose: str) -> str | None:
    """Return the first line with text behind the last label of an answer."""
    answers = [section.body for section in sections(prose) if section.label in ANSWERS and section.body]
    return _around.sub("", answers[-1].splitlines()[0]) if answers else None
