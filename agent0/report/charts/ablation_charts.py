"""Charts of an ablation study: for its HTML page, and as files beside the Markdown one."""

from markupsafe import Markup

from agent0.experiments.ablation_results import measure_title
from agent0.experiments.study_results import StudyResults
from agent0.report.charts.plots import Score, as_file, intervals, lines
from agent0.report.columns import shown_iteration
from agent0.report.markdown.ablation import ARMS, CURVE
from agent0.report.markdown.ladder import LEVELS

FEW = 4
"""Lines with intervals; of more, only the first has them."""


def curve(results: StudyResults) -> Markup:
    """Draw validation accuracy by iteration, a line per variant, with intervals where few lines are drawn; empty
    without one."""
    curves = {arm: {row["iteration"]: row for row in curve} for arm, curve in results["curves"].items() if curve}
    places = sorted({iteration for by_iteration in curves.values() for iteration in by_iteration})
    return lines(
        {
            arm: [by_iteration[iteration]["mean"] if iteration in by_iteration else None for iteration in places]
            for arm, by_iteration in curves.items()
        },
        [shown_iteration(iteration) for iteration in places],
        "validation accuracy by iteration, mean over seeds with 95 % intervals",
        {
            arm: [
                (by_iteration[iteration]["low"], by_iteration[iteration]["high"]) if iteration in by_iteration else None
                for iteration in places
            ]
            for arm, by_iteration in list(curves.items())[: FEW if len(curves) <= FEW else 1]
        },
    )


def means(results: StudyResults, measure: str) -> Markup:
    """Draw the mean of one measure for every variant, its controls below it."""
    groups: dict[str, list[Score]] = {}
    for row in results["arms"]:
        if row["measure"] != measure:
            continue
        student = "at the end" if row["student"] == "trained" else row["student"].replace("_", " ")
        groups.setdefault(row["arm"], []).append(Score(student, row["mean"], row["low"], row["high"]))
    return intervals(groups, f"{measure_title(measure)}: means over seeds with 95 % intervals")


def chart_files(results: StudyResults) -> dict[str, str]:
    """By name, the text of an SVG file for each picture there is something on."""
    drawn = {CURVE: as_file(curve(results)), LEVELS: as_file(levels_chart(results))}
    for lead in results["measures"][:1]:
        drawn[ARMS] = as_file(means(results, lead))
    return {name: text for name, text in drawn.items() if text}


def levels_chart(results: StudyResults) -> Markup:
    """Draw the accuracy of each variant's last students by level, means over seeds on fresh tasks; empty without."""
    rows = results.get("ladder_levels", [])
    levels = sorted({level for row in rows for level in row["levels"]}, key=int)
    return lines(
        {row["arm"]: [row["levels"].get(level) for level in levels] for row in rows},
        levels,
        "accuracy on fresh tasks by level, means over seeds",
    )
