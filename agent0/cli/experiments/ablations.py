"""Experiments that train: variants over seeds, one command per ablation study; and a hyperparameter search."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent0.cli import console
from agent0.experiments.ablations import AblationStudy, ablation_studies

if TYPE_CHECKING:
    from agent0.assembly.ablations.study import StudyRequest

Profile = Annotated[
    str | None, typer.Option("--profile", "-p", help="tiny, scripted … or the path of a .toml file; empty: its own.")
]
Seeds = Annotated[str | None, typer.Option(help="As 0,1,2 or 0-4; empty: its own.")]
Name = Annotated[
    str, typer.Option("--name", "-n", help="Run again with the same one, it goes on; empty: experiment and profile.")
]
Only = Annotated[
    str, typer.Option("--arms", metavar="VARIANT,VARIANT", help="Only these variants; the first is the baseline.")
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="[PROVIDER:]MODEL", help="Run all variants once more with this model."),
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, max=64, help="Runs at once, each a process of its own.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        callback=console.in_folder,
        help="Where the HTML page goes; empty: beside the runs.",
    ),
]


Write = Annotated[
    Path | None,
    typer.Option(
        "--write", metavar="FILE", callback=console.in_folder, help="Write a Markdown page, its charts beside it."
    ),
]


Protocols = Annotated[
    bool, typer.Option(help="On a ladder, sample the base many times, too, at the levels that the student reached.")
]


def add_to(app: typer.Typer) -> None:
    """Add a command per ablation study and the hyperparameter search to ``app``."""
    app.command("hyperparameters")(hyperparameters)
    for entry in ablation_studies().values():
        app.command(entry.name, help=_help(entry))(_command(entry))


def _help(entry: AblationStudy) -> str:
    variants = "; ".join(f"{arm.name}: {arm.about}" if arm.about else arm.name for arm in entry.variants)
    return (
        f"{entry.question} Variants: {variants}. Every variant runs with every seed, each a run in a data "
        "folder of its own; killed, the same command goes on with what is not finished."
    )


def _command(entry: AblationStudy) -> Callable[..., None]:
    def command(
        profile: Profile = None,
        seeds: Seeds = None,
        name: Name = "",
        only: Only = "",
        models: Models = None,
        jobs: Jobs = 1,
        protocols: Protocols = True,
        pairs: console.Set = None,
        plugin: console.Plugin = None,
        out: Out = None,
        write: Write = None,
        full: console.Full = False,
        as_json: console.Json = False,
    ) -> None:
        from agent0.assembly.ablations.study import request_of

        request = request_of(
            entry,
            name,
            profile,
            seeds,
            console.overrides(pairs, plugins=console.plugin_paths(plugin)),
            only=tuple(filter(None, (one.strip() for one in only.split(",")))),
            models=tuple(models or ()),
            jobs=jobs,
            protocols=protocols,
        )
        execute(request, out, write, full, as_json)

    return command


def execute(request: "StudyRequest", out: Path | None, page_to: Path | None, full: bool, as_json: bool) -> None:
    """Execute a study, write its pages, and print its answer; ``full``: its tables, too.

    Raises:
        Agent0Error: it cannot be executed.
    """
    from agent0.assembly.ablations.study import run_study
    from agent0.cli.experiments.live_study import Standings, end_lines, shown
    from agent0.report.answers import study_answer
    from agent0.report.html.ablation_page import ablation_page

    held = console.settings_of(request.profile, request.given)
    standings = Standings([one.name for one in request.study.variants])
    stopping = "Stopping: the runs stop cleanly; the same command goes on (again: at once)."
    with shown(standings, quiet=as_json) as heard:
        found = console.run_async(lambda: run_study(held, request, *heard), stopping)
    page = out or Path(found["folder"]) / "page.html"
    _write(page, ablation_page(found))
    if page_to:
        _write_markdown(page_to, found)
    if as_json:
        console.data({**found, "answer": study_answer(found), "page": str(page)})
    else:
        console.print_lines(() if "ladder" in found else study_answer(found))
        if full:
            _show(found)
        console.text(f"\nPage: {page}\nRuns: {found['folder']}")
        if "ladder" in found:
            console.print_lines(end_lines(found, standings, str(page_to or page)))
    if not found["complete"]:
        console.say(f"{len(found['failed'])} runs failed; the same command tries them again.", "yellow")
        raise typer.Exit(1)


def _show(found: dict[str, Any]) -> None:
    from agent0.report.markdown.ablation import sentences

    console.text(found["effort"])
    of_means = ("measure", "variant", "student", "seeds", "items", "mean", "low", "high")
    console.table(_rows(found["arms"]), False, of_means, title="\nMeans over seeds, with 95 % intervals")
    columns = ("measure", "variant", "against", "seeds", "items", "mean", "low", "high", "p_items", "p_seeds")
    console.table(
        _rows(found["against"]),
        False,
        (*columns, "adjusted_p", "detectable", "conclusion"),
        title="\nPaired on the same items and seeds; Holm over variants",
    )
    if "ladder" in found:
        _show_ladder(found)
    console.text("\n" + "\n".join(one.replace("**", "") for one in sentences(found)))
    console.table(_rows(found["cost"]), False, title="\nCost of a run (means)")
    for one in found["failed"]:
        console.text(f"{one['cell']} failed: {one['why']}")


def _show_ladder(found: dict[str, Any]) -> None:
    from agent0.experiments.ladder_rows import known_columns
    from agent0.report.columns import lead_columns

    titles = {
        "ladder": "Height (highest level half solved) and accuracies added up over test levels",
        "reach": "What it cost to reach a level, by validation after each iteration",
        "leads": "Alarms of today's monitors: since which iteration, and how many trainings before validation fell",
        "sampling": "Fresh tasks of one level with a right answer among those sampled; random: by chance alone",
    }
    held = {**found, "leads": lead_columns(found["leads"])}
    for name, title in titles.items():
        if held.get(name):
            console.table(_rows(known_columns(held[name])), False, title=f"\n{title}")


def _rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """``rows`` as people read them: ``arm`` of ``--json`` as ``variant``, ``word`` as the conclusion."""
    from agent0.report.conclusions import conclusion

    shown = [{"variant" if key == "arm" else key: value for key, value in row.items()} for row in rows]
    return [{**row, "conclusion": conclusion(row["word"])} if row.get("word") else row for row in shown]


def _write_markdown(path: Path, found: dict[str, Any]) -> None:
    """Write the page, and its charts as files beside it."""
    from agent0.report.charts.ablation_charts import chart_files
    from agent0.report.markdown.ablation import page

    names = {}
    for name, text in chart_files(found).items():
        names[name] = f"{path.stem}-{name}.svg"
        _write(path.with_name(names[name]), text)
    _write(path, page(found, names, str(path)))


def _write(path: Path, text: str) -> None:
    from agent0.errors import OperationError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        fix = "Name another place; what was found is kept, so the same command is quick now."
        raise OperationError("The page cannot be written.", f"{path}: {error.strerror}.", fix) from error


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
    from agent0.experiments.hyperparameter_search import space_of
    from agent0.projections.runs import resolve

    space, held = space_of(over or ()), console.settings()
    with console.tables() as db:
        of = str(resolve(db, run))
    request = Search(of, name or f"search-{of}"[:40], space, number, seed)
    found = console.run_async(lambda: look(held, request, (lambda _: None) if as_json else console.say))
    if page:
        _write(page, _page(found, over or (), number, seed))
    _tell_search(found, full, as_json)
    if found["failed"]:
        raise typer.Exit(1)


def _tell_search(found: dict[str, Any], full: bool, as_json: bool) -> None:
    from agent0.report.answers import search_answer

    if as_json:
        console.data(found)
        return
    console.print_lines(search_answer(found))
    if full:
        _show_search(found)
    for one in found["failed"]:
        console.text(f"{one['trial']} ({one['words']}) failed: {one['why']}")


def _page(found: dict[str, Any], over: Sequence[str], number: int, seed: int) -> str:
    from agent0.report.markdown.hyperparameters import page

    words = [f"--search {one}" for one in over] + ([f"--trials {number} --seed {seed}"] if number else [])
    return page(
        found, f"agent0 experiment hyperparameters LAST {' '.join(words)} --write docs/results/hyperparameters.md"
    )


def _show_search(found: dict[str, Any]) -> None:
    rows = _rows([_flat(row) for row in found["trials"]])
    searched = [key.rpartition(".")[2] for key in found["searched"]]
    columns = ("validation", "low", "high", "difference", "adjusted_p", "conclusion", "steps", "training_s", "trial")
    console.table(rows, False, (*searched, *columns), title="Trials, the best on validation first")
    best = [_flat(row) for row in found["best_by_budget"]]
    seen = ("trainings", "steps", *searched, "validation", "low", "high")
    console.table(best, False, seen, title="\nThe best after so many trainings")


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, **{key.rpartition(".")[2]: text for key, text in row["settings"].items()}}
