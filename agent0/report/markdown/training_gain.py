"""The gain of training on a study's Markdown page. Every sentence follows from the numbers, whatever they are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agent0.experiments.ablation_results import ONE_SEED, TESTED
from agent0.experiments.training_gain import BASE, CHANCE, MEASURES, SAME_TOKENS, SAME_TRIES
from agent0.report.markdown.tables import claim, picture, points, shares, span, table, variants_named
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


def sections(found: Row, pictures: Mapping[str, str]) -> Iterator[str]:
    """Write the sections of a study's page on its evaluation protocols. ``pictures`` are files beside it, by set, and
    ``arms``."""
    skill = found["skill"]
    yield from _asked(skill)
    yield from _base(found)
    for one in skill["sets"]:
        yield from _set(skill, one, pictures.get(one["name"], ""))
    yield from _arms(skill, pictures.get("arms", ""))
    yield from _made(skill)


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


def answer(skill: Row) -> Iterator[str]:
    """Summarise the page in at most five lines."""
    if not skill["means"]:
        return
    first = next(row["who"] for row in skill["means"])
    yield from (f"- {one}" for one in (_source(skill, first), *_gains(skill, first), _variants(skill)) if one)
    aims = [f"{MEASURES[name].title}: {aimed(skill, name)}" for name in MAIN if MEASURES[name].aim]
    yield f"- **Aims.** {' '.join(f'{one[0].upper()}{one[1:]}' for one in aims)}\n"


def leading(skill: Row) -> Iterator[str]:
    """The first variant beside every control and every other variant on the first set, where a check picks; nothing
    without such a row."""
    tasks, measure = skill["sets"][0]["name"], MEASURES["within"]
    rows = [row for held in ("against", "arms") for row in _rows(skill, held, tasks, "within")]
    if not rows:
        return
    first = rows[0]["arm"]
    yield f"{tasks[0].upper()}{tasks[1:]}, {measure.title}, means over seeds:\n"
    compared = [
        {"who": first, "solved": _solved(skill, tasks, first), "points": "-", "95 % interval": "-", "conclusion": "-"}
    ]
    compared += [
        {
            "who": row["against"],
            "solved": _solved(skill, tasks, row["against"]),
            "points": points(row["mean"]),
            "95 % interval": span(row),
            "conclusion": word(row),
        }
        for row in rows
    ]
    yield from table(compared)
    yield f"*points*: {first} less that row.\n"


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


def _asked(skill: Row) -> Iterator[str]:
    yield from (
        f"- **{one['name']}**: {one['n']} {one['title']} (levels {', '.join(map(str, one['levels']))}, test split, "
        f"seed {one['seed']}); the same for every seed and variant, answered once by each student."
        for one in skill["sets"]
    )
    yield ""
    yield (
        "*Within* is pass@k (verifier-selected): a task counts as solved where any of k attempts is right. All other "
        "rows have no such selection; *within* rows beside them are shown, not compared. One attempt may hold several "
        "tries that the student alone judges: *tokens an attempt* says what it costs. *Random derivations* need no "
        "model: of all pairs of numbers with all signs whose value is within 1 to 99 one is drawn, each as likely, "
        "until one number is left; what so many checked ones come to is computed exactly, task by task. *As many "
        "tokens*: as many derivations, in boxes and counted by the base's tokenizer, as fit into what the student "
        "wrote in its attempts at a task, on average. The student is asked at one "
        "temperature that was fixed beforehand; the base at several, and the best of them counts. Where its tool is "
        "forced, the base is lent Python and SymPy.\n"
    )


def _base(found: Row) -> Iterator[str]:
    if "bases" not in found:
        return
    yield "## Training of the base model\n"
    yield f"Taught: {found['taught']}\n"
    yield f"Left out: {found['left_out']}\n"
    yield "`agent0 tiny card --course " + found["course"] + "` has the rest.\n"
    yield from table({**one, "sha256": f"`{str(one['sha256'])[:12]}`"} for one in found["bases"])


def _set(skill: Row, tasks: Row, drawn: str) -> Iterator[str]:
    name = tasks["name"]
    yield f"## {name[0].upper()}{name[1:]}: {tasks['title']}\n"
    yield from picture(drawn, f"{name}: every measure and every control, means over seeds with 95 % intervals")
    first = next((row["arm"] for row in skill["arms"] or skill["alike"]), "")
    held = [row for row in skill["means"] if row["set"] == name and row["who"] in (first, *UNTRAINED)]
    for picked, title in (("check", "Verifier-selected"), ("nobody", "No selection")):
        yield f"**{title}.**\n"
        yield from table(_mean(row) for row in held if row["picked"] == picked)
    yield "Differences to every control, on the same items and seeds:\n"
    yield from table(_claim(row) for row in skill["against"] if row["set"] == name)


def _mean(row: Row) -> dict[str, Any]:
    seeds = ", ".join(f"{share:.3f}" for share in row["by_seed"].values())
    columns = {"who": row["who"], "how": row["how"], "solved": shares(row), "by seed": seeds, "tasks": row["items"]}
    return columns | {"tokens an attempt": None if row["tokens"] is None else f"{row['tokens']:.0f}"}


def _claim(row: Row) -> dict[str, Any]:
    return {"measure": MEASURES[row["measure"]].title, **claim(row), "conclusion": word(row)}


def _arms(skill: Row, drawn: str) -> Iterator[str]:
    yield "## The effect of each part\n"
    yield from picture(drawn, "Every variant and its base on the first set, means over seeds with 95 % intervals")
    yield "The first variant less each other one; *better*: the first is better.\n"
    yield from table({"set": row["set"], **_claim(row)} for row in skill["arms"])
    yield "Every variant less its own base, under the same protocol:\n"
    yield from table({"set": row["set"], **_claim(row)} for row in skill["alike"])
    yield f"{TESTED} Holm's correction runs over the rows of one set and measure in a table.\n"


def _made(skill: Row) -> Iterator[str]:
    if not skill["learned"]:
        return
    yield "## What training examples are made of\n"
    yield (
        "The source of the supervision is a tool, `agent0.training.search_traces` with `Family.retrace`: it carries "
        "out each try without mistakes, decides what it solves, and lays the tries out. Of the characters that count "
        "in training, "
        "as shares over seeds: *written*: the step stands so in the try that the variant begins with (the student's; "
        "in random-tries a random derivation); *corrected*: the tool wrote the step otherwise; *placed*: boxes and "
        "`no` around the tries. *other_tasks*: share of the examples that are for a task which was not asked.\n"
    )
    yield from table(map(variants_named, skill["learned"]))


def evaluation_cost(skill: Row) -> str:
    """State the cost of all evaluations of a study in one sentence."""
    total = skill["cost"]
    return (
        f"All evaluations: {total['exams']}, with {total['attempts']:,} attempts and {total['tokens']:,} tokens, in "
        f"{total['seconds']:,.0f} s.\n"
    )
