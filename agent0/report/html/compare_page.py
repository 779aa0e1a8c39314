"""One HTML file about runs and experiments side by side: it opens from disk."""

from collections.abc import Iterable, Mapping
from typing import Any

from agent0.report.answers import compare_answer
from agent0.report.charts.plots import Score, intervals, lines, spreads
from agent0.report.columns import shown_iteration
from agent0.report.html.rendering import render


def compare_page(results: Mapping[str, Any]) -> str:
    """The page, from what ``agent0.experiments.compare_runs`` found. The same findings give the same bytes."""
    scored = {
        name: {score["iteration"]: score for score in curve} for name, curve in results["curves"].items() if curve
    }
    places = sorted({iteration for curve in scored.values() for iteration in curve})
    last = {
        f"{name} ({curve[-1]['n']})": [Score("last", *(curve[-1][k] for k in ("accuracy", "lower95", "upper95")))]
        for name, curve in results["curves"].items()
        if curve
    }
    return render(
        "compare.html.jinja",
        found=results,
        answer=compare_answer(results),
        curve=lines(
            {name: [_accuracy(curve.get(iteration)) for iteration in places] for name, curve in scored.items()},
            [shown_iteration(iteration) for iteration in places],
            "validation accuracy by iteration",
        ),
        last=intervals(last, "last validation score with 95 % intervals"),
        paid=spreads(_paid(results["rewards"]), "rewards: the middle one, and from the lowest to the highest tenth"),
    )


def _accuracy(score: Mapping[str, Any] | None) -> float | None:
    return score["accuracy"] if score else None


def _paid(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Score]]:
    """The roles of each name."""
    groups: dict[str, list[Score]] = {}
    for row in rows:
        groups.setdefault(row["name"], []).append(Score(row["role"], row["p50"], row["p10"], row["p90"]))
    return groups
