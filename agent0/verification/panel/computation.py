"""Check: did the attempt's own tools compute the answer, or those of several others another one?

A tool that only repeats what it was given computes nothing: ``print(7)`` is no reason to believe in 7.
"""

from collections import Counter

from agent0.verification.panel import Case, VoteAndReason, check

OTHERS = 2
"""Attempts whose tools must have computed another answer."""


@check("computation")
async def computation(case: Case) -> list[VoteAndReason]:
    """Vote yes where an attempt's own tools computed its answer; no where they did not and those of others computed
    another.

    No vote where it is unknown what tools did; nor a no on an answer that such an attempt gave.
    """
    pairs = list(zip(case.groups, case.computed, strict=True))
    counts = Counter(group for group, made in pairs if made)
    unknown = {group for group, made in pairs if made is None}
    return [_said(group, made, counts, unknown) for group, made in pairs]


def _said(
    group: int | None, made: bool | None, counts: "Counter[int | None]", unknown: set[int | None]
) -> VoteAndReason:
    if made:
        return True, "its own tools computed it"
    if made is None:
        return None, "its transcript was not at hand"
    others = max((count for other, count in counts.items() if other != group), default=0)
    if others >= OTHERS and not counts[group] and group not in unknown:
        return False, f"the tools of {others} other attempts computed another answer"
    return None, "no tool computed it"
