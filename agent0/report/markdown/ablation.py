"""The Markdown page of an ablation study: its settings, its conclusions, its cost. Every sentence on it follows from
the numbers, whatever they are."""

import json
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from agent0.experiments.ablation_results import CONTROLS, MEASURES, TESTED
from agent0.experiments.ablations import ablation_studies
from agent0.experiments.ladder_rows import known_columns
from agent0.report.columns import lead_columns
from agent0.report.conclusions import conclusion
from agent0.report.markdown import ladder
from agent0.report.markdown.rendering import render
from agent0.report.markdown.tables import claim, points, shares, span
from agent0.stats.paired_tests import FELL, IMPROVED

Row = Mapping[str, Any]
ARMS, CURVE, BASE = "arms", "curve", "base"
ANSWERS = {IMPROVED: "Yes", FELL: "No, it is worse"}
STUDENTS = {"trained": "at the end", **CONTROLS}
TOOK = {"attempts": "attempts", "tokens": "tokens", "wall_s": "seconds"}


def page(found: Row, pictures: Mapping[str, str], file: str) -> str:
    """Markdown of an ablation study: its answer, one table, the command, and everything else folded by section.
    ``file`` is where the page goes, ``pictures`` are files beside it: by set, ``arms`` and ``curve``."""
    on_ladder = "ladder" in found
    first, *others = found["cost"] or [{}]
    dearer = "; ".join(f"{one['arm']} {more}" for one in others if (more := _more(first, one)))
    climbed = {"ladder": known_columns(found["ladder"]), "leads": lead_columns(found["leads"])} if on_ladder else {}
    return render(
        "ablation.md.jinja",
        found={**found, **climbed},
        title=PurePath(file).stem.replace("-", " ").capitalize(),
        short=ladder.answer(found) if on_ladder else _answer(found),
        heights=ladder.table(found) if on_ladder else [],
        aims=ladder.aims(found) if on_ladder else [],
        command=command(found, file),
        conclusions=sentences(found),
        settings={arm: _settings(about, found["settings"][arm]) for arm, about in found["about"].items()},
        measures=[_measure(found, name) for name in found["measures"]],
        pictures=defaultdict(str, pictures),
        tested_by=TESTED,
        dearer=dearer,
        bases=[{**one, "sha256": f"`{str(one['sha256'])[:12]}`"} for one in found.get("bases", ())],
        runs=found["cells"],
    )


def command(found: Row, file: str) -> str:
    """Return the command that writes the page ``file``; options that are the study's own are left out. A file that was
    named by its whole path goes by its name alone."""
    own, models = ablation_studies().get(found["experiment"]), found["models"]
    arms = list(found["about"])[: len(found["about"]) // (1 + len(models))]
    words = ["agent0", "experiment", found["experiment"], *_variants(found)]
    if own is None or found["profile"] != own.profile:
        words += ["--profile", found["profile"]]
    if own is None or found["seeds"] != list(own.seeds):
        words += ["--seeds", ",".join(map(str, found["seeds"]))]
    if not found.get("baseline") and (own is None or arms != [arm.name for arm in own.variants]):
        words += ["--arms", ",".join(arms)]
    words += [word for model in models for word in ("--model", model)]
    words += [
        word for path in json.loads(found["given"].get("plugins", "[]")) for word in ("--plugin", PurePath(path).name)
    ]
    given = {key: text for key, text in found["given"].items() if key not in ("home", "profile", "plugins")}
    words += [word for key, text in given.items() for word in ("--set", f"{key}={text}")]
    return shlex.join([*words, "--jobs", "2", "--write", PurePath(file).name if PurePath(file).is_absolute() else file])


def _variants(found: Row) -> Iterator[str]:
    """The options that name the variants of a study of the user's own."""
    for name in list(found["about"]) if found.get("baseline") else ():
        yield from ("--variant", f"{name}:" + ",".join(f"{k}={v}" for k, v in found["settings"][name].items()))


def answers(found: Row) -> list[str]:
    """The answer of a study with a baseline, a line for each other variant: whether it is better, by how much, and
    what would have been found."""
    first, others = _names(found)
    return [_beats(found, other, first) for other in others] if found["measures"] else ["Nothing was measured."]


def sentences(found: Row) -> list[str]:
    """State the conclusions: whether the first variant beats each other one, by how much, and the smallest detectable
    effect."""
    if not found["measures"]:
        return ["Nothing was measured: no run is finished."]
    first, others = _names(found)
    if found.get("baseline"):
        told = answers(found)
    else:
        told = [*_in_short(found, first, others), *(_beats(found, first, other) for other in others)]
    told += [said for control in CONTROLS for name in found["measures"] if (said := _worth(found, control, name))]
    return told + _unpromoted(found["cells"])


def _unpromoted(runs: Sequence[Row]) -> list[str]:
    """Name the runs in which no student was promoted, in one sentence; none where there is no such run."""
    names = [f"{run['arm']} (seed {run['seed']})" for run in runs if run["student"] == BASE]
    return [f"No trained student was promoted, so the student is still the base: {', '.join(names)}."] if names else []


def _answer(found: Row) -> list[str]:
    """The answer in at most five lines: the first variant beside the others, and beside what needs no training."""
    lead = found["measures"][:1]
    if found.get("baseline"):
        return answers(found)
    told = [*_in_short(found, *_names(found))] if lead else sentences(found)
    return told + [said for control in CONTROLS for name in lead if (said := _worth(found, control, name))]


def _names(found: Row) -> tuple[str, list[str]]:
    first, *others = found["about"]
    return first, others


def _in_short(found: Row, first: str, others: Sequence[str]) -> Iterator[str]:
    """Say whether the first variant is the best by the leading measure."""
    if not others:
        return
    words = {row["against"]: row["word"] for row in _first(found, found["measures"][0])}
    shown = [other for other in others if words.get(other) == IMPROVED]
    worse = [other for other in others if words.get(other) == FELL]
    rest = [other for other in others if other not in (*shown, *worse)]
    parts = [f"not significantly better than {', '.join(rest)}"] if rest else []
    parts += [f"worse than {', '.join(worse)}"] if worse else []
    parts += [f"better than {', '.join(shown)}"] if shown else []
    best = "the best of these variants" if len(shown) == len(others) else "; ".join(parts)
    yield f"**In short, by {MEASURES[found['measures'][0]].title}:** {first} is {best}."


def _beats(found: Row, first: str, other: str) -> str:
    """Say whether the variant ``first`` beats ``other``."""
    asked, lead = f"Does {first} beat {other}?", found["measures"][0]
    rows = {
        name: row
        for name in found["measures"]
        for row in _first(found, name)
        if (row["arm"], row["against"]) == (first, other)
    }
    if lead not in rows:
        return f"**{asked} Unknown:** no seed has finished runs of both."
    led = "; ".join(f"{MEASURES[name].title} {_difference(row)}" for name, row in rows.items())
    answer = ANSWERS.get(rows[lead]["word"], "Not significant")
    return f"**{asked} {answer}.** {first} less {other}, in points: {led}.{_missed(rows[lead])}"


def _missed(row: Row) -> str:
    """State the smallest detectable effect where the difference is not significant."""
    if row["detectable"] is None or row["word"] in ANSWERS:
        return ""
    asked = f"With {row['seeds']} seeds and {row['items']} tasks"
    if row["detectable"] >= 1:
        return f" {asked} no difference would have been found with 80 % power, however large."
    least = f"{100 * row['detectable']:.1f} points"
    return f" {asked} a true difference of {least} would have been found (80 % power, before Holm's correction)."


def _worth(found: Row, control: str, name: str) -> str:
    rows = [row for row in found["against"] if row["measure"] == name and row["against"] == control]
    led = "; ".join(f"{row['arm']} {_difference(row)}" for row in rows)
    what = f"The student at the end less {CONTROLS[control]}, {MEASURES[name].title}"
    return f"**{what}, in points:** {led}." if rows else ""


def _difference(row: Row) -> str:
    p = "" if row["adjusted_p"] is None else f" (adjusted p {row['adjusted_p']:.2g})"
    return f"{points(row['mean'])} ({span(row)}): {conclusion(row['word'])}{p}"


def _first(found: Row, measure: str) -> list[Row]:
    """The first arm less each other one. Where none of its cells is finished, another one led, and nothing is said."""
    first, others = _names(found)
    rows: list[Row] = [row for row in found["against"] if row["measure"] == measure]
    if found.get("baseline"):
        return [row for row in rows if row["against"] == first]
    return [row for row in rows if row["arm"] == first and row["against"] in others]


def _settings(about: str, settings: Mapping[str, str]) -> str:
    said = ", ".join(f"`{key}={text}`" for key, text in settings.items())
    return "; ".join(filter(None, (about, said))) or "the profile as it is"


def _measure(found: Row, name: str) -> Row:
    """A measure's means, and its differences to the other variants and to the controls, as rows of tables."""
    held = [row for row in found["against"] if row["measure"] == name and row["against"] in CONTROLS]
    return {
        "title": MEASURES[name].title,
        "leads": name == found["measures"][0],
        "means": [_mean(row) for row in found["arms"] if row["measure"] == name],
        "others": [claim(row) for row in _first(found, name)],
        "controls": [claim({**row, "against": CONTROLS[row["against"]]}) for row in held],
    }


def _mean(row: Row) -> dict[str, Any]:
    student, right = STUDENTS[row["student"]], shares(row)
    return {"variant": row["arm"], "student": student, "right": right, "seeds": row["seeds"], "tasks": row["items"]}


def _more(first: Row, one: Row) -> str:
    change = {title: round(100 * (one[key] / first[key] - 1)) for key, title in TOOK.items() if first[key]}
    return ", ".join(f"{title} {much:+d} %" for title, much in change.items())
