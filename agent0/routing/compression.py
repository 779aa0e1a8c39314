"""Shorter prompts: what tools printed, and nothing else of a conversation, without what an answer hardly needs.

What becomes of a turn follows from it and from the turns before it. So what was sent once stays the beginning of what
is sent next, and a vendor's cache of prompts goes on to hold.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from events.values import Turn

REPEATED = 80
"""Characters from which an output that was there before is only named."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"]+', re.DOTALL)
"""A string, or anything but white space: JSON apart from what may stand between its tokens."""

Rank = Callable[[Sequence[str], str], Sequence[float]]
"""How well each text fits to a question; higher is better."""


@dataclass(frozen=True)
class Compression:
    """What is done: outputs of more than ``longest`` characters keep their lines that fit best to what was asked, by
    ``rank``; None: their beginning and end."""

    longest: int
    rank: Rank | None = None

    def __call__(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        """Return ``turns`` compressed, one for one."""
        seen: dict[str, int] = {}
        outputs = [place for place, turn in enumerate(turns) if turn.role == "tool"]
        out = list(turns)
        for number, place in enumerate(outputs, 1):
            turn = turns[place]
            before = seen.setdefault(turn.content, number)
            shorter = self._shorter(turn.content, before if before < number else 0, turns[:place])
            if len(shorter) < len(turn.content):
                out[place] = Turn(role="tool", name=turn.name, content=shorter)
        return tuple(out)

    def _shorter(self, text: str, before: int, turns: Sequence[Turn]) -> str:
        """``text``, which is output ``before`` once more, 0: a new one, behind ``turns``."""
        if before and len(text) >= REPEATED:
            return f"[the same as output {before} above]"
        small = without_blanks(text)
        if len(small) <= self.longest:
            return small
        rank = self.rank
        return ends(small, self.longest) if rank is None else lines_for(small, _asked(turns), self.longest, rank)


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


def lines_for(text: str, asked: str, longest: int, rank: Rank) -> str:
    """Return the first and the last line of ``text`` and those that fit best to ``asked``, in their order, up to
    ``longest`` characters; a note stands for each gap. Where lines do not help, its beginning and end."""
    lines = text.split("\n")
    order = sorted(range(1, len(lines) - 1), key=lambda n: -ranks[n]) if (ranks := rank(lines, asked)) else []
    kept, left = {0, len(lines) - 1}, longest - len(lines[0]) - len(lines[-1])
    for place in order:
        if len(lines[place]) < left:
            kept.add(place)
            left -= len(lines[place]) + 1
    if left < 0 or len(kept) < 3:
        return ends(text, longest)
    out, gap = list[str](), 0
    for place, line in enumerate(lines):
        if place in kept:
            out += [f"[{gap} lines left out]"] if gap else []
            out.append(line)
        gap = 0 if place in kept else gap + 1
    return "\n".join(out)


def _asked(before: Sequence[Turn]) -> str:
    """What an output answers: the question that the conversation began with, and the turn that called for it."""
    first = next((turn.content for turn in before if turn.role == "user"), "")
    last = next((turn.content for turn in reversed(before) if turn.role == "assistant"), "")
    return f"{first}\n{last}"
