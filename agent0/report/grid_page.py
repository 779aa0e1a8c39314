"""One HTML file about arms over seeds: it opens from disk."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent0.arms import CONTROLS, MEASURES
from agent0.report.drawing import Score, intervals
from agent0.report.rendering import render
from agent0.report.skill_pictures import arms, curve, exams
from agent0.skill import MEASURES as ASKED
from agent0.skill_page import sentences

Row = Mapping[str, Any]


def grid_page(found: Mapping[str, Any]) -> str:
    """The page, from what a grid found. The same findings give the same bytes."""
    skill = found.get("skill")
    return render(
        "grid.html.jinja",
        found=found,
        titles={name: measure.title for name, measure in MEASURES.items()},
        controls=CONTROLS,
        curve=curve(found),
        skill=skill,
        said=sentences(skill) if skill else [],
        asked={name: measure.title for name, measure in ASKED.items()},
        exams={one["name"]: exams(skill, one["name"]) for one in skill["sets"]} if skill else {},
        every=arms(skill) if skill else "",
        pictures={name: _means(found["arms"], name) for name in found["measures"]},
    )


def _means(rows: Sequence[Row], measure: str) -> Any:
    groups: dict[str, list[Score]] = {}
    for row in rows:
        if row["measure"] == measure:
            shown = Score(row["student"].replace("_", " "), row["mean"], row["low"], row["high"])
            groups.setdefault(row["arm"], []).append(shown)
    return intervals(groups, f"{MEASURES[measure].title}: means over seeds with 95 % intervals")
