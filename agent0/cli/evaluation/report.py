"""What came of a run: tables and a drawn curve here, everything in one HTML file that asks nothing of any network."""

from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.cli import console

Out = Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Where to write; '-': standard output.")]


def register(root: typer.Typer) -> None:
    """A verb of its own: it has no noun."""
    root.command("report")(report)


def report(run: console.Run = "LAST", out: Out = "", as_json: console.Json = False) -> None:
    """Say what came of a run: scores iteration over iteration with paired tests, where it fails, how tools are used,
    how varied tasks and solutions are. Writes all of it into one self-contained HTML file and prints its path last."""
    from agent0.cli.runs.why import print_why
    from agent0.report.diagnosis.findings import diagnosis
    from agent0.report.findings import findings
    from agent0.report.html.run_page import page
    from infra.storage.artifacts import FileArtifacts
    from projections.runs import resolve

    artifacts = FileArtifacts(console.settings().home)
    with console.tables() as db:
        name = resolve(db, run)
        text, found, why = page(db, artifacts, name), findings(db, artifacts, name), diagnosis(db, name)
    if out == "-":
        typer.echo(text)
        return
    path = written(text, out, f"{name}.html")
    if as_json:
        console.data({"run": name, "path": str(path), "bytes": path.stat().st_size, "why": why, **found})
    else:
        print_why(why)
        _show(name, found)
        console.text(path)


def written(text: str, out: str, name: str) -> Path:
    """Write a page where the user wants it, else among the reports of the data folder.

    Raises:
        OperationError: it cannot be written there.
    """
    from agent0.errors import OperationError

    path = Path(out) if out else console.settings().home / "reports" / name
    if out and not path.parent.is_dir():
        why = f"There is no folder {path.parent.absolute()}."
        raise OperationError("The report cannot be written.", why, f"Make it: mkdir -p {path.parent}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        what, why = "The report cannot be written.", f"{path}: {error.strerror}."
        raise OperationError(what, why, "Name another place: --out FILE") from error
    return path


def _show(run: str, found: dict[str, Any]) -> None:
    from agent0.report.charts.terminal_plot import plot
    from agent0.report.tables import run_tables

    console.text(f"Run {run}")
    if drawn := plot(found["iterations"]):
        console.text(f"\n{drawn}")
    for title, rows in run_tables(found):
        console.table(rows, False, title=f"\n{title}")
