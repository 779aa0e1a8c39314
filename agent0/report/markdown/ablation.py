"""The Markdown page of an ablation study: its settings, its conclusions, its cost. Every sentence on it follows from
the numbers, whatever they are."""

import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from agent0.experiments.ablation_results import CONTROLS, TESTED, ComparisonRow, VariantRow, measure_title
from agent0.experiments.study_results import StudyResults
from agent0.report.conclusions import conclusion
from agent0.report.markdown import ladder
from agent0.report.markdown.rendering import claim, points, render, shares, span
from agent0.stats.paired_tests import FELL, IMPROVED

ARMS, CURVE, BASE = "arms", "curve", "base"
ANSWERS = {IMPROVED: "Yes", FELL: "No, it is worse"}
STUDENTS = {"trained": "at the end", **CONTROLS}
TOOK = {"attempts": "attempts", "tokens": "tokens", "learned_tokens": "learned tokens", "wall_s": "seconds"}


def page(results: StudyResults, pictures: Mapping[str, str], file: str) -> str:
    """Markdown of an ablation study: its answer, one table, the command, and everything else folded by section.
    ``file`` is where the page goes, ``pictures`` are files beside it: by set, ``arms`` and ``curve``."""
    on_ladder = "ladder" in results
    first, *others = results["cost"] or [{}]
    dearer = "; ".join(f"{other['arm']} {more}" for other in others if (more := _more(first, other)))
    target = PurePath(file).name if PurePath(file).is_absolute() else file
    return render(
        "ablation.md.jinja",
        found=results,
        title=PurePath(file).stem.replace("-", " ").capitalize(),
        short=ladder.answer(results) if on_ladder else short_answer(results),
        heights=ladder.table(results) if on_ladder else [],
        command=shlex.join([*results["command"], "--jobs", "2", "--write", target]),
        conclusions=sentences(results),
        settings={arm: _settings(about, results["settings"][arm]) for arm, about in results["about"].items()},
        measures=[_measure(results, name) for name in results["measures"]],
        pictures=defaultdict(str, pictures),
        tested_by=TESTED,
        dearer=dearer,
        runs=results["cells"],
    )


def answers(results: StudyResults) -> list[str]:
    """The answer of a study, a line for each variant but the first: whether it is better, by how much, and what would
    have been found."""
    if not results["measures"]:
        return ["Nothing was measured: no run is finished."]
    first, *others = results["about"]
    return [_beats(results, other, first) for other in others]


def sentences(results: StudyResults) -> list[str]:
    """State the conclusions: the answers, what training is worth beside each control, and who was never trained."""
    worth = [text for control in CONTROLS for name in results["measures"] if (text := _worth(results, control, name))]
    return answers(results) + worth + _unpromoted(results["cells"])


def _unpromoted(runs: Sequence[Mapping[str, object]]) -> list[str]:
    """Name the runs in which no student was promoted, in one sentence; none where there is no such run."""
    names = [f"{run['arm']} (seed {run['seed']})" for run in runs if run["student"] == BASE]
    return [f"No trained student was promoted, so the student is still the base: {', '.join(names)}."] if names else []


def short_answer(results: StudyResults) -> list[str]:
    """State the answer, then by the leading measure what training is worth beside each control."""
    lead = results["measures"][:1]
    return answers(results) + [
        text for control in CONTROLS for name in lead if (text := _worth(results, control, name))
    ]


def _beats(results: StudyResults, first: str, other: str) -> str:
    """Say whether the variant ``first`` beats ``other``."""
    question, lead = f"Does {first} beat {other}?", results["measures"][0]
    rows = {
        name: row
        for name in results["measures"]
        for row in results["against"]
        if (row["measure"], row["arm"], row["against"]) == (name, first, other)
    }
    if lead not in rows:
        return f"**{question} Unknown:** no seed has finished runs of both."
    led = "; ".join(f"{measure_title(name)} {_difference(row)}" for name, row in rows.items())
    answer = ANSWERS.get(rows[lead]["word"], "Not significant")
    return f"**{question} {answer}.** {first} less {other}, in points: {led}.{_missed(rows[lead])}"


def _missed(row: ComparisonRow) -> str:
    """State the smallest detectable effect where the difference is not significant."""
    if row["detectable"] is None or row["word"] in ANSWERS:
        return ""
    sizes = f"With {row['seeds']} seeds and {row['items']} tasks"
    if row["detectable"] >= 1:
        return f" {sizes} no difference would have been found with 80 % power, however large."
    least = f"{100 * row['detectable']:.1f} points"
    return f" {sizes} a true difference of {least} would have been found (80 % power, before Holm's correction)."


def _worth(results: StudyResults, control: str, name: str) -> str:
    rows = [row for row in results["against"] if row["measure"] == name and row["against"] == control]
    led = "; ".join(f"{row['arm']} {_difference(row)}" for row in rows)
    what = f"The student at the end less {CONTROLS[control]}, {measure_title(name)}"
    return f"**{what}, in points:** {led}." if rows else ""


def _difference(row: ComparisonRow) -> str:
    p = "" if row["adjusted_p"] is None else f" (adjusted p {row['adjusted_p']:.2g})"
    return f"{points(row['mean'])} ({span(row)}): {conclusion(row['word'])}{p}"


def _settings(about: str, settings: Mapping[str, str]) -> str:
    values = ", ".join(f"`{key}={text}`" for key, text in settings.items())
    return "; ".join(filter(None, (about, values))) or "the profile as it is"


def _measure(results: StudyResults, name: str) -> dict[str, object]:
    """A measure's means, and its differences to the other variants and to the controls, as rows of tables."""
    rows = [row for row in results["against"] if row["measure"] == name]
    controls = [row for row in rows if row["against"] in CONTROLS]
    return {
        "title": measure_title(name),
        "leads": name == results["measures"][0],
        "means": [_mean(row) for row in results["arms"] if row["measure"] == name],
        "others": [claim(row, row["against"]) for row in rows if row["against"] not in CONTROLS],
        "controls": [claim(row, CONTROLS[row["against"]]) for row in controls],
    }


def _mean(row: VariantRow) -> dict[str, object]:
    student, right = STUDENTS[row["student"]], shares(row)
    return {"variant": row["arm"], "student": student, "right": right, "seeds": row["seeds"], "tasks": row["items"]}


def _more(first: Mapping[str, str | float], other: Mapping[str, str | float]) -> str:
    change = {
        title: round(100 * (float(other[key]) / float(first[key]) - 1)) for key, title in TOOK.items() if first.get(key)
    }
    return ", ".join(f"{title} {much:+d} %" for title, much in change.items())
