"""What the page of a study on a ladder says first: how high its students stand, beside those of other variants."""

from collections.abc import Sequence

from agent0.experiments.ladder_rows import LadderRow, LeadRow
from agent0.experiments.study_results import StudyResults
from agent0.state.run_state import BASE
from agent0.stats.across_seeds import mean_of
from agent0.stats.paired_tests import LEVEL

LEVELS = "levels"
"""Key of the chart of accuracy by level."""


def answer(results: StudyResults) -> list[str]:
    """The answer in two lines: T of the first variant, and its sum S beside those of its base and of every other
    variant."""
    first = next(iter(results["about"]))
    rows = _complete(results, first)
    if not rows:
        return ["Nothing was measured: no run of the first variant is finished."]
    by_seed = ", ".join(f"{row['height_untrained']} to {row['height']}" for row in rows)
    leads = "; ".join(
        f"{'its base' if lead['arm'] == BASE else lead['arm']} {_lead(lead)}" for lead in results["ladder_leads"]
    )
    return [
        f"**Highest level of which half is solved (T), greedy, on fresh tasks:** {first} climbs from {by_seed} "
        f"(seeds {', '.join(str(row['seed']) for row in rows)}).",
        f"**Accuracies added up over levels (S), less those of {first}:** {leads}.",
    ]


def table(results: StudyResults) -> list[dict[str, str]]:
    """One row for each variant: T and S of its students by seed."""
    first = _complete(results, next(iter(results["about"])))
    base = _row(BASE, [row["height_untrained"] for row in first], [row["added_untrained"] for row in first])
    return [base] + [
        _row(arm, [row["height"] for row in rows], [row["added"] for row in rows])
        for arm in results["about"]
        if (rows := _complete(results, arm))
    ]


def _complete(results: StudyResults, arm: str) -> list[LadderRow]:
    return [row for row in results["ladder"] if row["arm"] == arm and row["height"] is not None]


def _lead(lead: LeadRow) -> str:
    """The mean difference with its 95 % t interval, and its p over seeds after Holm's correction."""
    by_seed = lead["by_seed"]
    if lead["low"] is None:
        return f"{by_seed[0]:+.1f} (one seed)"
    told_apart = "" if lead["adjusted_p"] is not None and lead["adjusted_p"] < LEVEL else ", not significant"
    p = "" if lead["adjusted_p"] is None else f", adjusted p {lead['adjusted_p']:.2g}"
    return f"{sum(by_seed) / len(by_seed):+.1f} ({lead['low']:+.1f} to {lead['high']:+.1f}{p}{told_apart})"


def _row(arm: str, heights: Sequence[int | None], added: Sequence[float | None]) -> dict[str, str]:
    sums = [total for total in added if total is not None]
    over = mean_of(sums)
    return {
        "variant": arm,
        "T by seed": ", ".join(map(str, heights)),
        "S by seed": ", ".join(f"{total:.1f}" for total in sums),
        "S, mean": f"{over.value:.1f}",
        "95 % interval": "-" if over.low is None else f"{over.low:.1f} to {over.high:.1f}",
    }
