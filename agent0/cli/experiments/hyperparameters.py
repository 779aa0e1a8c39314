"""A hyperparameter search on a run's stored trajectories."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.cli import console
from agent0.cli.experiments.study_pages import readable_rows, write_page
from agent0.experiments.hyperparameter_search import space_of
from agent0.projections.runs import resolve
from agent0.report.answers import search_answer
from agent0.report.markdown.hyperparameters import page


def hyperparameters(
    run: console.Run = "LAST",
    over: Annotated[
        list[str] | None,
        typer.Option("--search", metavar="KEY=A,B,C", help="Values of the student's recipe: rank=4,16."),
    ] = None,
    number: Annotated[
        int, typer.Option("--trials", min=0, help="Number of combinations, drawn at random; 0: all of them.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Draws the trials.")] = 0,
    name: Annotated[
        str, typer.Option("--name", "-n", help="Its trials are named after it; empty: after the run.")
    ] = "",
    page: Annotated[
        Path | None,
        typer.Option("--write", metavar="FILE", callback=console.in_folder, help="Write a Markdown page."),
    ] = None,
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """Train on a run's stored trajectories under other recipes, and rank these by validation score. Nothing is
    generated again, and the test set is never scored. Killed, the same command goes on."""
    from agent0.assembly.ablations.hyperparameters import Search
    from agent0.assembly.ablations.hyperparameters import search as look

    space, settings = space_of(over or ()), console.settings()
    with console.tables() as db:
        of = str(resolve(db, run))
    request = Search(of, name or f"search-{of}"[:40], space, number, seed)
    result = console.run_async(lambda: look(settings, request, (lambda _: None) if as_json else console.say))
    if page:
        write_page(page, _page(result, over or (), number, seed))
    _tell_search(result, full, as_json)
    if result["failed"]:
        raise typer.Exit(1)


def _tell_search(result: dict[str, Any], full: bool, as_json: bool) -> None:
    if as_json:
        console.data(result)
        return
    console.print_lines(search_answer(result))
    if full:
        _show_search(result)
    for failure in result["failed"]:
        console.text(f"{failure['trial']} ({failure['words']}) failed: {failure['why']}")


def _page(result: dict[str, Any], over: Sequence[str], number: int, seed: int) -> str:
    flags = [f"--search {space}" for space in over] + ([f"--trials {number} --seed {seed}"] if number else [])
    return page(
        result, f"agent0 experiment hyperparameters LAST {' '.join(flags)} --write docs/results/hyperparameters.md"
    )


def _show_search(result: dict[str, Any]) -> None:
    rows = readable_rows([_flat(row) for row in result["trials"]])
    searched = [key.rpartition(".")[2] for key in result["searched"]]
    columns = ("validation", "low", "high", "difference", "adjusted_p", "conclusion", "steps", "training_s", "trial")
    console.table(rows, False, (*searched, *columns), title="Trials, the best on validation first")
    best = [_flat(row) for row in result["best_by_budget"]]
    columns_of_best = ("trainings", "steps", *searched, "validation", "low", "high")
    console.table(best, False, columns_of_best, title="\nThe best after so many trainings")


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, **{key.rpartition(".")[2]: text for key, text in row["settings"].items()}}
