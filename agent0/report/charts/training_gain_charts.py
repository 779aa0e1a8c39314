"""Charts of the evaluation protocols of an ablation study."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from agent0.experiments.training_gain import BASE, CHANCE, MEASURES
from agent0.report.charts.plots import Score, as_file, intervals

Row = Mapping[str, Any]
SHOWN = ("within", "single")
"""Measures on the chart of variants."""


def set_chart(skill: Row, tasks: str) -> Markup:
    """Draw the measures of the first variant on the set ``tasks``, each with its controls below it."""
    first = next((row["who"] for row in skill["means"] if row["trained"]), "")
    groups: dict[str, list[Score]] = {}
    for picked in ("check", "nobody"):
        for row in skill["means"]:
            if row["set"] == tasks and row["picked"] == picked and row["who"] in (first, BASE, CHANCE):
                label = f"{row['who']}, {row['how']}" if row["trained"] else row["how"]
                groups[label] = [_score(row, row["who"] if row["trained"] else "no training")]
    return intervals(groups, f"{tasks}: means over seeds with 95 % intervals")


def variants_chart(skill: Row) -> Markup:
    """Draw every variant on the first set, and its base under the same protocol."""
    tasks = skill["sets"][0]["name"] if skill["sets"] else ""
    groups: dict[str, list[Score]] = {}
    for row in skill["means"]:
        for measure in (MEASURES[name] for name in SHOWN):
            same = row["set"] == tasks and row["how"] == measure.short and row["picked"] == measure.picked
            if same and (row["trained"] or row["who"] == BASE):
                groups.setdefault(row["who"], []).append(_score(row, measure.short))
    return intervals(groups, f"{tasks}: every variant, means over seeds with 95 % intervals")


def _score(row: Row, series: str) -> Score:
    return Score(series, row["mean"], row["low"], row["high"])


def chart_files(skill: Row) -> dict[str, str]:
    """Make the SVG files: one for each set and one for all variants, by name; empty text where there is nothing to
    draw."""
    drawn = {one["name"]: as_file(set_chart(skill, one["name"])) for one in skill["sets"]}
    return drawn | {"arms": as_file(variants_chart(skill))}
