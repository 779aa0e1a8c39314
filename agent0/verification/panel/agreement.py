"""Do enough attempts, and a large enough share of all, say the same?"""

from collections import Counter

from agent0.verification.panel import Case, Said, check


@check("agreement")
async def agreement(case: Case) -> list[Said]:
    """Yes for what ``agreeing`` attempts and a share of ``agreement`` say, no for everything else then."""
    rules, total = case.evidence.rules, len(case.groups)
    counts = Counter(group for group in case.groups if group is not None)
    leader, count = counts.most_common(1)[0] if counts else (None, 0)
    told = f"{count} of {total} attempts agree"
    if count < rules.agreeing or count < rules.agreement * total:
        return [(None, told)] * total
    return [(group == leader, told) for group in case.groups]
