"""Check: do enough attempts, and a large enough share of all, give the same answer?"""

from collections import Counter

from agent0.verification.panel import PanelCase, VoteAndReason, check


@check("agreement")
async def agreement(case: PanelCase) -> list[VoteAndReason]:
    """Vote yes on the answer of at least ``agreeing`` attempts and a share of ``agreement``, then no on all others."""
    rules, total = case.context.rules, len(case.groups)
    counts = Counter(group for group in case.groups if group is not None)
    leader, count = counts.most_common(1)[0] if counts else (None, 0)
    reason = f"{count} of {total} attempts agree"
    if count < rules.agreeing or count < rules.agreement * total:
        return [(None, reason)] * total
    return [(group == leader, reason) for group in case.groups]
