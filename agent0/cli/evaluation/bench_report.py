"""``agent0 bench report``: one HTML file about a benchmark run, and its tables here."""

from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.assembly.evaluation.benchmark_run import Plan, read_plan
from agent0.assembly.log.artifact_store import artifact_store
from agent0.cli import console, flags, lookup
from agent0.cli.evaluation.options import HERE, Data, Out, written
from agent0.errors import Agent0Error
from agent0.projections.benchmark_scores import show_benchmark_run
from agent0.report.benchmark_findings import QuestionItems, bench_findings
from agent0.report.html.benchmark_page import bench_page
from agent0.report.score_answers import benchmark_answer
from agent0.report.tables import benchmark_rows, failure_mode_rows, tool_effect_rows

BenchRun = Annotated[str, typer.Argument(metavar="BENCH_RUN", help="Id of a benchmark run, or LAST for the newest.")]


def bench_report(
    run: BenchRun = "LAST",
    data: Data = HERE,
    out: Out = "",
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """Say what a benchmark run came to in three lines, and write one self-contained HTML file about it: accuracy with
    intervals, with tools beside without, where it fails, what it took, what its confidence is worth, and items that
    were not right (with their questions where the rows are at hand). --full prints the tables, too."""
    settings = flags.settings()
    artifacts = artifact_store(settings)
    with lookup.tables() as db:
        benchmark_run = show_benchmark_run(db, run)
        questions = _questions(benchmark_run["settings"], data)
        findings = bench_findings(db, artifacts, benchmark_run["run"], questions, settings.run.evaluation.max_truncated)
    text = bench_page(findings)
    if out == "-":
        typer.echo(text)
        return
    path, answer = written(text, out, f"{findings['run']}.html"), benchmark_answer(findings)
    if as_json:
        console.data({"path": str(path), "bytes": path.stat().st_size, "answer": answer, **findings})
        return
    console.print_lines(answer)
    if full:
        _show(findings)
    console.text(path)


def _questions(settings: dict[str, Any], folder: Path) -> QuestionItems:
    """Items by id, of benchmarks whose rows are at hand just as they were and may be passed on."""
    questions: dict[str, Any] = {}
    for name in settings["benchmarks"]:
        try:
            by_name, files = read_plan(Plan((name,), folder, limit=settings["limit"], seed=settings["seed"]))
        except Agent0Error:  # not at hand: then without
            continue
        if all(settings["files"].get(file) == digest for file, digest in files.items()):
            questions |= {
                key: {item.id: item for item in items} for key, (entry, items) in by_name.items() if entry.ships
            }
    return questions


def _show(findings: dict[str, Any]) -> None:
    console.text(f"\nBenchmark run {findings['run']}, {findings['status']}")
    console.table(benchmark_rows(findings["scores"]), False, title="\nAccuracy")
    if findings["tools_against_plain"]:
        console.table(tool_effect_rows(findings["tools_against_plain"]), False, title="\nWith tools against without")
    for failure in findings["failures"]:
        title = f"\nWhere it fails, {failure['mode']}: {failure['wrong']} of {failure['items']} not right"
        if failure["modes"]:
            console.table(failure_mode_rows(failure["modes"]), False, title=title)
