"""What came of a run: tables and a drawn curve here, everything in one HTML file that asks nothing of any network."""

import typer

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.log.carriers import known_here
from agent0.cli import console, flags, lookup
from agent0.cli.evaluation.options import Out, written
from agent0.cli.runs.show import print_why
from agent0.projections.runs import resolve
from agent0.report.charts.terminal_plot import plot
from agent0.report.findings import RunFindings, findings
from agent0.report.html.run_page import page
from agent0.report.overview import overview
from agent0.report.tables import run_tables
from agent0.state.run_state import first_student


def report(run: console.Run = "LAST", out: Out = "", full: console.Full = False, as_json: console.Json = False) -> None:
    """Say what came of a run in three lines, and write scores iteration over iteration with paired tests, where it
    fails, how tools are used, how varied tasks and solutions are into one self-contained HTML file; its path is printed
    last. --full prints the tables, too."""
    artifacts = artifact_store(flags.settings())
    with lookup.tables() as db:
        name = resolve(db, run)
        text, results = page(db, artifacts, name), findings(db, artifacts, name)
        shown = overview(db, name, known_here(flags.settings()))
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
        _show(results, first_student(shown["student_adapter"]))
    console.text(path)


def _show(results: RunFindings, start: str) -> None:
    if drawn := plot(results["iterations"]):
        console.text(f"\n{drawn}")
    for title, rows in run_tables(results, start):
        console.table(rows, False, title=f"\n{title}")
