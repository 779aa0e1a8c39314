"""The task splitter: the steps that a free question names become subgoals. It reads marks of lists only."""

import re
from collections.abc import Iterable, Iterator, Sequence

LONGEST = 4_000
"""Characters of a question that may be split."""
MOST_STEPS = 12
LONGEST_STEP = 500

_COUNTING = tuple(
    re.compile(pattern, re.I | re.M)
    for pattern in (
        r"(?:^|(?<=\s))step[ \t]{1,3}(?P<mark>\d{1,2})[.):](?=\s)",
        r"^[ \t]{0,8}(?P<open>\()?(?P<mark>\d{1,2})(?(open)\)|[.):])(?=\s)",
        r"(?:^|(?<=\s))(?P<open>\()?(?P<mark>\d{1,2})(?(open)\)|[.):])(?=\s)",
        r"^[ \t]{0,8}(?P<open>\()?(?P<mark>[a-l])(?(open)\)|[.)])(?=\s)",
        r"(?:^|(?<=\s))\(?(?P<mark>[a-l])\)(?=\s)",
    )
)
"""Marks that count up, the surest first: at the start of a line they are less likely to belong to the text."""
_BULLET = re.compile(r"^[ \t]{0,8}[-*\u2022](?=[ \t])", re.M)
_ORDER = re.compile(
    r"(?:^|(?<=[.:;!?]\s)|(?<=[.:;!?]\n))[ \t]{0,8}"
    r"(?P<word>first(?:ly)?|second(?:ly)?|third(?:ly)?|then|next|after that|afterwards|finally|lastly)\b,?(?=\s)",
    re.I | re.M,
)
_LINE_END = re.compile(r"\n(?![ \t]+\S)")

Span = tuple[int, int]
"""Where a mark begins and ends."""


def split(question: str) -> tuple[str, ...]:
    """Split ``question`` into its steps, in order, as sentences without their marks; empty where no two are found.

    Marks are tried in this order: ``Step 1:``, numbers (``1.``, ``2)``, ``(3)``) and letters (``a)``, ``(b)``), which
    must count up from the first; bullets at the start of lines; and words of order, from ``First`` on. Total, and
    bounded: a text over ``LONGEST``, more than ``MOST_STEPS`` steps or one over ``LONGEST_STEP`` are not split.
    """
    if len(question) > LONGEST:
        return ()
    for marks in _readings(question):
        steps = _between(question, marks)
        if 2 <= len(steps) <= MOST_STEPS and all(0 < len(step) <= LONGEST_STEP for step in steps):
            return steps
    return ()


def _readings(text: str) -> Iterator[list[Span]]:
    """Where the marks of each kind are."""
    for pattern in _COUNTING:
        yield _chain(pattern.finditer(text))
    yield [mark.span() for mark in _BULLET.finditer(text)]
    yield _ordered(text)


def _chain(marks: Iterable[re.Match[str]]) -> list[Span]:
    """Those marks that count up from 1 or a; a number out of order is a number of the text."""
    spans: list[Span] = []
    for mark in marks:
        if mark["mark"].lower() in (str(len(spans) + 1), "abcdefghijkl"[len(spans) : len(spans) + 1]):
            spans.append(mark.span())
    return spans


def _ordered(text: str) -> list[Span]:
    """From the first "First" on."""
    marks = list(_ORDER.finditer(text))
    start = next((n for n, mark in enumerate(marks) if mark["word"].lower().startswith("first")), len(marks))
    return [mark.span() for mark in marks[start:]]


def _between(text: str, marks: Sequence[Span]) -> tuple[str, ...]:
    """What stands between one mark and the next; the last step ends with its line, indented lines included."""
    ends = [begin for begin, _ in marks[1:]]
    if marks:
        line = _LINE_END.search(text, marks[-1][1])
        ends.append(line.start() if line else len(text))
    return tuple(_sentence(text[begin:end]) for (_, begin), end in zip(marks, ends, strict=True))


def _sentence(text: str) -> str:
    """On one line, without what parts it from the next."""
    plain = " ".join(text.split()).rstrip(".;, ")
    return plain[:1].upper() + plain[1:]
