"""The gain of training on a study's Markdown page. Every sentence follows from the numbers, whatever they are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agent0.experiments.ablation_results import ONE_SEED
from agent0.experiments.training_gain import BASE, CHANCE, MEASURES, SAME_TOKENS, SAME_TRIES
from agent0.report.markdown.tables import claim, points, shares, span
from agent0.stats.paired_tests import FELL, IMPROVED, LEVEL

Row = Mapping[str, Any]
MAIN = ("within", "single")
"""Measures that are shown for every set and variant."""
UNTRAINED = (BASE, CHANCE)
MUST_BEAT = ("random-tries", "permuted-verdicts")
"""Variants without the claimed causes of the gain: the student's own tries, and the verdicts on them."""
VARIANTS = (*MUST_BEAT, "right-as-written")
OUTSIDE = "outside"
"""The set of numbers that training never draws."""


def gathered(skill: Row) -> Row:
    """Rows of the tables on a study's evaluation protocols."""
    first = next((row["arm"] for row in skill["arms"] or skill["alike"]), "")
    return {
        "sets": [_set(skill, one, first) for one in skill["sets"]],
        "within": MEASURES["within"].title,
        "compared": _compared(skill),
        "arms": [{"set": row["set"], **_claim(row)} for row in skill["arms"]],
        "alike": [{"set": row["set"], **_claim(row)} for row in skill["alike"]],
        "learned": skill["learned"],
    }


def _set(skill: Row, tasks: Row, first: str) -> Row:
    """A set of tasks with its rows: of the first variant and of what is untrained, and its differences to these."""
    held = [row for row in skill["means"] if row["set"] == tasks["name"] and row["who"] in (first, *UNTRAINED)]
    return {
        **tasks,
        "checked": [_mean(row) for row in held if row["picked"] == "check"],
        "unselected": [_mean(row) for row in held if row["picked"] == "nobody"],
        "against": [_claim(row) for row in skill["against"] if row["set"] == tasks["name"]],
    }


def _mean(row: Row) -> dict[str, Any]:
    seeds = ", ".join(f"{share:.3f}" for share in row["by_seed"].values())
    columns = {"who": row["who"], "how": row["how"], "solved": shares(row), "by seed": seeds, "tasks": row["items"]}
    return columns | {"tokens an attempt": None if row["tokens"] is None else f"{row['tokens']:.0f}"}


def _claim(row: Row) -> dict[str, Any]:
    return {"measure": MEASURES[row["measure"]].title, **claim(row), "conclusion": word(row)}


def sentences(skill: Row) -> list[str]:
    """State the conclusions: the lead of the first variant over the nearest control, by set and measure; each other
    variant against its own base; runs in which no student was promoted."""
    first = skill["sets"][0]["name"] if skill["sets"] else ""
    out = [
        said
        for one in skill["sets"]
        for name in (MEASURES if one["name"] == first else MAIN)
        if (said := _lead(skill, one, name))
    ]
    out += [said for name in MAIN if (said := _part(skill, name, first))]
    out += [_alike(row) for row in skill["alike"] if row["set"] == first and row["measure"] in MAIN]
    return out + still_base(skill["cells"])


def still_base(runs: Iterable[Row]) -> list[str]:
    """Name the runs in which no student was promoted, in one sentence; none where there is no such run."""
    still = [f"{row['arm']} (seed {row['seed']})" for row in runs if row["student"] == BASE]
    return [f"No trained student was promoted, so the student is still the base: {', '.join(still)}."] if still else []


def _lead(skill: Row, tasks: Row, name: str) -> str:
    """The lead over all controls is that over the nearest one."""
    rows = _rows(skill, "against", tasks["name"], name)
    if not rows:
        return ""
    nearest, measure = min(rows, key=lambda row: row["mean"]), MEASURES[name]
    own = _share(skill, tasks["name"], nearest["arm"], measure.short)
    theirs = next(
        shares(r)
        for who in UNTRAINED
        for r in skill["means"]
        if _is(r, tasks["name"], who, nearest["against"]) and r["picked"] == measure.picked
    )
    lead = 100 * nearest["mean"]
    more, less = f"{lead:.1f} points more than any control", f"{-lead:.1f} points less than the best control"
    much = "as many as the best control" if round(lead, 1) == 0 else more if lead > 0 else less
    aim = "" if measure.aim is None or tasks is not skill["sets"][0] else f" {aimed(skill, name)}"
    return (
        f"**{tasks['name']}, {measure.title}:** {nearest['arm']} {own}, {much} (the nearest: {nearest['against']}, "
        f"{theirs}; {span(nearest)}). {_claimed(rows)}{aim}"
    )


def _claimed(rows: Sequence[Row]) -> str:
    if all(row["word"] == ONE_SEED for row in rows):
        return f"{ONE_SEED[0].upper()}{ONE_SEED[1:]}."
    better = [row for row in rows if row["word"] == IMPROVED]
    many = f"{len(better)} of {len(rows)} controls"
    return f"Better than {many}, significant (adjusted p < {LEVEL:g}).{_apart(rows)}{_together(rows)}"


def _together(rows: Sequence[Row]) -> str:
    """Better than every control at once: that is so where it holds for each, so no correction is due and the greatest
    p is that of all (the intersection-union test, Berger 1982)."""
    if any(row["p"] is None or row["mean"] <= 0 for row in rows):
        return ""
    p = max(row["p"] for row in rows)
    word = "significant" if p < LEVEL and all(row["low"] > 0 for row in rows) else "not significant"
    return f" Better than every one of them at once: {word} (p = {p:.2g}, the greatest of all)."


def _apart(rows: Sequence[Row]) -> str:
    """Against what the difference is not significant, and what is better than the first."""
    same = [row["against"] for row in rows if row["word"] not in (IMPROVED, FELL)]
    worse = [row["against"] for row in rows if row["word"] == FELL]
    out = f" Not significant against: {'any' if len(same) == len(rows) else '; '.join(same)}." if same else ""
    return out + (f" Worse than: {'any' if len(worse) == len(rows) else '; '.join(worse)}." if worse else "")


def _part(skill: Row, name: str, tasks: str) -> str:
    """Compare the first variant with all others."""
    rows = _rows(skill, "arms", tasks, name)
    if not rows:
        return ""
    led = "; ".join(f"{row['against']} {points(row['mean'])} ({span(row)})" for row in rows)
    better = [row["against"] for row in rows if row["word"] == IMPROVED]
    alone = f" {ONE_SEED[0].upper()}{ONE_SEED[1:]}." if all(row["word"] == ONE_SEED for row in rows) else ""
    words = alone or (f" Better, significant: {'; '.join(better)}." if better else "") + _apart(rows)
    return f"**{rows[0]['arm']} less each other variant, {tasks}, {MEASURES[name].title}, in points:** {led}.{words}"


def aimed(skill: Row, name: str) -> str:
    """State whether the aim of a measure is reached on the first set: the lead must be as large over every control,
    random derivations included where a verifier selects, and significant over each; and the first variant must be
    significantly better than ``MUST_BEAT``, which leave out the claimed causes of the gain."""
    tasks, measure = skill["sets"][0]["name"], MEASURES[name]
    rows = _rows(skill, "against", tasks, name)
    least = min((100 * row["mean"] for row in rows), default=0.0)
    short = [] if least >= 100 * (measure.aim or 0) else [f"the least lead is {least:.1f} points"]
    against = {row["against"]: row["word"] for row in rows}
    required = (SAME_TRIES, SAME_TOKENS) if measure.picked == "check" else ()
    short += [f"not measured against {one}" for one in required if one not in against]
    if unsure := [one for one, word in against.items() if word != IMPROVED]:
        short.append(f"not significant over {len(unsure)} of {len(against)} controls")
    others = {row["against"]: row["word"] for row in _rows(skill, "arms", tasks, name)}
    words = {IMPROVED: "", None: "not measured against {}"}
    found = [words.get(others.get(one), "not significantly better than {}").format(one) for one in MUST_BEAT]
    short += [one for one in found if one]
    result = f"not reached ({'; '.join(short)})" if short else "reached"
    wants = f"{100 * (measure.aim or 0):.0f} points over every control, and better than {' and '.join(MUST_BEAT)}"
    return f"The aim was {wants}: {result}."


def answer(skill: Row) -> list[str]:
    """Summarise the page in at most five lines."""
    if not skill["means"]:
        return []
    first = next(row["who"] for row in skill["means"])
    aims = [f"{MEASURES[name].title}: {aimed(skill, name)}" for name in MAIN if MEASURES[name].aim]
    said = [one for one in (_source(skill, first), *_gains(skill, first), _variants(skill)) if one]
    return [*said, f"**Aims.** {' '.join(f'{one[0].upper()}{one[1:]}' for one in aims)}"]


def _compared(skill: Row) -> list[Row]:
    """The first variant beside every control and every other variant on the first set, where a check picks."""
    tasks = skill["sets"][0]["name"]
    rows = [row for held in ("against", "arms") for row in _rows(skill, held, tasks, "within")]
    shown = [(row["arm"], "-", "-", "-") for row in rows[:1]]
    shown += [(row["against"], points(row["mean"]), span(row), word(row)) for row in rows]
    return [
        {"who": who, "solved": _solved(skill, tasks, who), "points": much, "95 % interval": within, "conclusion": said}
        for who, much, within, said in shown
    ]


def _solved(skill: Row, tasks: str, name: str) -> str:
    """A control's or an arm's share by the measure where a check picks."""
    short, picked = MEASURES["within"].short, MEASURES["within"].picked
    means = (r for r in skill["means"] if r["set"] == tasks and r["picked"] == picked)
    found = next(
        (r for r in means if (r["who"], r["how"]) == (name, short) or (r["who"] in UNTRAINED and r["how"] == name)),
        None,
    )
    return "-" if found is None else f"{100 * found['mean']:.1f} %"


def _source(skill: Row, first: str) -> str:
    made = next((row for row in skill["learned"] if row["arm"] == first), None)
    if made is None:
        return "This is supervised training on synthetic search traces that a tool makes, seeded by the model's tries."
    return (
        "**Source of the supervision:** a tool (`Family.retrace`, `agent0.training.search_traces`) makes the search "
        f"traces, seeded by the model's tries. Of what {first} learns, {100 * made['written']:.0f} % is as the student "
        "wrote it."
    )


def _gains(skill: Row, first: str) -> Iterator[str]:
    """The first set and the one outside the trained range: the student, its base, chance."""
    short = MEASURES["within"].short
    for tasks in (one["name"] for place, one in enumerate(skill["sets"]) if not place or one["name"] == OUTSIDE):
        shown = [(first, first, short), ("the base asked alike", BASE, short)]
        shown += [(title, CHANCE, title) for title in (SAME_TRIES, SAME_TOKENS)]
        found = [f"{title} {share}" for title, who, how in shown if (share := _share(skill, tasks, who, how))]
        yield f"**{tasks}, {MEASURES['within'].title}:** {'; '.join(found)}."


def _variants(skill: Row) -> str:
    """The first arm beside those that leave out the student's tries, their verdicts or the corrections."""
    rows = _rows(skill, "arms", skill["sets"][0]["name"], "within")
    found = [f"{row['against']} {points(row['mean'])} ({word(row)})" for row in rows if row["against"] in VARIANTS]
    return f"**{rows[0]['arm']} less its variants, in points:** {'; '.join(found)}." if found else ""


def word(row: Row) -> str:
    """Name the conclusion of a difference, with its p after Holm's correction."""
    if row["adjusted_p"] is None:
        return str(row["word"])
    words = {IMPROVED: "better: significant", FELL: "worse: significant"}
    return f"{words.get(row['word'], 'not significant')} (adjusted p {row['adjusted_p']:.2g})"


def _alike(row: Row) -> str:
    return (
        f"{row['arm']} beside its own base, both asked the same ({row['set']}, {MEASURES[row['measure']].title}): "
        f"{points(row['mean'])} points, {span(row)}: {word(row)}."
    )


def _rows(skill: Row, held: str, tasks: str, measure: str) -> list[Row]:
    return [row for row in skill[held] if row["set"] == tasks and row["measure"] == measure]


def _share(skill: Row, tasks: str, who: str, how: str) -> str:
    return next((shares(row) for row in skill["means"] if _is(row, tasks, who, how)), "")


def _is(row: Row, tasks: str, who: str, how: str) -> bool:
    return (row["set"], row["who"], row["how"]) == (tasks, who, how)
