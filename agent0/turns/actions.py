"""ReAct (arXiv 2210.03629): a turn in labelled sections, its actions as calls and its answer under a label.

The input of an action is an object, a fence, or text that goes on while it is no whole program: a line of code may look
like a label.
"""

import re
from collections.abc import Iterator

from agent0.turns.call_bodies import expression_calls
from agent0.turns.call_objects import call_of, calls_of, is_call, object_in
from agent0.turns.object_spellings import read_or_why
from agent0.turns.programs import is_python
from agent0.turns.toolbox import NAME, Toolbox
from events.values import ToolCall

MOST_CUTS = 8
"""Lines that look like a label at which a program is tried to end."""
ANSWERS = ("answer", "final answer")
_label = (
    r"^(?P<lead>[ \t*#>]{0,8})(?P<label>final answer|answer|action input|action|observation|thought)[* \t]{0,4}:"
    r"\**"
)
_mark = re.compile(
    rf"{_label}|^[ \t]{{0,8}}(?P<sign>`{{3,}}|~{{3,}})[ \t]{{0,8}}(?P<language>[\w+-]{{0,20}})[^\n`]*$",
    re.IGNORECASE | re.MULTILINE,
)
_fence_end = re.compile(r"^[ \t]*(?:```+|~~~+)[ \t]*$", re.MULTILINE)
_bracket = re.compile(r"([A-Za-z0-9_.-]{1,64})[ \t]*\[(.*)\]", re.DOTALL)
_TEXT = ("", "text", "txt", "markdown", "md", "latex", "plaintext")
"""Languages of fences in which labels are labels, not code."""


def acted_calls(text: str, toolbox: Toolbox) -> tuple[list[ToolCall], str]:
    """Read the actions of ``text``, and the text around them. What follows the first observation that a model wrote
    after an action is its own invention and is not read."""
    calls: list[ToolCall] = []
    prose: list[str] = []
    action = ""
    for label, body in sections(text):
        if label == "observation" and (calls or action):
            break
        if action:
            calls.append(_action(action, body if label == "action input" else "", toolbox))
            action = ""
            if label == "action input":
                continue
        if label == "action":
            objects = _action_object(body, toolbox)
            calls += objects
            action = "" if objects else body or "?"
        else:
            prose.append(f"{label}: {body}" if label else body)
    if action:
        calls.append(_action(action, "", toolbox))
    return calls, "\n".join(prose)


def sections(text: str) -> Iterator[tuple[str, str]]:
    """Cut ``text`` at its labels: (label, what follows up to the next one). Labels in code are none."""
    label, start, position = "", 0, 0
    is_closed = True
    while mark := _mark.search(text, position):
        position = mark.end()
        if mark["sign"]:
            closing = _fence_end.search(text, position) if is_closed and mark["language"].lower() not in _TEXT else None
            is_closed = is_closed and (closing is not None or mark["language"].lower() in _TEXT)
            position = closing.end() if closing else position
            continue
        yield label, text[start : mark.start()].strip()
        label, start = mark["label"].lower(), mark.end()
        position = _end_of_input(text, start) if label == "action input" else start
    yield label, text[start:].strip()


def _end_of_input(text: str, start: int) -> int:
    """Where the input of an action ends that begins at ``start``."""
    body = text[start:]
    if fence := re.match(r"\s*(?:`{3,}|~{3,})[^\n`]*\n", body):
        closing = _fence_end.search(text, start + fence.end())
        return closing.end() if closing else len(text)
    first = start + len(body) - len(body.lstrip())
    if text.startswith("{", first):
        value, end, problem = read_or_why(text, first)
        if not problem and isinstance(value, dict):
            return end
    labels = (mark.start() for mark in _mark.finditer(text, start) if mark["label"] and "#" not in mark["lead"])
    ends = [end for _, end in zip(range(MOST_CUTS), labels, strict=False) if text[start:end].strip()]
    whole = next((end for end in ends if is_python(text[start:end].strip())), None)
    if whole is None:
        whole = len(text) if not ends or is_python(body.strip()) else ends[0]
    return whole


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
        return body[3:-3].partition("\n")[2].strip()
    return body


def labelled_answer(prose: str) -> str | None:
    """Return the first line with text behind the last label of an answer."""
    answers = [body for label, body in sections(prose) if label in ANSWERS and body]
    return answers[-1].splitlines()[0].strip(" \t*`$") if answers else None
