r"""Splits what a model wrote into its thoughts and its reply, in the marks of all families of reasoning models.

A mark is a word for thinking in brackets (``<think>``, ``[THINK]``, ``<|begin_of_thought|>``), one of a few fixed
pairs, a channel of gpt-oss, or a heading (``**Thinking:** …``, ``## Thought process``). Marks in code or between
quotation marks are mentioned, not meant. Time is linear.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from agent0.chat_format import BOX
from agent0.turns.calls.mentions import is_mentioned
from agent0.turns.marks import channel_messages
from agent0.turns.programs import is_python

_STRONG = ("think", "thinking", "thought", "thoughts", "reasoning", "scratchpad", "monologue")
"""A name with a word that ends so is one of thoughts: ``seed:think``, ``antThinking``, ``longcat_think``."""
_WEAK = frozenset(
    ("analysis", "reflection", "reflections", "reflect", "selfreflection", "rationale", "reason", "cot", "deliberation")
)
_WEAK |= {"deliberate", "contemplation", "contemplate", "introspection", "ponder", "pondering", "musings", "scratch"}
_WEAK |= {"planning", "draft", "drafting", "brainstorm", "brainstorming"}
"""Whole names of thoughts."""
_NOT_THOUGHTS = frozenset(("final", "answer", "response", "result", "solution", "conclusion", "output", "summary"))
_OPENS, _CLOSES = frozenset(("begin", "start", "open")), frozenset(("end", "stop", "close"))
_BRACKETS = ("<>", "◁▷", "⟨⟩", "【】", "«»", "[]", "&lt;&gt;")
_FIXED = (
    (r"<\|channel>[ \t]*(?!final\b)\w*", r"<channel\|>"),
    (r"<unused94>(?:thought\b)?", r"<unused95>"),
    (r"\[unused16\]", r"\[unused17\]"),
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),
    (r"(?:(?<=\n)|\A)Here(?: is|['’]s) my thought process:", r"(?<=\n)Here(?: is|['’]s) my response:"),  # noqa: RUF001
)
"""Pairs that the rule does not reach: Gemma, openPangu, Apertus, Granite."""
_fixed = "|".join(f"(?P<open{n}>{left})|(?P<close{n}>{right})" for n, (left, right) in enumerate(_FIXED))
_pipe, _gap = "[|\uff5c]?", r"[ \t]{0,4}"
_mark = re.compile(
    rf"{_fixed}|(?P<left>[<◁⟨【«\[]|&lt;){_pipe}(?:(?P<slash>/){_pipe}{_gap})?(?P<name>[A-Za-z][\w.:\u2581-]{{1,40}})"
    rf"(?:[ \t][^<>\n\[\]]{{0,80}}?)?{_gap}(?P<empty>/?){_pipe}(?P<right>[>▷⟩】»\]]|&gt;)"
)
_string = r"(?<![\w\\])[rbfRBF]{0,2}\"(?:[^\"\\\n]|\\.)*+\"(?!\w)|(?<![\w\\])[rbfRBF]{0,2}'(?:[^'\\\n]|\\.)*+'(?!\w)"
_token = re.compile(
    rf"(?P<triple>\"{{3}}|'{{3}})|^[ \t>]{{0,8}}(?P<fence>`{{3}}|~{{3}})|`[^`\n]{{1,200}}`|{_string}|{_mark.pattern}",
    re.MULTILINE,
)
_name_part = re.compile(r"(?:begin|start|end)(?=of[a-z])|[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_folded = re.compile(
    r"(?is)<details(?:[^<>]{0,200}\btype=[\"']reasoning[\"'][^<>]{0,200}>(?:\s*<summary>[^<>]{0,200}</summary>)?"
    r"|[^<>]{0,200}>\s*<summary>[^<>\w]{0,20}(?:thought|thinking|reasoning)\b[^<>]{0,200}</summary>)(.*?)(?:(</)details>|\Z)"
)
"""A thought that pages fold away (Open WebUI)."""

_name = (
    r"(?:(?:my|internal|inner) )?(?:thinking|thoughts?|monologue|scratchpad|chain of thought)(?: process)?(?: \d{1,2})?"
)
_start = r"(?:\A\s{0,40}|\n[ \t]{0,8}\n[ \t]{0,8})"
_head = re.compile(
    rf"(?im){_start}(?:[*_]{{0,2}}{_name}[*_]{{0,2}}[ \t]?:[*_]{{0,2}}|(?:#{{1,6}}[ \t]|\*\*|__){_name}:?(?:\*\*"
    rf"|__)?[ \t]*$)"
)
_around = r"^[ \t]{0,8}(?:#{1,6}[ \t]+)?(?:\d\.[ \t]+)?(?:\*\*|__)?"
_answer = re.compile(
    rf"(?im){_around}(?:(?:the |my )?final )?(?:answer|response|reply|solution|result|conclusion|output|final)"
    r"(?:(?:\*\*|__)?[ \t]?:|(?:\*\*|__)[ \t]*$|(?<=[a-z])[ \t]*$)"
)
_next = re.compile(
    rf"\n[ \t]*\n|{_around}(?:action(?: input)?|observation|tool(?: call)?|question)(?: \d{{1,2}})?(?:\*\*|__)?[ \t]?:"
    r"|^[ \t]{0,8}(?:(?:so|thus|hence|therefore),?[ \t])?(?:the|my) (?:final )?answer is\b"
    rf"|^[ \t$*]{{0,8}}{BOX}"
    r"|^#{1,6}[ \t]|^\*\*[A-Z][^*\n]{0,40}(?:\*\*[ \t]?:|:\*\*|\*\*[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_call = re.compile(
    r"(?im)(?<![>\]]\n)^[ \t]{0,8}(?:<[|\w:\uff5c]|\[[A-Z_]{4,}|`{3}|~{3}|\{[\s\"']|action(?: \d{1,2})?[* \t]{0,4}:)"
)
_fence = re.compile(r"^[ \t]{0,8}(?:`{3}|~{3})", re.MULTILINE)
MOST_CALLS = 16
"""Calls of a thought under a heading that are looked at, whether they end it."""


class Reply(NamedTuple):
    """A text in two: ``visible`` without thoughts and their marks, ``thought`` without marks. ``unclosed``: the text
    ends within a thought."""

    visible: str
    thought: str = ""
    unclosed: bool = False


class _Mark(NamedTuple):
    start: int
    end: int
    name: str
    opens: bool


class _Span(NamedTuple):
    """A thought from ``start`` to ``end``; without its marks from ``inner`` to ``inner_end``."""

    start: int
    inner: int
    inner_end: int
    end: int
    paired: bool


def split_thoughts(text: str, *, opened: bool = False) -> Reply:
    """Split ``text`` at its marks of thoughts; ``opened``: the prompt ended with an opening mark.

    Nothing behind an opening mark that is never closed is visible. What stands before a closing mark alone is a
    thought, opened in the prompt.
    """
    text = _folded.sub(lambda folded: f"<think>{folded[1]}{'</think>' if folded[2] else ''}", text)
    text, thought, cut = _without_channels(text)
    marks = _marks(text, opened)
    spans = _spans([_Mark(0, 0, "", opens=True), *marks] if opened else marks, len(text))
    if not opened and not all(span.paired for span in spans) and _is_program(text, marks):
        return Reply(text, thought, cut)
    visible, position = [], 0
    for span in spans:
        visible.append(text[position : span.start])
        position = span.end
    inner = [text[span.inner : span.inner_end] for span in spans]
    unclosed = bool(spans) and spans[-1].end == spans[-1].inner_end
    rest, headed = _split_headed("".join([*visible, text[position:]]))
    thoughts = [*([thought] if thought else []), *inner, *headed]
    return Reply(rest, "\n".join(thoughts), unclosed or cut or bool(headed and not rest.strip()))


def _without_channels(text: str) -> Reply:
    """``text`` without the thoughts and marks of gpt-oss; a message to a tool stays as it is."""
    messages = channel_messages(text)
    if not messages:
        thought, mark, answer = text.rpartition("assistantfinal")  # its marks, as a server leaves them out
        is_stripped = mark and thought.lstrip().startswith("analysis")
        return Reply(answer, thought.lstrip().removeprefix("analysis")) if is_stripped else Reply(text)
    visible: list[str] = []
    thoughts: list[str] = []
    position = 0
    for message in messages:
        visible.append(text[position : message.start])
        position = message.end
        if message.recipient:
            visible.append(text[message.start : message.end])
        else:
            (thoughts if message.channel == "analysis" else visible).append(message.content)
    cut = messages[-1].channel == "analysis" and not messages[-1].recipient and not messages[-1].closed
    return Reply("".join([*visible, text[position:]]), "\n".join(thoughts), cut)


def _marks(text: str, opened: bool) -> list[_Mark]:
    """The marks in ``text`` that are meant. Within a thought only quotation marks on both sides make a mention."""
    marks: list[_Mark] = []
    depth, position = int(opened), 0
    last: dict[str, int] = {}
    while token := (_mark if depth else _token).search(text, position):
        mark = _meant(token, text, last)
        position = token.end()
        if mark:
            marks.append(mark)
            depth = depth + 1 if mark.opens else max(depth - 1, 0)
        elif not depth:
            sign = token["fence"] or token["triple"]
            position = _end_of_code(text, position, sign, last) if sign else position
    return marks


def _end_of_code(text: str, position: int, sign: str, last: dict[str, int]) -> int:
    """Where the code ends that ``sign`` opens before ``position``; ``position`` where nothing ends it."""
    if last.get(sign, len(text)) < position:
        return position
    pattern = sign if sign[0] in "\"'" else rf"^[ \t>]{{0,8}}{sign}"
    end = re.compile(pattern, re.MULTILINE).search(text, position)
    last[sign] = last.get(sign, len(text)) if end else -1
    return end.end() if end else position


def _meant(token: re.Match[str], text: str, last: dict[str, int]) -> _Mark | None:
    """The mark that ``token`` is, None where it is none or only mentioned."""
    start, end = token.span()
    kind = str(token.lastgroup or "")
    if kind.startswith(("open", "close")):
        return _Mark(start, end, kind[-1], kind.startswith("open"))
    if not token["name"] or token["empty"] or token["left"] + token["right"] not in _BRACKETS:
        return None
    parts = [part.lower() for part in _name_part.findall(token["name"].rpartition(":")[2])]
    name_parts = [part for part in parts if part not in _OPENS | _CLOSES]
    closes = bool(token["slash"]) or not _CLOSES.isdisjoint(parts)
    if not _names_thoughts(name_parts) or _is_mentioned(token, text, closes):
        return None
    if token["left"] == "[" and token["name"] != "THINK" and not _has_partner(token, text, last):
        return None
    return _Mark(start, end, "".join(name_parts), not closes)


def _names_thoughts(parts: Sequence[str]) -> bool:
    if not _NOT_THOUGHTS.isdisjoint(parts):
        return False
    name = "".join(parts)
    return name in _WEAK or any(part.endswith(_STRONG) for part in (*parts, name))


def _is_mentioned(token: re.Match[str], text: str, closes: bool) -> bool:
    """Whether a mark is a quoted one or a type of a program: ``"<think>"``, ``List<Thought>``."""
    before, after = text[token.start() - 1 : token.start()], text[token.end() : token.end() + 1]
    if before and before in "\"'`" and after and after in "\"'`":
        return True
    return not closes and before.isalnum() and token["left"] == "<" and token["name"].istitle()


def _has_partner(token: re.Match[str], text: str, last: dict[str, int]) -> bool:
    """Whether ``[name]`` is closed, or ``[/name]`` opened: single words in square brackets are no marks."""
    partner = f"[{token['name']}]" if token["slash"] else f"[/{token['name']}]"
    if partner not in last:
        last[partner] = text.find(partner) if token["slash"] else text.rfind(partner)
    position = last[partner]
    return 0 <= position < token.start() if token["slash"] else position > token.start()


def _spans(marks: Sequence[_Mark], length: int) -> list[_Span]:
    """The outermost thoughts. An opening mark in a thought that has no closing one of its own is a mention."""
    partners = _partners(marks)
    spans: list[_Span] = []
    position = 0
    while position < len(marks):
        mark = marks[position]
        following = (other for other in range(position, len(marks)) if not marks[other].opens)
        closing = (partners.get(position) or next(following, None)) if mark.opens else position
        if closing is None:
            return [*spans, _Span(mark.start, mark.end, length, length, paired=False)]
        if mark.opens:
            spans.append(_Span(mark.start, mark.end, marks[closing].start, marks[closing].end, paired=True))
        else:
            spans = [_Span(0, 0, mark.start, mark.end, paired=False)]
        position = closing + 1
    return spans


def _partners(marks: Sequence[_Mark]) -> dict[int, int]:
    """Positions of opening marks with those of their closing ones, which close the last of their name, else any."""
    partners: dict[int, int] = {}
    stack: list[int] = []
    names: Counter[str] = Counter()
    for position, mark in enumerate(marks):
        if mark.opens:
            stack.append(position)
            names[mark.name] += 1
            continue
        is_own = names[mark.name] > 0
        while stack:
            opening = stack.pop()
            names[marks[opening].name] -= 1
            if not is_own or marks[opening].name == mark.name:
                partners[opening] = position
                break
    return partners


def _is_program(text: str, marks: Sequence[_Mark]) -> bool:
    """Whether all of ``text`` is a program of Python and all ``marks`` stand in its strings and comments."""
    pieces, position = [], 0
    for mark in marks:
        pieces += [text[position : mark.start], "?"]  # which no program has outside of them
        position = mark.end
    return is_python("".join([*pieces, text[position:]]))


def _split_headed(text: str) -> tuple[str, list[str]]:
    """``text`` without the thoughts that stand under headings, and these. Such a thought has no closing mark: it goes
    on to the heading of an answer, and where there is none to the end of its paragraph, to the next heading or to a
    line that begins with an answer. A call that it does not only talk about ends it."""
    heads = [*_head.finditer(text)]
    if not heads:
        return text, []
    answers, fences = ([match.start() for match in pattern.finditer(text)] for pattern in (_answer, _fence))
    visible: list[str] = []
    thoughts: list[str] = []
    position = 0
    for head in heads:
        is_in_program = bisect_left(fences, head.start()) % 2
        if is_in_program or head.start() < position:
            continue
        visible.append(text[position : head.start()])
        position = _end_of_headed(text, head.end(), answers)
        thoughts.append(text[head.end() : position])
    return "\n".join([*visible, text[position:]]), thoughts


def _end_of_headed(text: str, start: int, answers: Sequence[int]) -> int:
    """Where the thought ends that begins at ``start``; ``answers`` are the beginnings of the headings of answers."""
    first = start + len(text[start:]) - len(text[start:].lstrip())
    following = bisect_left(answers, first)
    ending = None if following < len(answers) else _next.search(text, first)
    end = answers[following] if following < len(answers) else ending.start() if ending else len(text)
    calls = (call.start() for call in islice(_call.finditer(text, first, end), MOST_CALLS))
    return next((call for call in calls if not is_mentioned(text, call, call)), end)
