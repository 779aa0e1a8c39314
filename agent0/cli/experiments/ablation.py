"""An ablation study: variants of settings over seeds, of a study file or as the user types them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent0.cli import console
from agent0.experiments.ablation_runs import variant_of

if TYPE_CHECKING:
    from agent0.assembly.ablations.study_request import StudyRequest

Study = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="A study file, in TOML; without one --variant names them all.")
]
Variants = Annotated[
    list[str] | None,
    typer.Option(
        "--variant",
        metavar="NAME:KEY=VALUE,…",
        help="A variant, added to the file's; the first of all is the baseline. NAME: alone is the profile.",
    ),
]
Only = Annotated[
    str, typer.Option(metavar="VARIANT,VARIANT", help="Only these variants; the first of them is the baseline.")
]
Profile = Annotated[
    str | None, typer.Option("--profile", "-p", help="tiny, scripted … or the path of a .toml file; empty: the file's.")
]
Seeds = Annotated[str | None, typer.Option(help="As 0,1,2 or 0-4; empty: the file's, or 0-4.")]
Name = Annotated[
    str, typer.Option("--name", "-n", help="Run again with the same one, it goes on; empty: file and profile.")
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, max=64, help="Runs at once, each a process of its own.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what it costs.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", callback=console.in_folder, help="The HTML page; empty: beside the runs."
    ),
]
Write = Annotated[
    Path | None,
    typer.Option(
        "--write", metavar="FILE", callback=console.in_folder, help="Write a Markdown page, its charts beside it."
    ),
]


def ablation(
    file: Study = None,
    variants: Variants = None,
    only: Only = "",
    profile: Profile = None,
    seeds: Seeds = None,
    name: Name = "",
    jobs: Jobs = 1,
    pairs: console.Set = None,
    plugin: console.Plugin = None,
    dry_run: DryRun = False,
    full: console.Full = False,
    out: Out = None,
    write: Write = None,
    as_json: console.Json = False,
) -> None:
    """Compare variants of settings over seeds, and answer whether each is better than the first: paired over seeds,
    with Holm's correction. Each run has a process and a data folder of its own; killed, the same command goes on.
    Example: agent0 experiment ablation --plugin my_reward.py --variant base:
    --variant mine:run.rewards.weights.brevity=0.2 --seeds 0-4"""
    from agent0.assembly.ablations.study_request import read_study, request_of
    from agent0.cli.experiments.study_pages import execute

    typed = [variant_of(text) for text in variants or ()]
    request = request_of(
        read_study(file, typed),
        console.overrides(pairs, plugins=console.plugin_paths(plugin)),
        file=file,
        variants=typed,
        name=name,
        profile=profile,
        seeds=seeds,
        only=[text.strip() for text in only.split(",") if text.strip()],
        jobs=jobs,
    )
    if dry_run:
        _show_cost(request, as_json)
    else:
        execute(request, out, write, full, as_json)


def _show_cost(request: "StudyRequest", as_json: bool) -> None:
    from agent0.assembly.ablations.study import plan_study

    settings = console.settings_of(request.profile, request.typed)
    plan = console.run_async(lambda: plan_study(settings, request))
    console.record({key: value for key, value in plan.items() if as_json or value is not None}, as_json)


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
    from agent0.cli.experiments.study_pages import write_page
    from agent0.experiments.hyperparameter_search import space_of
    from agent0.projections.runs import resolve

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
    from agent0.report.answers import search_answer

    if as_json:
        console.data(result)
        return
    console.print_lines(search_answer(result))
    if full:
        _show_search(result)
    for failure in result["failed"]:
        console.text(f"{failure['trial']} ({failure['words']}) failed: {failure['why']}")


def _page(result: dict[str, Any], over: Sequence[str], number: int, seed: int) -> str:
    from agent0.report.markdown.hyperparameters import page

    flags = [f"--search {space}" for space in over] + ([f"--trials {number} --seed {seed}"] if number else [])
    return page(
        result, f"agent0 experiment hyperparameters LAST {' '.join(flags)} --write docs/results/hyperparameters.md"
    )


def _show_search(result: dict[str, Any]) -> None:
    from agent0.cli.experiments.study_pages import readable_rows

    rows = readable_rows([_flat(row) for row in result["trials"]])
    searched = [key.rpartition(".")[2] for key in result["searched"]]
    columns = ("validation", "low", "high", "difference", "adjusted_p", "conclusion", "steps", "training_s", "trial")
    console.table(rows, False, (*searched, *columns), title="Trials, the best on validation first")
    best = [_flat(row) for row in result["best_by_budget"]]
    columns_of_best = ("trainings", "steps", *searched, "validation", "low", "high")
    console.table(best, False, columns_of_best, title="\nThe best after so many trainings")


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, **{key.rpartition(".")[2]: text for key, text in row["settings"].items()}}
