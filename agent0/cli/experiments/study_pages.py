"""What a study came to: on the terminal, as an HTML page, and as a Markdown page with its charts beside it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Group
from rich.live import Live

from agent0.assembly.ablations.study import run_study
from agent0.assembly.ablations.study_request import StudyRequest
from agent0.cli import console, flags
from agent0.cli.runs.live import drawn, is_terminal, marks
from agent0.errors import OperationError
from agent0.experiments.ablation_runs import AblationRun
from agent0.experiments.study_results import StudyResults
from agent0.report.answers import study_answer
from agent0.report.charts.ablation_charts import chart_files
from agent0.report.charts.ladder_picture import Row, curve_picture, mean_standing, picture
from agent0.report.climb_summary import study_lines
from agent0.report.conclusions import conclusion
from agent0.report.html.benchmark_page import ablation_page
from agent0.report.markdown.ablation import page, sentences
from agent0.tasks.curriculum.ladder_height import Standing


def execute(request: StudyRequest, out: Path | None, page_to: Path | None, full: bool, as_json: bool) -> None:
    """Execute a study, write its pages, and print its answer; ``full``: its tables, too.

    Raises:
        Agent0Error: it cannot be executed.
    """
    settings = flags.settings_of(request.profile, request.typed)
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
        console.print_lines(() if "ladder" in results else [*curve_lines(results), *study_answer(results)])
        if full:
            _show(results)
        console.text(f"\nPage: {page}\nRuns: {results['folder']}")
        if "ladder" in results:
            console.print_lines(end_lines(results, standings, str(page_to or page)))
    if not results["complete"]:
        console.say(f"{len(results['failed'])} runs failed; the same command tries them again.", "yellow")
        raise typer.Exit(1)


def _show(results: StudyResults) -> None:
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


def readable_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """``rows`` of a study's results as people read them: ``arm`` of ``--json`` as ``variant``, ``word`` as the
    conclusion."""
    shown = [{"variant" if key == "arm" else key: value for key, value in row.items()} for row in rows]
    return [{**row, "conclusion": conclusion(row["word"])} if row.get("word") else row for row in shown]


def _write_markdown(path: Path, results: StudyResults) -> None:
    """Write the page, and its charts as files beside it."""
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


class Standings:
    """Where the students of a study stand: the newest of each run, and its base. ``variants``: their order."""

    def __init__(self, variants: Sequence[str] = ()) -> None:
        self._variants = tuple(variants)
        self._newest: dict[str, dict[int, tuple[int, Standing]]] = {}
        self._bases: dict[int, Standing] = {}
        self.taught = 0
        """The highest level that a base was taught."""

    def add(self, run: AblationRun, iteration: int, standing: Standing) -> None:
        """Take in where a run's student stands after an iteration, -1 for its base."""
        if not standing.by_level:
            return
        self.taught = run.config.curriculum.mastered
        if iteration < 0:
            self._bases[run.seed] = standing
        self._newest.setdefault(run.variant, {})[run.seed] = iteration, standing

    def lines(self, marks: str) -> list[str]:
        """Draw the mean of the bases and of the newest students of each variant."""
        rows = [Row("base", mean_standing([*self._bases.values()]))] if self._bases else []
        for variant in sorted(self._newest, key=self._rank):
            newest = self._newest[variant]
            last = min(iteration for iteration, _ in newest.values())
            rows.append(Row(_name(variant, last), mean_standing([standing for _, standing in newest.values()])))
        return picture(rows, "validation", self.taught, marks)

    def _rank(self, variant: str) -> tuple[int, str]:
        """In the order of the study; others behind, by name."""
        rank = self._variants.index(variant) if variant in self._variants else len(self._variants)
        return rank, variant


def _name(variant: str, iteration: int) -> str:
    """The name of a row: ``ours 7``, the variant cut where it is long, and its iteration."""
    return variant[:13] if iteration < 0 else f"{variant[: 12 - len(str(iteration))]} {iteration}"


Say = Callable[[str], None]


@contextmanager
def shown(standings: Standings, *, quiet: bool) -> Iterator[tuple[Say, Callable[[AblationRun, int, Standing], None]]]:
    """Give two functions: one says a line, one takes in where a student stands. On a terminal what is said stands above
    the picture; elsewhere the lines alone are said."""
    if quiet:
        yield lambda _: None, standings.add
    elif not is_terminal():
        yield console.say, standings.add
    else:
        with _picture(standings) as both:
            yield both


@contextmanager
def _picture(standings: Standings) -> Iterator[tuple[Say, Callable[[AblationRun, int, Standing], None]]]:
    with Live(console=console.console(stderr=True), auto_refresh=False, transient=True) as live:
        status = ""

        def draw() -> None:
            live.update(Group(*drawn(standings.lines(marks())), *drawn([status])), refresh=True)

        def say(text: str) -> None:
            nonlocal status
            status = console.clean(text)
            if not standings.lines(marks()):
                live.console.print(status)
            draw()

        def add(run: AblationRun, iteration: int, standing: Standing) -> None:
            standings.add(run, iteration, standing)
            draw()

        yield say, add


def curve_lines(results: StudyResults) -> Sequence[str]:
    """The means over seeds on validation by iteration, a line a variant."""
    lines = curve_picture(results["curves"], "validation", marks(stderr=False))
    return ["", *lines, ""] if lines else []


def end_lines(results: StudyResults, standings: Standings, page: str) -> Sequence[str]:
    """The last picture and the three lines that a study on a ladder ends with."""
    lines = study_lines(results, page)
    return ["", *standings.lines(marks(stderr=False)), "", *lines] if lines else []
