"""What a climb came to in three lines: what was learned, against which control, and what may not be claimed."""

from collections.abc import Iterable, Sequence

from agent0.experiments.ladder_rows import LadderRow, better_on_every_seed
from agent0.experiments.study_results import StudyResults
from agent0.projections.base import Row
from agent0.report.charts import ladder_picture
from agent0.tasks.curriculum.ladder_height import Standing

CONTROLS = (
    "agent0 experiment ablation --profile climb --seeds 0 --variant ours: "
    "--variant permuted:run.training.student.gate=permuted"
)
PAGE = "docs/results/studies.md"


def run_standings(summary: Row) -> tuple[Standing, Standing] | None:
    """Where the base and the last student of a run stand on the test levels, from its overview; None where either was
    not scored."""
    scored = [score for score in summary["test"] if not score["forced_tool"]]
    base = [score for score in scored if not score["evaluation"].endswith("-final")]
    last = [score for score in scored if score["evaluation"].endswith("-final")]
    return (Standing(base[0]["by_level"]), Standing(last[-1]["by_level"])) if base and last else None


def run_lines(summary: Row) -> list[str]:
    """Sum a lone run on a ladder up: it has no control beside it, so the line names the command that runs one."""
    standings = run_standings(summary)
    if standings is None:
        return []
    before, after = standings
    heights, sums = f"{before.height} -> {after.height}", f"{before.added:.2f} -> {after.added:.2f}"
    return [
        f"{_found_out(after.added > before.added)}: T {heights}, S {sums} on fresh test tasks "
        "(T: highest level half solved; S: accuracies of all levels added up).",
        f"Control: none ran beside it. {CONTROLS}",
        f"Not to be claimed: anything, from one run without a control. Over seeds: {PAGE}; this run: agent0 report "
        f"{summary['run']}",
    ]


def _found_out(higher: bool) -> str:
    return "Learned" if higher else "Measured"


def run_picture(summary: Row, marks: str = ladder_picture.BLOCKS) -> list[str]:
    """Draw the base and the last student of a run on the test levels; empty where either was not scored."""
    standings = run_standings(summary)
    if standings is None:
        return []
    rows = [
        ladder_picture.Row(name, standing) for name, standing in zip(("base", "last student"), standings, strict=True)
    ]
    return ladder_picture.picture(rows, "fresh test tasks", summary["config"]["curriculum"].get("mastered", 0), marks)


def study_lines(results: StudyResults, page: str) -> list[str]:
    """Sum a study on a ladder up; ``page`` is where all of it stands. Empty where no run of its first variant is
    finished."""
    first, *others = results["about"]
    finished = _of(results, first)
    if not finished:
        return []
    seeds = f"{len(finished)} seed{'s' if len(finished) > 1 else ''}"
    heights, sums = _measures(finished)
    heights = f"T {_each(row['height_untrained'] for row in finished)} -> {heights}"
    added = f"S {_each(row['added_untrained'] for row in finished)} -> {sums}"
    higher = all((row["added"] or 0) > (row["added_untrained"] or 0) for row in finished)
    return [
        f"{_found_out(higher)}: {first} {heights}, {added} ({seeds}; T: highest test level half solved; S: accuracies "
        "added up).",
        f"Controls, asked for as many attempts and steps: {_controls(results, others) or 'none is finished'}.",
        f"Not to be claimed: {_limits(results, first, others)}. All of it: {page}",
    ]


def _of(results: StudyResults, arm: str) -> list[LadderRow]:
    return [row for row in results["ladder"] if row["arm"] == arm and row["height"] is not None]


def _each(numbers: Iterable[float | None]) -> str:
    """One number a seed: ``12`` or ``12/14/11``."""
    return "/".join("-" if number is None else f"{number:g}" for number in numbers)


def _measures(rows: Sequence[LadderRow]) -> tuple[str, str]:
    """T and S of the last students."""
    return _each(row["height"] for row in rows), _each(row["added"] for row in rows)


def _controls(results: StudyResults, others: Sequence[str]) -> str:
    by_control = {other: _of(results, other) for other in others}
    return "; ".join("{} T {}, S {}".format(name, *_measures(rows)) for name, rows in by_control.items() if rows)


def _limits(results: StudyResults, first: str, others: Sequence[str]) -> str:
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
