"""Check: did the attempt's own tools compute the answer, or those of several others another one?

A tool that only repeats what it was given computes nothing: ``print(7)`` is no reason to believe in 7.
"""

from collections import Counter

from agent0.verification.panel import PanelCase, VoteAndReason, check

OTHERS = 2
"""Attempts whose tools must have computed another answer."""


@check("computation")
async def computation(case: PanelCase) -> list[VoteAndReason]:
    """Vote yes where an attempt's own tools computed its answer; no where they did not and those of others computed
    another."""
    pairs = list(zip(case.groups, case.computed, strict=True))
    counts = Counter(group for group, computed in pairs if computed)
    return [_vote(group, computed, counts) for group, computed in pairs]


def _vote(group: int | None, computed: bool, counts: "Counter[int | None]") -> VoteAndReason:
    if computed:
        return True, "its own tools computed it"
    others = max((count for other, count in counts.items() if other != group), default=0)
    if others >= OTHERS and not counts[group]:
        return False, f"the tools of {others} other attempts computed another answer"
    return None, "no tool computed it"
