"""Shorter prompts: what tools printed, and nothing else of a conversation, without what an answer hardly needs.

What becomes of a turn follows from it and from the turns before it. So what was sent once stays the beginning of what
is sent next, and a vendor's cache of prompts goes on to hold.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agent0.events.values import Turn

REPEATED = 80
"""Characters from which an output that was there before is only named."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"]+', re.DOTALL)
"""A string, or anything but white space: JSON apart from what may stand between its tokens."""

Rank = Callable[[Sequence[str], str], Sequence[float]]
"""How well each text fits to a question; higher is better."""
Lookup = Callable[[str, str], str]
"""The summary that there is of a text, for what it answers; empty: none. The same again for the same two."""


@dataclass(frozen=True)
class Compression:
    """What is done: a ``summary`` replaces an output of more than ``longest`` characters, where there is one. Others
    keep their lines that fit best to what was asked, by ``rank``; None: their beginning and end."""

    longest: int
    rank: Rank | None = None
    summary: Lookup | None = None

    def __call__(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        """Return ``turns`` compressed, one for one."""
        out = list(turns)
        for index, small, fits in self._small(turns):
            shorter = small if fits else self._cut(small, _question_of(turns[:index]))
            if is_shorter(shorter, turns[index].content):
                out[index] = Turn(role="tool", name=turns[index].name, content=shorter)
        return tuple(out)

    def long(self, turns: Sequence[Turn]) -> list[tuple[str, str]]:
        """Return the outputs among ``turns`` that are too long, without blanks, each with what it answers."""
        return [(small, _question_of(turns[:index])) for index, small, fits in self._small(turns) if not fits]

    def _small(self, turns: Sequence[Turn]) -> Iterator[tuple[int, str, bool]]:
        """Each output's place, its text without blanks or the name of the same one above, whether that is short
        enough."""
        first_numbers: dict[str, int] = {}
        outputs = [index for index, turn in enumerate(turns) if turn.role == "tool"]
        for number, index in enumerate(outputs, 1):
            text = turns[index].content
            before = first_numbers.setdefault(text, number)
            if before < number and len(text) >= REPEATED:
                yield index, f"[the same as output {before} above]", True
            else:
                small = without_blanks(text)
                yield index, small, len(small) <= self.longest

    def _cut(self, text: str, question: str) -> str:
        """What stands for ``text``, which is too long and answers ``question``."""
        if self.summary and (summary := self.summary(text, question)):
            return summary
        return ends(text, self.longest) if self.rank is None else lines_for(text, question, self.longest, self.rank)


def is_shorter(new: str, old: str) -> bool:
    """Whether ``new`` has fewer characters than ``old`` and no more bytes, by which budgets are reserved."""
    return len(new) < len(old) and _sent_bytes(new) <= _sent_bytes(old)


def _sent_bytes(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode())


def without_blanks(text: str) -> str:
    """Return ``text`` without the white space between tokens where it is JSON, and without trailing blanks of lines."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            json.loads(text)
        except ValueError:
            pass
        else:
            return "".join(_TOKEN.findall(text))
    return re.sub(r"[ \t]+(?=\n|\Z)", "", text)


def ends(text: str, longest: int) -> str:
    """Return the first three quarters of ``longest`` characters of ``text`` and the last, with a note between."""
    tail = longest // 4
    return f"{text[: longest - tail]}\n[{len(text) - longest} characters left out]\n{text[len(text) - tail :]}"


def lines_for(text: str, question: str, longest: int, rank: Rank) -> str:
    """Return the first and the last line of ``text`` and those that fit best to ``question``, in their order, up to
    ``longest`` characters; a note stands for each gap. Where lines do not help, its beginning and end."""
    lines = text.split("\n")
    order = sorted(range(1, len(lines) - 1), key=lambda n: -ranks[n]) if (ranks := rank(lines, question)) else []
    kept, left = {0, len(lines) - 1}, longest - len(lines[0]) - len(lines[-1])
    for index in order:
        if len(lines[index]) < left:
            kept.add(index)
            left -= len(lines[index]) + 1
    if left < 0 or len(kept) < 3:
        return ends(text, longest)
    out, gap = list[str](), 0
    for index, line in enumerate(lines):
        if index in kept:
            out += [f"[{gap} lines left out]"] if gap else []
            out.append(line)
        gap = 0 if index in kept else gap + 1
    return "\n".join(out)


def _question_of(before: Sequence[Turn]) -> str:
    """What an output answers: the question that the conversation began with, and the turn that called for it."""
    first = next((turn.content for turn in before if turn.role == "user"), "")
    last = next((turn.content for turn in reversed(before) if turn.role == "assistant"), "")
    return f"{first}\n{last}"
