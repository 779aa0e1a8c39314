"""What came of a run: tables and a drawn curve here, everything in one HTML file that asks nothing of any network."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent0.cli import console
from agent0.errors import ConfigError

if TYPE_CHECKING:
    from agent0.report.findings import RunFindings

Out = Annotated[
    str,
    typer.Option(
        "--out", "-o", metavar="FILE", callback=console.in_folder, help="Where to write; '-': standard output."
    ),
]


def report(run: console.Run = "LAST", out: Out = "", full: console.Full = False, as_json: console.Json = False) -> None:
    """Say what came of a run in three lines, and write scores iteration over iteration with paired tests, where it
    fails, how tools are used, how varied tasks and solutions are into one self-contained HTML file; its path is printed
    last. --full prints the tables, too."""
    from agent0.assembly.log.carriers import known_here
    from agent0.cli.runs.why import print_why
    from agent0.infra.storage.artifacts import FileArtifacts
    from agent0.projections.runs import resolve
    from agent0.report.findings import findings
    from agent0.report.html.run_page import page
    from agent0.report.overview import overview

    artifacts = FileArtifacts(console.settings().home)
    with console.tables() as db:
        name = resolve(db, run)
        text, results = page(db, artifacts, name), findings(db, artifacts, name)
        shown = overview(db, name, known_here(console.settings()))
    answer, why = shown["answer"], shown["why"]
    if out == "-":
        typer.echo(text)
        return
    path = written(text, out, f"{name}.html")
    if as_json:
        head = {"run": name, "path": str(path), "bytes": path.stat().st_size, "answer": answer, "why": why}
        console.data({**head, **results})
        return
    print_why(why)
    console.print_lines(answer)
    if full:
        _show(results)
    console.text(path)


def written(text: str, out: str, name: str) -> Path:
    """Write a page where the user wants it, else among the reports of the data folder.

    Raises:
        ConfigError: its folder does not exist, or it cannot be written there.
    """
    path = Path(out) if out else console.settings().home / "reports" / name
    if out in ("", name):
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            why = f"The folder {path.parent} cannot be made: {error.strerror}."
            raise ConfigError(f"{path} cannot be written.", why, "Name another place: --out FILE") from error
    return console.write(path, text)


def _show(results: "RunFindings") -> None:
    from agent0.report.charts.terminal_plot import plot
    from agent0.report.tables import run_tables

    if drawn := plot(results["iterations"]):
        console.text(f"\n{drawn}")
    for title, rows in run_tables(results):
        console.table(rows, False, title=f"\n{title}")
