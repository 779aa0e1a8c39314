"""The Markdown page of an ablation study: its settings, its conclusions, its cost. Every sentence on it follows from
the numbers, whatever they are."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from agent0.experiments.ablation_results import CONTROLS, MEASURES, TESTED
from agent0.experiments.ablations import ablation_studies
from agent0.report.conclusions import conclusion
from agent0.report.markdown import training_gain
from agent0.report.markdown.tables import claim, folded, picture, points, shares, span, table, variants_named
from agent0.stats.paired_tests import FELL, IMPROVED

Row = Mapping[str, Any]
ARMS, CURVE = "arms", "curve"
ANSWERS = {IMPROVED: "Yes", FELL: "No, it is worse"}
STUDENTS = {"trained": "at the end", **CONTROLS}
TOOK = {"attempts": "attempts", "tokens": "tokens", "wall_s": "seconds"}


def page(found: Row, pictures: Mapping[str, str], file: str) -> str:
    """Markdown of an ablation study: its answer, one table, the command, and everything else folded by section.
    ``file`` is where the page goes, ``pictures`` are files beside it: by set, ``arms`` and ``curve``."""
    skill = found.get("skill")
    first = [
        f"<!-- Written by `agent0 experiment {found['experiment']} --write`; not by hand. -->\n",
        f"# {PurePath(file).stem.replace('-', ' ').capitalize()}\n",
        f"{found['question']}\n",
        *(training_gain.answer(skill) if skill else _answer(found)),
        *(training_gain.leading(skill) if skill else _leading(found)),
        f"```\n{command(found, file)}\n```\n",
        *_incomplete(found),
    ]
    rest = [
        "## Conclusions\n",
        *(f"- {said}" for said in sentences(found)),
        "",
        *(f"- {note}" for note in found.get("notes", ())),
        "",
        *_asked(found),
        *(training_gain.sections(found, pictures) if skill else _measures(found, pictures.get(ARMS, ""))),
        *_curve(pictures.get(CURVE, "")),
        *_cost(found),
        "## Every run\n",
        *table(map(variants_named, [*skill["bases"], *skill["cells"]] if skill else found["cells"])),
    ]
    return folded("\n".join([*first, *rest]))


def command(found: Row, file: str) -> str:
    """Return the command that writes the page ``file``; options that are the study's own are left out. A file that was
    named by its whole path goes by its name alone."""
    own, models = ablation_studies().get(found["experiment"]), found["models"]
    arms = list(found["about"])[: len(found["about"]) // (1 + len(models))]
    words = ["agent0", "experiment", found["experiment"]]
    if own is None or found["profile"] != own.profile:
        words += ["--profile", found["profile"]]
    if own is None or found["seeds"] != list(own.seeds):
        words += ["--seeds", ",".join(map(str, found["seeds"]))]
    if own is None or arms != [arm.name for arm in own.variants]:
        words += ["--arms", ",".join(arms)]
    words += [word for model in models for word in ("--model", model)]
    given = {key: text for key, text in found["given"].items() if key not in ("home", "profile")}
    words += [word for key, text in given.items() for word in ("--set", f"{key}={text}")]
    return shlex.join([*words, "--jobs", "2", "--write", PurePath(file).name if PurePath(file).is_absolute() else file])


def sentences(found: Row) -> list[str]:
    """State the conclusions: whether the first variant beats each other one, by how much, and the smallest detectable
    effect; and the gain of training over each control."""
    if "skill" in found:
        return training_gain.sentences(found["skill"])
    if not found["measures"]:
        return ["Nothing was measured: no run is finished."]
    first, others = _names(found)
    told = [*_in_short(found, first, others), *(_beats(found, first, other) for other in others)]
    told += [said for control in CONTROLS for name in found["measures"] if (said := _worth(found, control, name))]
    return told + training_gain.still_base(found["cells"])


def _answer(found: Row) -> list[str]:
    """The answer in at most five lines: the first variant beside the others, and beside what needs no training."""
    lead = found["measures"][:1]
    told = [*_in_short(found, *_names(found))] if lead else sentences(found)
    told += [said for control in CONTROLS for name in lead if (said := _worth(found, control, name))]
    return [*(f"- {said}" for said in told), ""]


def _names(found: Row) -> tuple[str, list[str]]:
    first, *others = found["about"]
    return first, others


def _leading(found: Row) -> Iterator[str]:
    """The table of the measure that leads."""
    for name in found["measures"][:1]:
        yield f"{_capital(MEASURES[name].title)}, means over seeds with 95 % intervals:\n"
        yield from table(_mean(row) for row in found["arms"] if row["measure"] == name)


def _capital(title: str) -> str:
    return f"{title[0].upper()}{title[1:]}"


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
    asked, lead = f"Does {first} beat {other}?", found["measures"][0]
    rows = {name: row for name in found["measures"] for row in _first(found, name) if row["against"] == other}
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
    return f"{points(row['mean'])} ({span(row)}): {conclusion(row['word'])}"


def _first(found: Row, measure: str) -> list[Row]:
    """The first arm less each other one. Where none of its cells is finished, another one led, and nothing is said."""
    first, others = _names(found)
    rows: list[Row] = [row for row in found["against"] if row["measure"] == measure and row["arm"] == first]
    return [row for row in rows if row["against"] in others]


def _incomplete(found: Row) -> list[str]:
    if found["complete"]:
        return []
    whys = [f"{one['cell']} failed: {one['why'].replace(found['folder'] + '/', '')}" for one in found["failed"]]
    return [f"**Not complete:** {len(found['cells'])} runs are finished. {'; '.join(whys)}\n"]


def _asked(found: Row) -> Iterator[str]:
    yield "## Settings\n"
    seeds = ", ".join(map(str, found["seeds"]))
    own = "; each has a base of its own" if "bases" in found else ""
    yield f"Profile {found['profile']}. {found['effort']} Seeds: {seeds}{own}.\n"
    for arm, about in found["about"].items():
        settings = ", ".join(f"`{key}={text}`" for key, text in found["settings"][arm].items())
        yield f"- **{arm}**: {'; '.join(filter(None, (about, settings))) or 'the profile as it is'}"
    yield ""


def _measures(found: Row, drawn: str) -> Iterator[str]:
    for place, name in enumerate(found["measures"]):
        title = MEASURES[name].title
        yield f"## {_capital(title)}\n"
        yield from picture("" if place else drawn, f"{title} of every variant and its controls, means over seeds")
        if place:
            yield "Means over seeds with 95 % intervals; the tasks are the same for every seed and variant.\n"
            yield from table(_mean(row) for row in found["arms"] if row["measure"] == name)
        others = [claim(row) for row in _first(found, name)]
        if others:
            who = others[0]["variant"]
            yield f"{who} less each other variant; *improved*: {who} is better, *decreased*: the other one is.\n"
            yield from table(others)
        yield "The student at the end less each control that needs no training, variant by variant:\n"
        held = [row for row in found["against"] if row["measure"] == name and row["against"] in CONTROLS]
        yield from table(claim({**row, "against": CONTROLS[row["against"]]}) for row in held)
    yield f"{TESTED} Holm's correction runs over the variants compared with one another, or against one control.\n"


def _mean(row: Row) -> dict[str, Any]:
    student, right = STUDENTS[row["student"]], shares(row)
    return {"variant": row["arm"], "student": student, "right": right, "seeds": row["seeds"], "tasks": row["items"]}


def _curve(file: str) -> Iterator[str]:
    if file:
        yield "## Curves\n"
        caption = "Greedy accuracy on validation tasks of the newest student, means over seeds with 95 % intervals"
        yield f"{caption} (where there are many variants, of the first).\n"
        yield from picture(file, "validation accuracy by iteration, a line for each variant")


def _cost(found: Row) -> Iterator[str]:
    yield "## Cost\n"
    yield "Of one run, means over seeds; *wall_s* is from its first event to its last.\n"
    yield from table(map(variants_named, found["cost"]))
    first, *others = found["cost"] or [{}]
    beside = "; ".join(f"{one['arm']} {more}" for one in others if (more := _more(first, one)))
    if beside:
        yield f"Compared with a run of {first['arm']}: {beside}.\n"
    if "skill" in found:
        yield training_gain.evaluation_cost(found["skill"])


def _more(first: Row, one: Row) -> str:
    change = {title: round(100 * (one[key] / first[key] - 1)) for key, title in TOOK.items() if first[key]}
    return ", ".join(f"{title} {much:+d} %" for title, much in change.items())
