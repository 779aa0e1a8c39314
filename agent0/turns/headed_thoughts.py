"""Thoughts under a heading of their own: ``**Thinking:** …``, ``Thought: …``, ``## Thought process``.

Such a thought has no closing mark. It goes on to the heading of an answer, and where there is none to the end of its
paragraph, to the next heading or to a line that begins with an answer. A call that it does not only talk about ends it.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice

from agent0.chat_format import BOX
from agent0.turns.calls.mentions import is_mentioned

_name = (
    r"(?:(?:my|internal|inner) )?(?:thinking|thoughts?|monologue|scratchpad|chain of thought)(?: process)?(?: \d{1,2})?"
)
_start = r"(?:\A\s{0,40}|\n[ \t]{0,8}\n[ \t]{0,8})"
_head = re.compile(
    rf"{_start}(?:[*_]{{0,2}}{_name}[*_]{{0,2}}[ \t]?:[*_]{{0,2}}"
    rf"|(?:#{{1,6}}[ \t]|\*\*|__){_name}:?(?:\*\*|__)?[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_around = r"^[ \t]{0,8}(?:#{1,6}[ \t]+)?(?:\d\.[ \t]+)?(?:\*\*|__)?"
_answer = re.compile(
    rf"{_around}(?:(?:the |my )?final )?(?:answer|response|reply|solution|result|conclusion|output|final)"
    r"(?:(?:\*\*|__)?[ \t]?:|(?:\*\*|__)[ \t]*$|(?<=[a-z])[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_next = re.compile(
    rf"\n[ \t]*\n|{_around}(?:action(?: input)?|observation|tool(?: call)?|question)(?: \d{{1,2}})?(?:\*\*|__)?[ \t]?:"
    r"|^[ \t]{0,8}(?:(?:so|thus|hence|therefore),?[ \t])?(?:the|my) (?:final )?answer is\b"
    rf"|^[ \t$*]{{0,8}}{BOX}"
    r"|^#{1,6}[ \t]|^\*\*[A-Z][^*\n]{0,40}(?:\*\*[ \t]?:|:\*\*|\*\*[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_call = re.compile(
    r"(?<![>\]]\n)^[ \t]{0,8}(?:<[|\w:\uff5c]|\[[A-Z_]{4,}|`{3}|~{3}|\{[\s\"']|action(?: \d{1,2})?[* \t]{0,4}:)",
    re.IGNORECASE | re.MULTILINE,
)
_fence = re.compile(r"^[ \t]{0,8}(?:`{3}|~{3})", re.MULTILINE)


MOST_CALLS = 16
"""Calls of a thought that are looked at, whether they end it."""


def split_headed(text: str) -> tuple[str, list[str]]:
    """Return ``text`` without the thoughts that stand under headings, and these."""
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
        position = _end_of(text, head.end(), answers)
        thoughts.append(text[head.end() : position])
    return "\n".join([*visible, text[position:]]), thoughts


def _end_of(text: str, start: int, answers: Sequence[int]) -> int:
    """Where the thought ends that begins at ``start``; ``answers`` are the beginnings of the headings of answers."""
    first = start + len(text[start:]) - len(text[start:].lstrip())
    following = bisect_left(answers, first)
    ending = None if following < len(answers) else _next.search(text, first)
    end = answers[following] if following < len(answers) else ending.start() if ending else len(text)
    calls = (call.start() for call in islice(_call.finditer(text, first, end), MOST_CALLS))
    return next((call for call in calls if not is_mentioned(text, call, call)), end)
