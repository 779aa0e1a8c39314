"""A study on a ladder while it is under way: on a terminal a picture with a row for each variant, which moves right."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live

from agent0.cli import console
from agent0.cli.runs.live import drawn, is_terminal, marks
from agent0.report.charts.ladder_picture import Row, mean_standing, picture
from agent0.report.climb_summary import study_lines
from agent0.tasks.curriculum.ladder_height import Standing

if TYPE_CHECKING:
    from agent0.experiments.ablation_runs import AblationRun


class Standings:
    """Where the students of a study stand: the newest of each run, and its base. ``variants``: their order."""

    def __init__(self, variants: Sequence[str] = ()) -> None:
        self._variants = tuple(variants)
        self._newest: dict[str, dict[int, tuple[int, Standing]]] = {}
        self._bases: dict[int, Standing] = {}
        self.taught = 0
        """The highest level that a base was taught."""

    def add(self, run: "AblationRun", iteration: int, standing: Standing) -> None:
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
def shown(standings: Standings, *, quiet: bool) -> Iterator[tuple[Say, Callable[["AblationRun", int, Standing], None]]]:
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
def _picture(standings: Standings) -> Iterator[tuple[Say, Callable[["AblationRun", int, Standing], None]]]:
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

        def add(run: "AblationRun", iteration: int, standing: Standing) -> None:
            standings.add(run, iteration, standing)
            draw()

        yield say, add


def end_lines(results: Mapping[str, object], standings: Standings, page: str) -> Sequence[str]:
    """The last picture and the three lines that a study on a ladder ends with."""
    lines = study_lines(results, page)
    return ["", *standings.lines(marks(stderr=False)), "", *lines] if lines else []
