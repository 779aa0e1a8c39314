"""Charts of an ablation study: for its HTML page, and as files beside the Markdown one."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from agent0.experiments.ablation_results import MEASURES
from agent0.report.charts.ladder_charts import levels_chart
from agent0.report.charts.plots import Score, as_file, intervals, lines
from agent0.report.columns import shown_iteration
from agent0.report.markdown.ablation import ARMS, CURVE
from agent0.report.markdown.ladder import LEVELS

Row = Mapping[str, Any]
FEW = 4
"""Lines with intervals; of more, only the first has them."""


def curve(found: Row) -> Markup:
    """Draw validation accuracy by iteration, a line per variant, with intervals where few lines are drawn; empty
    without one."""
    curves = {arm: {row["iteration"]: row for row in curve} for arm, curve in found["curves"].items() if curve}
    places = sorted({place for held in curves.values() for place in held})
    return lines(
        {arm: [held[place]["mean"] if place in held else None for place in places] for arm, held in curves.items()},
        [shown_iteration(place) for place in places],
        "validation accuracy by iteration, mean over seeds with 95 % intervals",
        {
            arm: [(held[place]["low"], held[place]["high"]) if place in held else None for place in places]
            for arm, held in list(curves.items())[: FEW if len(curves) <= FEW else 1]
        },
    )


def means(found: Row, measure: str) -> Markup:
    """Draw the mean of one measure for every variant, its controls below it."""
    groups: dict[str, list[Score]] = {}
    for row in found["arms"]:
        if row["measure"] != measure:
            continue
        groups.setdefault(row["arm"], []).append(Score(_student(row), row["mean"], row["low"], row["high"]))
    return intervals(groups, f"{MEASURES[measure]}: means over seeds with 95 % intervals")


def _student(row: Row) -> str:
    return "at the end" if row["student"] == "trained" else str(row["student"]).replace("_", " ")


def chart_files(found: Row) -> dict[str, str]:
    """By name, the text of an SVG file for each picture there is something on."""
    drawn = {CURVE: as_file(curve(found)), LEVELS: as_file(levels_chart(found))}
    for lead in found["measures"][:1]:
        drawn[ARMS] = as_file(means(found, lead))
    return {name: text for name, text in drawn.items() if text}
