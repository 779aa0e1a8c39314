"""What a page tells of exams: what training was worth. Every sentence follows from the numbers, whatever they are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agent0.arms import ONE_SEED, TESTED
from agent0.comparison import FELL, IMPROVED, LEVEL
from agent0.markdown import claim, picture, points, shares, span, table
from agent0.skill import BASE, MEASURES

Row = Mapping[str, Any]
MAIN = ("within", "single")
"""Measures that are told of every set and arm."""


def parts(found: Row, pictures: Mapping[str, str]) -> Iterator[str]:
    """What a grid's page has of its exams. ``pictures`` are files beside it, by set, and ``arms``."""
    skill = found["skill"]
    yield from _asked(skill)
    yield from _base(found)
    for one in skill["sets"]:
        yield from _set(skill, one, pictures.get(one["name"], ""))
    yield from _arms(skill, pictures.get("arms", ""))


def sentences(skill: Row) -> list[str]:
    """What may be said: how far the first arm is ahead of the nearest control, set by set and measure by measure; what
    became of the other arms beside their own bases; in which cells nothing was learned."""
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


def still_base(cells: Iterable[Row]) -> list[str]:
    """In which cells no student was promoted, in a sentence; none where there is no such cell."""
    still = [f"{row['arm']} (seed {row['seed']})" for row in cells if row["student"] == BASE]
    return [f"No trained student was promoted, so the student is still the base: {', '.join(still)}."] if still else []


def _lead(skill: Row, tasks: Row, name: str) -> str:
    """The lead over all controls is that over the nearest one."""
    rows, common = (
        [row for row in skill[held] if row["set"] == tasks["name"] and row["measure"] == name]
        for held in ("against", "against_in_common")
    )
    if not rows:
        return ""
    nearest, measure = min(rows, key=lambda row: row["mean"]), MEASURES[name]
    own = next(shares(r) for r in skill["means"] if _is(r, tasks["name"], nearest["arm"], measure.short))
    theirs = next(
        shares(r)
        for r in skill["means"]
        if _is(r, tasks["name"], BASE, nearest["against"]) and r["picked"] == measure.picked
    )
    lead = 100 * nearest["mean"]
    more, less = f"{lead:.1f} points more than any control", f"{-lead:.1f} points less than the best control"
    much = "as many as the best control" if round(lead, 1) == 0 else more if lead > 0 else less
    shown = [row for row in rows if row["word"] == IMPROVED]
    aim = "" if measure.aim is None or tasks is not skill["sets"][0] else _aim(measure.aim, lead)
    return (
        f"**{tasks['name']}, {measure.title}:** {nearest['arm']} {own}, {much} (the nearest: {nearest['against']}, "
        f"{theirs}; {span(nearest)}). {_claimed(rows, shown, common)}{aim}"
    )


def _claimed(rows: Sequence[Row], shown: Sequence[Row], common: Sequence[Row]) -> str:
    if all(row["word"] == ONE_SEED for row in rows):
        return f"{ONE_SEED[0].upper()}{ONE_SEED[1:]}."
    told = f"Better is shown for {len(shown) if len(shown) < len(rows) else 'each'} of {len(rows)} controls."
    return told + _apart(rows) + _together(rows, common)


def _together(rows: Sequence[Row], common: Sequence[Row]) -> str:
    """Better than every control at once: that is so where it holds for each, so no correction is due and the greatest
    p is that of all (the intersection-union test, Berger 1982)."""
    if any(row["p"] is None or row["mean"] <= 0 for row in rows):
        return ""
    p = max(row["p"] for row in rows)
    shown = "is shown" if p < LEVEL and all(row["low"] > 0 for row in rows) else "is not shown"
    least = f"; {max(row['p'] for row in common):.2g} by the seeds that every arm has" if common else ""
    return f" That it is better than every one of them {shown} (p = {p:.2g}, the greatest of all{least})."


def _apart(rows: Sequence[Row]) -> str:
    """What the first is not shown to be better than."""
    same = [row["against"] for row in rows if row["word"] not in (IMPROVED, FELL)]
    fell = [row["against"] for row in rows if row["word"] == FELL]
    told = f" Not told apart from: {'any' if len(same) == len(rows) else '; '.join(same)}." if same else ""
    return told + (f" Worse than: {'any' if len(fell) == len(rows) else '; '.join(fell)}." if fell else "")


def _part(skill: Row, name: str, tasks: str) -> str:
    """The first arm beside all others."""
    rows = [row for row in skill["arms"] if row["set"] == tasks and row["measure"] == name]
    if not rows:
        return ""
    led = "; ".join(f"{row['against']} {points(row['mean'])} ({span(row)})" for row in rows)
    shown = [row["against"] for row in rows if row["word"] == IMPROVED]
    better = f" Better is shown than: {'; '.join(shown)}." if shown else ""
    alone = f" {ONE_SEED[0].upper()}{ONE_SEED[1:]}." if all(row["word"] == ONE_SEED for row in rows) else ""
    told = alone or better + _apart(rows)
    return f"**{rows[0]['arm']} less each other arm, {tasks}, {MEASURES[name].title}, in points:** {led}.{told}"


def _aim(aim: float, lead: float) -> str:
    reached = "reached" if lead >= 100 * aim else "not reached"
    return f" The aim was {100 * aim:.0f} points more than every control: {reached}, by the mean over seeds."


def _alike(row: Row) -> str:
    return (
        f"{row['arm']} beside its own base, both asked the same ({row['set']}, {MEASURES[row['measure']].title}): "
        f"{points(row['mean'])} points, {span(row)}: {row['word']}."
    )


def _is(row: Row, tasks: str, who: str, how: str) -> bool:
    return (row["set"], row["who"], row["how"]) == (tasks, who, how)


def _asked(skill: Row) -> Iterator[str]:
    yield from (
        f"- **{one['name']}**: {one['n']} {one['title']} (levels {', '.join(map(str, one['levels']))}, test split, "
        f"seed {one['seed']}); the same for every seed and arm, answered once by each student."
        for one in skill["sets"]
    )
    yield ""
    yield (
        "*Within* means that a check picks: a task counts as solved where any of so many attempts is right. In all "
        "other rows nobody picks; *within* rows beside them are shown, not compared. One attempt may hold several "
        "tries that the student alone judges: *tokens an attempt* says what it costs. The student is asked at one "
        "temperature that was fixed beforehand; the base at several, and the best of them counts. Where its tool is "
        "forced, the base is lent Python and SymPy.\n"
    )


def _base(found: Row) -> Iterator[str]:
    if "bases" not in found:
        return
    yield "## What the base was taught\n"
    yield f"Taught: {found['taught']}\n"
    yield f"Left out: {found['left_out']}\n"
    yield "`agent0 tiny card --course " + found["course"] + "` has the rest.\n"
    yield from table({**one, "sha256": f"`{str(one['sha256'])[:12]}`"} for one in found["bases"])


def _set(skill: Row, tasks: Row, drawn: str) -> Iterator[str]:
    name = tasks["name"]
    yield f"## {name[0].upper()}{name[1:]}: {tasks['title']}\n"
    yield from picture(drawn, f"{name}: every measure and every control, means over seeds with 95 % intervals")
    first = next((row["arm"] for row in skill["arms"] or skill["alike"]), "")
    held = [row for row in skill["means"] if row["set"] == name and row["who"] in (first, BASE)]
    for picked, title in (("check", "A check picks"), ("nobody", "Nobody picks")):
        yield f"**{title}.**\n"
        yield from table(_mean(row) for row in held if row["picked"] == picked)
    yield "Differences to every control, on the same items and seeds:\n"
    yield from table(_claim(row) for row in skill["against"] if row["set"] == name)


def _mean(row: Row) -> dict[str, Any]:
    seeds = ", ".join(f"{share:.3f}" for share in row["by_seed"].values())
    told = {"who": row["who"], "how": row["how"], "solved": shares(row), "by seed": seeds, "tasks": row["items"]}
    return told | {"tokens an attempt": f"{row['tokens']:.0f}"}


def _claim(row: Row) -> dict[str, Any]:
    return {"measure": MEASURES[row["measure"]].title, **claim(row)}


def _arms(skill: Row, drawn: str) -> Iterator[str]:
    yield "## What each part is worth\n"
    yield from picture(drawn, "Every arm and its base on the first set, means over seeds with 95 % intervals")
    yield "The first arm less each other one; *improved* says that the first is better.\n"
    yield from table({"set": row["set"], **_claim(row)} for row in skill["arms"])
    yield "Every arm less its own base, asked the same:\n"
    yield from table({"set": row["set"], **_claim(row)} for row in skill["alike"])
    yield f"{TESTED} Holm's correction runs over the rows of one set and measure in a table.\n"


def exams(skill: Row) -> str:
    """What all of them took."""
    sat = skill["cost"]
    return (
        f"All exams together: {sat['exams']} with {sat['attempts']:,} attempts and {sat['tokens']:,} tokens in "
        f"{sat['seconds']:,.0f} s.\n"
    )
