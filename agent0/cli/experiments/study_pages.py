"""What a study came to: on the terminal, as an HTML page, and as a Markdown page with its charts beside it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agent0.cli import console
from agent0.errors import OperationError
from agent0.report.answers import study_answer
from agent0.report.conclusions import conclusion
from agent0.report.markdown.ablation import page, sentences

if TYPE_CHECKING:
    from agent0.assembly.ablations.study_request import StudyRequest


def execute(request: "StudyRequest", out: Path | None, page_to: Path | None, full: bool, as_json: bool) -> None:
    """Execute a study, write its pages, and print its answer; ``full``: its tables, too.

    Raises:
        Agent0Error: it cannot be executed.
    """
    from agent0.assembly.ablations.study import run_study
    from agent0.cli.experiments.live_study import Standings, end_lines, shown
    from agent0.report.html.ablation_page import ablation_page

    settings = console.settings_of(request.profile, request.typed)
    standings = Standings([variant.name for variant in request.study.variants])
    stopping = "Stopping: the runs stop cleanly; the same command goes on (again: at once)."
    with shown(standings, quiet=as_json) as heard:
        results = console.run_async(lambda: run_study(settings, request, *heard), stopping)
    page = out or Path(results["folder"]) / "page.html"
    write_page(page, ablation_page(results))
    if page_to:
        _write_markdown(page_to, results)
    if as_json:
        console.data({**results, "answer": study_answer(results), "page": str(page)})
    else:
        console.print_lines(() if "ladder" in results else study_answer(results))
        if full:
            _show(results)
        console.text(f"\nPage: {page}\nRuns: {results['folder']}")
        if "ladder" in results:
            console.print_lines(end_lines(results, standings, str(page_to or page)))
    if not results["complete"]:
        console.say(f"{len(results['failed'])} runs failed; the same command tries them again.", "yellow")
        raise typer.Exit(1)


def _show(results: dict[str, Any]) -> None:
    console.text(results["effort"])
    of_means = ("measure", "variant", "student", "seeds", "items", "mean", "low", "high")
    console.table(readable_rows(results["arms"]), False, of_means, title="\nMeans over seeds, with 95 % intervals")
    columns = ("measure", "variant", "against", "seeds", "items", "mean", "low", "high", "p_items", "p_seeds")
    console.table(
        readable_rows(results["against"]),
        False,
        (*columns, "adjusted_p", "detectable", "conclusion"),
        title="\nPaired on the same items and seeds; Holm over variants",
    )
    if "ladder" in results:
        title = "\nT (highest level half solved) and S (accuracies added up) on the test levels"
        console.table(readable_rows(results["ladder"]), False, title=title)
    console.text("\n" + "\n".join(row.replace("**", "") for row in sentences(results)))
    console.table(readable_rows(results["cost"]), False, title="\nCost of a run (means)")
    for row in results["failed"]:
        console.text(f"{row['cell']} failed: {row['why']}")


def readable_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """``rows`` of a study's results as people read them: ``arm`` of ``--json`` as ``variant``, ``word`` as the
    conclusion."""
    shown = [{"variant" if key == "arm" else key: value for key, value in row.items()} for row in rows]
    return [{**row, "conclusion": conclusion(row["word"])} if row.get("word") else row for row in shown]


def _write_markdown(path: Path, results: dict[str, Any]) -> None:
    """Write the page, and its charts as files beside it."""
    from agent0.report.charts.ablation_charts import chart_files

    names = {}
    for name, text in chart_files(results).items():
        names[name] = f"{path.stem}-{name}.svg"
        write_page(path.with_name(names[name]), text)
    write_page(path, page(results, names, str(path)))


def write_page(path: Path, text: str) -> None:
    """Write a page of a study; its folder is made where it is missing.

    Raises:
        OperationError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        fix = "Name another place; what was found is kept, so the same command is quick now."
        raise OperationError("The page cannot be written.", f"{path}: {error.strerror}.", fix) from error
