"""Runs and experiments side by side."""

from pathlib import Path
from typing import Annotated

import typer

from agent0.assembly.replay.compare_runs import gather_different
from agent0.cli import console, flags, lookup
from agent0.experiments.compare_runs import AgainstRow, RunComparison, side_by_side
from agent0.report.answers import compare_answer
from agent0.report.conclusions import conclusion
from agent0.report.html.benchmark_page import compare_page


def compare(
    names: Annotated[
        list[str], typer.Argument(metavar="A B …", help="Runs and experiments; the first is the measure.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", callback=console.in_folder, help="Also write one HTML file."),
    ] = None,
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """Runs and experiments side by side: rewards, held-out curves with paired tests, what changed sides, how much of
    what models wrote could be read, cost."""
    names = [lookup.of_newest(name) for name in names]
    settings = flags.settings()
    comparison = side_by_side(console.run_async(lambda: gather_different(settings, names)))
    if out is not None:
        console.write(out, compare_page(comparison))
    if as_json:
        console.data(comparison)
        return
    console.print_lines(compare_answer(comparison))
    if full:
        _show_sides(comparison)
    if out is not None:
        console.text(str(out))


def _show_sides(comparison: RunComparison) -> None:
    console.table(comparison["rewards"], False, title="Rewards")
    last = [{"name": name, **curve[-1]} for name, curve in comparison["curves"].items() if curve]
    console.table(last, False, title="\nLast validation score")
    rows = [_against(row) for row in comparison["against"]]
    heads = ("name", "conclusion", "mean", "lower95", "upper95", "adjusted_p", "detectable", "teacher_rank_correlation")
    first = comparison["names"][0]
    console.table(rows, False, (*heads, "changed_sides"), title=f"\nAgainst {first}, on the same items")
    console.table(comparison["read"], False, title="\nWhat was written, and what of it could be read")
    console.table(comparison["cost"], False, title="\nCost")


def _against(row: AgainstRow) -> dict[str, object]:
    """The columns of one comparison, its conclusion in words."""
    held_out = row["held_out"]
    concluded = {**held_out, "conclusion": conclusion(held_out["word"])} if held_out else {}
    return {**row, **concluded, "changed_sides": len(row["changed_sides"])}
