"""What a climb came to in three lines: what was learned, against which control, and what may not be claimed."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent0.experiments.ladder_rows import better_on_every_seed
from agent0.report.charts.ladder_picture import BLOCKS, Row, picture
from agent0.tasks.curriculum.ladder_height import Standing

Found = Mapping[str, Any]
CONTROLS = (
    "agent0 experiment ablation --profile climb --seeds 0 --variant ours: "
    "--variant permuted:run.training.student.verdicts=permuted"
)
PAGE = "docs/results/studies.md"


def run_standings(found: Found) -> tuple[Standing, Standing] | None:
    """Where the base and the last student of a run stand on the test levels, from its overview; None where either was
    not scored."""
    scored = [one for one in found["test"] if not one["forced_tool"]]
    base = [one for one in scored if not one["evaluation"].endswith("-final")]
    last = [one for one in scored if one["evaluation"].endswith("-final")]
    return (Standing(base[0]["by_level"]), Standing(last[-1]["by_level"])) if base and last else None


def run_lines(found: Found) -> list[str]:
    """Sum a lone run on a ladder up: it has no control beside it, so the line names the command that runs one."""
    held = run_standings(found)
    if held is None:
        return []
    before, after = held
    heights, sums = f"{before.height} -> {after.height}", f"{before.added:.2f} -> {after.added:.2f}"
    return [
        f"{_found_out(after.added > before.added)}: T {heights}, S {sums} on fresh test tasks "
        "(T: highest level half solved; S: accuracies of all levels added up).",
        f"Control: none ran beside it. {CONTROLS}",
        f"Not to be claimed: anything, from one run without a control. Over seeds: {PAGE}; this run: agent0 report "
        f"{found['run']}",
    ]


def _found_out(higher: bool) -> str:
    return "Learned" if higher else "Measured"


def run_picture(found: Found, marks: str = BLOCKS) -> list[str]:
    """Draw the base and the last student of a run on the test levels; empty where either was not scored."""
    held = run_standings(found)
    if held is None:
        return []
    rows = [Row(name, standing) for name, standing in zip(("base", "last student"), held, strict=True)]
    return picture(rows, "fresh test tasks", found["config"]["curriculum"].get("mastered", 0), marks)


def study_lines(found: Found, page: str) -> list[str]:
    """Sum a study on a ladder up; ``page`` is where all of it stands. Empty where no run of its first variant is
    finished."""
    first, *others = found["about"]
    own = _of(found, first)
    if not own:
        return []
    seeds = f"{len(own)} seed{'s' if len(own) > 1 else ''}"
    base = f"T {_each(own, 'height_untrained')} -> {_each(own, 'height')}"
    added = f"S {_each(own, 'added_untrained')} -> {_each(own, 'added')}"
    higher = all(one["added"] > one["added_untrained"] for one in own)
    return [
        f"{_found_out(higher)}: {first} {base}, {added} ({seeds}; T: highest test level half solved; S: accuracies "
        "added up).",
        f"Controls, asked for as many attempts and steps: {_controls(found, others) or 'none is finished'}.",
        f"Not to be claimed: {_limits(found, first, others)}. All of it: {page}",
    ]


def _of(found: Found, arm: str) -> list[Found]:
    return [row for row in found["ladder"] if row["arm"] == arm and row["height"] is not None]


def _each(rows: Sequence[Found], name: str) -> str:
    """One number a seed: ``12`` or ``12/14/11``."""
    return "/".join("-" if row[name] is None else f"{row[name]:g}" for row in rows)


def _controls(found: Found, others: Sequence[str]) -> str:
    held = {other: _of(found, other) for other in others}
    return "; ".join(
        f"{name} T {_each(rows, 'height')}, S {_each(rows, 'added')}" for name, rows in held.items() if rows
    )


def _limits(found: Found, first: str, others: Sequence[str]) -> str:
    """What the numbers do not carry."""
    own = _of(found, first)
    told = ["one seed says nothing of others"] if len(own) == 1 else []
    level = [other for other in others if _of(found, other) and not better_on_every_seed(found["ladder"], first, other)]
    told += [f"{first} above {', '.join(level)} (not so in S on every seed)"] if level else []
    missing = [other for other in others if not _of(found, other)]
    told += [f"anything about {', '.join(missing)} (not finished)"] if missing else []
    return "; ".join(told) or "other ladders, other models"
