"""One HTML file about arms over seeds: it opens from disk."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent0.arms import CONTROLS, MEASURES
from agent0.report.drawing import Score, intervals, lines
from agent0.report.rendering import render

Row = Mapping[str, Any]


def grid_page(found: Mapping[str, Any]) -> str:
    """The page, from what a grid found. The same findings give the same bytes."""
    curves = {arm: {row["iteration"]: row for row in curve} for arm, curve in found["curves"].items() if curve}
    places = sorted({place for curve in curves.values() for place in curve})
    return render(
        "grid.html.jinja",
        found=found,
        titles={name: measure.title for name, measure in MEASURES.items()},
        controls=CONTROLS,
        curve=lines(
            {arm: [_value(curve.get(place), "mean") for place in places] for arm, curve in curves.items()},
            ["untrained" if place < 0 else str(place) for place in places],
            "validation accuracy by iteration, mean over seeds with 95 % intervals",
            {arm: [_span(curve.get(place)) for place in places] for arm, curve in curves.items()},
        ),
        pictures={name: _means(found["arms"], name) for name in found["measures"]},
    )


def _value(row: Row | None, key: str) -> float | None:
    return row[key] if row else None


def _span(row: Row | None) -> tuple[float, float] | None:
    return (row["low"], row["high"]) if row else None


def _means(rows: Sequence[Row], measure: str) -> Any:
    groups: dict[str, list[Score]] = {}
    for row in rows:
        if row["measure"] == measure:
            shown = Score(row["student"].replace("_", " "), row["mean"], row["low"], row["high"])
            groups.setdefault(row["arm"], []).append(shown)
    return intervals(groups, f"{MEASURES[measure].title}: means over seeds with 95 % intervals")
