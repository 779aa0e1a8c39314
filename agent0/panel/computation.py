"""Was the answer computed by the attempt's own tools, or another one by those of several others?

A tool that only repeats what it was given computes nothing: ``print(7)`` is no reason to believe in 7.
"""

import re
from collections import Counter
from collections.abc import Sequence

from agent0.panel import Case, Said, check
from events.values import Turn

OTHERS = 2
"""Attempts whose tools must have computed another answer."""


@check("computation")
async def computation(case: Case) -> list[Said]:
    """Yes where its own tools computed it; no where they did not, while those of others computed another."""
    counts = Counter(group for group, made in zip(case.groups, case.computed, strict=True) if made)
    return [_said(group, made, counts) for group, made in zip(case.groups, case.computed, strict=True)]


def _said(group: int | None, made: bool, counts: "Counter[int | None]") -> Said:
    if made:
        return True, "its own tools computed it"
    others = max((count for other, count in counts.items() if other != group), default=0)
    if others >= OTHERS and not counts[group]:
        return False, f"the tools of {others} other attempts computed another answer"
    return None, "no tool computed it"


def repeated(answer: str, transcript: Sequence[Turn]) -> bool:
    """Whether the student wrote ``answer`` before any tool printed it; true, too, where that cannot be told."""
    spoken = re.compile(rf"(?<![\w.]){re.escape(answer.strip())}(?![\w.]*\w)")
    last = max((n for n, turn in enumerate(transcript) if turn.role == "user"), default=-1)
    for turn in transcript[last + 1 :]:
        if spoken.search(turn.content):
            return turn.role != "tool"
    return True
