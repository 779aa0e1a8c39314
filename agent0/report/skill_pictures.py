"""What exams of a grid came to, drawn: for its HTML page, and as files beside the Markdown one."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from agent0.report.drawing import Score, as_file, intervals, lines
from agent0.skill import BASE, MEASURES

Row = Mapping[str, Any]
ARMS, CURVE = "arms", "curve"
SHOWN = ("within", "single")
"""Measures of the picture of arms."""


def curve(found: Row) -> Markup:
    """Validation accuracy by iteration, a line for each arm; empty without one."""
    curves = {arm: {row["iteration"]: row for row in curve} for arm, curve in found["curves"].items() if curve}
    places = sorted({place for held in curves.values() for place in held})
    return lines(
        {arm: [held[place]["mean"] if place in held else None for place in places] for arm, held in curves.items()},
        ["untrained" if place < 0 else str(place) for place in places],
        "validation accuracy by iteration, mean over seeds with 95 % intervals",
        {
            arm: [(held[place]["low"], held[place]["high"]) if place in held else None for place in places]
            for arm, held in curves.items()
        },
    )


def exams(skill: Row, tasks: str) -> Markup:
    """The first arm's measures on the set ``tasks``, with every control below what it is held against."""
    first = next((row["who"] for row in skill["means"] if row["trained"]), "")
    groups: dict[str, list[Score]] = {}
    for picked in ("check", "nobody"):
        for row in skill["means"]:
            if row["set"] == tasks and row["picked"] == picked and row["who"] in (first, BASE):
                label = f"{row['who']}, {row['how']}" if row["trained"] else row["how"]
                groups[label] = [_score(row, row["who"] if row["trained"] else "no training")]
    return intervals(groups, f"{tasks}: means over seeds with 95 % intervals")


def arms(skill: Row) -> Markup:
    """Every arm on the first set, and its base asked the same."""
    tasks = skill["sets"][0]["name"] if skill["sets"] else ""
    groups: dict[str, list[Score]] = {}
    for row in skill["means"]:
        for measure in (MEASURES[name] for name in SHOWN):
            same = row["set"] == tasks and row["how"] == measure.short and row["picked"] == measure.picked
            if same and (row["trained"] or row["who"] == BASE):
                groups.setdefault(row["who"], []).append(_score(row, measure.title))
    return intervals(groups, f"{tasks}: every arm, means over seeds with 95 % intervals")


def _score(row: Row, series: str) -> Score:
    return Score(series, row["mean"], row["low"], row["high"])


def files(found: Row) -> dict[str, str]:
    """By name, the text of an SVG file for each picture there is something on."""
    skill = found["skill"]
    first = next((row["who"] for row in skill["means"] if row["trained"]), "")
    drawn = {one["name"]: as_file(exams(skill, one["name"]), (first, "no training")) for one in skill["sets"]}
    drawn[ARMS] = as_file(arms(skill), [MEASURES[name].title for name in SHOWN])
    drawn[CURVE] = as_file(curve(found), [arm for arm, held in found["curves"].items() if held])
    return {name: text for name, text in drawn.items() if text}
