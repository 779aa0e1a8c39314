"""What a climb came to in three lines: what was learned, against which control, and what may not be claimed."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent0.experiments.ladder_rows import better_on_every_seed
from agent0.report.charts.ladder_picture import BLOCKS, Row, picture
from agent0.tasks.curriculum.ladder_height import Standing

Found = Mapping[str, Any]
CONTROLS = (
    "agent0 experiment ablation --profile climb --seeds 0 --variant ours: "
    "--variant permuted:run.training.student.gate=permuted"
)
PAGE = "docs/results/studies.md"


def run_standings(results: Found) -> tuple[Standing, Standing] | None:
    """Where the base and the last student of a run stand on the test levels, from its overview; None where either was
    not scored."""
    scored = [score for score in results["test"] if not score["forced_tool"]]
    base = [score for score in scored if not score["evaluation"].endswith("-final")]
    last = [score for score in scored if score["evaluation"].endswith("-final")]
    return (Standing(base[0]["by_level"]), Standing(last[-1]["by_level"])) if base and last else None


def run_lines(results: Found) -> list[str]:
    """Sum a lone run on a ladder up: it has no control beside it, so the line names the command that runs one."""
    standings = run_standings(results)
    if standings is None:
        return []
    before, after = standings
    heights, sums = f"{before.height} -> {after.height}", f"{before.added:.2f} -> {after.added:.2f}"
    return [
        f"{_found_out(after.added > before.added)}: T {heights}, S {sums} on fresh test tasks "
        "(T: highest level half solved; S: accuracies of all levels added up).",
        f"Control: none ran beside it. {CONTROLS}",
        f"Not to be claimed: anything, from one run without a control. Over seeds: {PAGE}; this run: agent0 report "
        f"{results['run']}",
    ]


def _found_out(higher: bool) -> str:
    return "Learned" if higher else "Measured"


def run_picture(results: Found, marks: str = BLOCKS) -> list[str]:
    """Draw the base and the last student of a run on the test levels; empty where either was not scored."""
    standings = run_standings(results)
    if standings is None:
        return []
    rows = [Row(name, standing) for name, standing in zip(("base", "last student"), standings, strict=True)]
    return picture(rows, "fresh test tasks", results["config"]["curriculum"].get("mastered", 0), marks)


def study_lines(results: Found, page: str) -> list[str]:
    """Sum a study on a ladder up; ``page`` is where all of it stands. Empty where no run of its first variant is
    finished."""
    first, *others = results["about"]
    finished = _of(results, first)
    if not finished:
        return []
    seeds = f"{len(finished)} seed{'s' if len(finished) > 1 else ''}"
    base = f"T {_each(finished, 'height_untrained')} -> {_each(finished, 'height')}"
    added = f"S {_each(finished, 'added_untrained')} -> {_each(finished, 'added')}"
    higher = all(row["added"] > row["added_untrained"] for row in finished)
    return [
        f"{_found_out(higher)}: {first} {base}, {added} ({seeds}; T: highest test level half solved; S: accuracies "
        "added up).",
        f"Controls, asked for as many attempts and steps: {_controls(results, others) or 'none is finished'}.",
        f"Not to be claimed: {_limits(results, first, others)}. All of it: {page}",
    ]


def _of(results: Found, arm: str) -> list[Found]:
    return [row for row in results["ladder"] if row["arm"] == arm and row["height"] is not None]


def _each(rows: Sequence[Found], name: str) -> str:
    """One number a seed: ``12`` or ``12/14/11``."""
    return "/".join("-" if row[name] is None else f"{row[name]:g}" for row in rows)


def _controls(results: Found, others: Sequence[str]) -> str:
    by_control = {other: _of(results, other) for other in others}
    return "; ".join(
        f"{name} T {_each(rows, 'height')}, S {_each(rows, 'added')}" for name, rows in by_control.items() if rows
    )


def _limits(results: Found, first: str, others: Sequence[str]) -> str:
    """What the numbers do not carry."""
    finished = _of(results, first)
    limits = ["one seed says nothing of others"] if len(finished) == 1 else []
    level = [
        other for other in others if _of(results, other) and not better_on_every_seed(results["ladder"], first, other)
    ]
    limits += [f"{first} above {', '.join(level)} (not so in S on every seed)"] if level else []
    missing = [other for other in others if not _of(results, other)]
    limits += [f"anything about {', '.join(missing)} (not finished)"] if missing else []
    return "; ".join(limits) or "other ladders, other models"
