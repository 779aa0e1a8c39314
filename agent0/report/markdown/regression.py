"""The comment on a pull request about a change against its base: answer, interval, rule, cost, what changed.

Names, settings and items are other people's texts: they stand as code, so that none is a link, a mention or markup.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent0.errors import escaped
from agent0.report.markdown.rendering import points
from agent0.stats.regression_rule import TASKS, Regression, RegressionRule

MARK = "<!-- agent0 bench regression -->"
"""The first line, by which an earlier comment is replaced."""
SHOWN = 8
"""Settings and lost items that are named."""
LONGEST = 60


@dataclass(frozen=True)
class SideCost:
    """What a side took: ``new_items`` were asked now, the others were stored; all of them ``read`` and ``written``
    that many tokens; ``usd`` None: a price is not known. ``replayed``: rewards of a stored run, no model at all."""

    run: str
    new_items: int = 0
    read: int = 0
    written: int = 0
    usd: float | None = 0.0
    replayed: bool = False

    @property
    def phrase(self) -> str:
        """In one phrase."""
        if self.replayed:
            return "replayed from the log, no model was asked"
        money = "price not known" if self.usd is None else f"${self.usd:.4g}"
        count = f"{self.new_items:,} items asked" if self.new_items else "replayed, nothing asked"
        return f"{count}, {self.read:,} tokens read, {self.written:,} written, {money}"


def inert(text: object) -> str:
    """``text`` as code of one line that nothing in it can end, short enough for a table."""
    line = " ".join(escaped(str(text)).split()).replace("`", "'").replace("|", "¦")
    return f"`{line if len(line) <= LONGEST else line[: LONGEST - 1] + '…'}`" if line else "nothing"


def answer(regression: Regression) -> list[str]:
    """Sum the decision up in sentences without other people's texts: the first one is the answer."""
    difference, unit = regression.rule.interval(regression.difference), regression.unit
    level = f"{100 * (1 - 2 * regression.rule.false_blocks):.0f} %"
    summary = (
        f"{points(difference.mean)} points ({level} interval {points(difference.lower95)} to "
        f"{points(difference.upper95)}) on the same {difference.items} {unit}: base {100 * regression.base:.1f} %, "
        f"change {100 * regression.change:.1f} %; {difference.lost} lost, {difference.gained} gained, one-sided p "
        f"{regression.rule.one_sided(difference):.2g}."
    )
    verdict = "Blocked: a loss is proven." if regression.blocked else "Passes: no loss is proven."
    lines = [f"{verdict} {summary}", rule_words(regression)]
    if unit == TASKS:
        lines.append(
            "Counted is the share of a task's attempts whose reward lies on the side of their mean that the "
            "verdict says."
        )
    if not regression.blocked and regression.power < regression.rule.power:
        lines.append(
            f"{difference.items} {unit} are few for this rule: {regression.items_needed} would catch such a loss in "
            f"{regression.rule.power:.0%} of cases."
        )
    return lines


def rule_words(regression: Regression) -> str:
    """State the rule's error rates on the items that there were."""
    rule, shown = regression.rule, max(regression.discordance, regression.rule.discordance)
    return (
        f"Rule: an exact paired test, one-sided, p below {rule.false_blocks:g}. At most {rule.false_blocks:.0%} of "
        f"changes that lose nothing are blocked; a loss of {100 * rule.loss:g} points is caught in "
        f"{regression.power:.0%} of cases here, if {shown:.0%} of outcomes change (observed: "
        f"{regression.discordance:.0%})."
    )


def plan_words(rule: RegressionRule, items: int) -> str:
    """State, ahead of asking, what ``items`` pairs will show and how many the rule asks for."""
    needed = rule.items()
    needs = (
        f"{needed} items are needed to catch a loss of {100 * rule.loss:g} points in {rule.power:.0%} of cases with at "
        f"most {rule.false_blocks:.0%} false blocks, if {rule.discordance:.0%} of outcomes change."
    )
    return needs if items >= needed else f"{needs} There are {items}: it is caught in {rule.catches(items):.0%}."


def comment(
    regression: Regression, costs: Sequence[SideCost], changed: Mapping[str, tuple[str, str]], title: str = ""
) -> str:
    """Write the comment. ``costs`` are of base and change, ``changed`` settings with both values."""
    first, *rest = answer(regression)
    verdict, end, summary = first.partition(". ")
    head = f"### Agent0: {'blocked' if regression.blocked else 'passes'}{f' {inert(title)}' if title else ''}"
    rows = [f"| {name} | {cost.phrase} |" for name, cost in zip(("base", "change"), costs, strict=True)]
    settings = [f"- {inert(key)}: {inert(old)} → {inert(new)}" for key, (old, new) in [*changed.items()][:SHOWN]]
    more = [f"- {len(changed) - SHOWN} more"] if len(changed) > SHOWN else []
    what = [f"Settings that differ: {len(changed)}.", "", *settings, *more] if changed else ["Settings are the same."]
    lost = ", ".join(inert(name) for name in regression.lost[:SHOWN])
    lines = [
        MARK,
        head,
        "",
        f"**{verdict}{end.strip()}** {summary}",
        "",
        *rest,
        "",
        "| side | what it took |",
        "|---|---|",
        *rows,
        "",
        *what,
    ]
    if lost:
        rest_of = f" and {len(regression.lost) - SHOWN} more" if len(regression.lost) > SHOWN else ""
        lines += ["", f"Lost: {lost}{rest_of}."]
    return "\n".join(lines) + "\n"
