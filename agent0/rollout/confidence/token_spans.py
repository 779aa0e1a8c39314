"""Which characters of a turn the student chose itself, and which its format requires.

Once a call has begun, its tags, braces, quotes and keys follow by themselves: their probability says nothing about the
answer. Only the canonical spelling of calls is known here; text of other dialects all counts as the student's own.
"""

import json
import re
from collections.abc import Iterator, Sequence

from agent0.chat_format import CLOSE, OPEN, boxes

Span = tuple[int, int]
"""Characters from the first up to, not including, the second."""

_string = re.compile(r'"((?:[^"\\]|\\.)*)("?)(\s*:)?', re.S)
_blank = re.compile(r"\s*")
_bare = re.compile(r"[A-Za-z0-9_.+-]+")


def own_spans(text: str) -> list[Span]:
    r"""The spans of ``text`` that no format requires, in order: prose, the values of calls (their tool's name is one),
    answers without the ``\boxed{}`` around them. Spans without a letter, digit or sign are left out."""
    spans: list[Span] = []
    at = 0
    while at < len(text):
        start = text.find(OPEN, at)
        spans += _prose(text, at, len(text) if start < 0 else start)
        if start < 0:
            break
        inside = start + len(OPEN)
        end = text.find(CLOSE, inside)
        stop = len(text) if end < 0 else end
        spans += _values(text, inside, stop)
        at = stop + len(CLOSE)
    return [span for span in spans if text[span[0] : span[1]].strip()]


def _prose(text: str, start: int, end: int) -> Iterator[Span]:
    """Without the wrapping of boxed answers."""
    at = start
    for wrapped in sorted(_wrapping(text, start, end)):
        yield at, wrapped[0]
        at = wrapped[1]
    yield at, end


def _wrapping(text: str, start: int, end: int) -> Iterator[Span]:
    """Each opening of a box, and the brace that closes it."""
    for box in boxes(text, start, end):
        yield box.start, box.inside
        if box.closed:
            yield box.end, box.end + 1


def _values(text: str, start: int, end: int) -> Iterator[Span]:
    """Contents of strings that are no keys, and bare values; a body that is no JSON is read the same way."""
    at = start
    while at < end:
        quote = text.find('"', at, end)
        for bare in _bare.finditer(text, at, end if quote < 0 else quote):
            yield bare.span()
        if quote < 0:
            return
        string = _string.match(text, quote, end)
        assert string is not None  # noqa: S101 - it begins with a quote
        if not string[3]:
            yield string.span(1)
        at = string.end()


def answer_span(text: str, answer: str) -> Span | None:
    """The span of ``answer`` in the turn that gave it; None where it does not occur.

    In its last box, else where it occurs last, as it is or as JSON spells it (an answer given by a call).
    """
    for box in reversed(boxes(text)):
        start = _blank.match(text, box.inside).end()  # type: ignore[union-attr]  # it matches anything
        if text.startswith(answer, start):
            return start, start + len(answer)
    for spelled in (answer, _escaped(answer)):
        if spelled and (start := text.rfind(spelled)) >= 0:
            return start, start + len(spelled)
    return None


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def within(spans: Sequence[Span], ends: Sequence[int]) -> list[int]:
    """Indices of the tokens whose text shares a character with one of ``spans``.

    A token's text goes from the end of the one before it to its own; a token without text is in none. What was forced
    on a turn belongs to its first token.
    """
    tokens, index, begin = [], 0, 0
    for number, end in enumerate(ends):
        while index < len(spans) and spans[index][1] <= begin:
            index += 1
        if begin < end and index < len(spans) and spans[index][0] < end:
            tokens.append(number)
        begin = max(begin, end)
    return tokens
