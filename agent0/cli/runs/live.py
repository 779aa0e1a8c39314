"""Following a run on stderr: a bar on a terminal, plain lines elsewhere."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from agent0.assembly.log.waits import waits
from agent0.assembly.runtime.progress import (
    PROPOSING,
    Milestone,
    Pace,
    Progress,
    duration,
    milestone_line,
    taken_up,
    trouble,
)
from agent0.assembly.runtime.stamping import utc_now
from agent0.cli import console
from agent0.infra.log.event_log import Log
from agent0.infra.log.state_snapshots import Snapshots
from agent0.infra.training.progress import StepProgress, pace_of
from agent0.report.charts.ladder_picture import BLOCKS, DIGITS, Row, latest, picture
from agent0.settings import RunConfig

BAR_S = 0.25
LINES_S = 15.0
"""Seconds between two looks: a bar moves, lines pile up."""

PHASES = {
    "baseline": "scoring the student as it starts",
    PROPOSING: "the teacher proposes tasks",
    "tasks": "tasks and attempts",
    "measuring": "measuring what its tasks teach",
    "training": "training adapters",
    "evaluating": "scoring the candidate",
    "judging": "judging the candidate",
    "final": "scoring the last student",
    "done": "finishing",
}


class Display(Protocol):
    """Where the progress of a run is shown: a bar, or lines."""

    every_s: float

    def passed(self, milestone: Milestone, config: RunConfig) -> None:
        """Show what a finished iteration came to."""
        ...

    def show(self, pace: Pace) -> None:
        """Show the current pace of the run."""
        ...

    def say(self, text: str, style: str = "") -> None:
        """Print a line that stays, above whatever moves."""
        ...


async def follow(
    log: Log, run: str, trainings: Path, *, quiet: bool = False, snapshots: Snapshots | None = None
) -> Progress:
    """Show the progress of ``run`` until it is over, milestones already passed included; of a long run those since the
    nearest of ``snapshots``. ``trainings`` is the folder where trainers of this machine write their progress."""
    begin = await log.last_seq(run)
    progress, after = await taken_up(log, run, snapshots)
    with _display(quiet) as display:
        if after and display:
            display.say(f"Begins at event {after:,}. All iterations: agent0 run show {run} --full")
        shown = asyncio.create_task(_refresh(progress, display, trainings)) if display else None
        try:
            async for recorded in log.tail(after, run):
                milestone = progress.feed(recorded)
                if display is None or progress.state is None:
                    pass
                elif milestone:
                    display.passed(milestone, progress.state.config)
                elif recorded.seq > begin and (news := trouble(recorded)):
                    display.say(news, "yellow")
                if progress.over and recorded.seq >= begin:  # what failed may have been resumed since
                    break
        finally:
            if shown:
                shown.cancel()
    return progress


async def _refresh(progress: Progress, display: Display, trainings: Path) -> None:
    reported: set[str] = set()
    while True:
        await asyncio.sleep(display.every_s)
        pace = progress.pace(utc_now())
        if pace and pace.phase == "training":
            current = training(progress, trainings)
            if current and current[1].room and current[1].room not in reported:
                reported.add(current[1].room)
                display.say(f"{current[0]}: {current[1].room}")
            pace = replace(pace, training=steps(*current)) if current else pace
        if pace and not pace.waits and (full := waits(trainings.parent)):
            pace = replace(pace, waits=f"waits for {full}")
        if pace:
            display.show(pace)


def training(progress: Progress, folder: Path) -> tuple[str, StepProgress] | None:
    """(checkpoint, how far it is) of the one that is being trained on this machine, if one is."""
    paces = ((name, pace_of(folder, name, seed)) for name, seed in progress.trainings.items())
    return next(((name, progress) for name, progress in paces if progress), None)


def steps(checkpoint: str, progress: StepProgress) -> str:
    """Format the progress of a training, as in ``student-3 step 12/40, about 20 s left``."""
    left = f", about {duration(progress.left_s)} left" if progress.left_s is not None else ""
    return (
        f"{checkpoint} step {progress.done}/{progress.total}{left}"
        if progress.total
        else f"{checkpoint}: loading the model"
    )


@contextmanager
def _display(quiet: bool) -> Iterator[Display | None]:
    if quiet:
        yield None
    elif is_terminal():
        with Bar() as bar:
            yield bar
    else:
        yield Lines()


def is_terminal() -> bool:
    """Whether stderr is a terminal on which lines can be drawn again."""
    return sys.stderr.isatty() and not console.console(stderr=True).is_dumb_terminal


class Lines:
    """A line now and then, and at each change of phase."""

    every_s = LINES_S

    def passed(self, milestone: Milestone, config: RunConfig) -> None:
        """Say it in one line."""
        self.say(milestone_line(milestone, config.planned_iterations))

    def show(self, pace: Pace) -> None:
        """Say it."""
        console.say("  " + describe(pace))

    def say(self, text: str, style: str = "") -> None:
        """Say it."""
        console.say(text, style)


class Bar:
    """A progress bar of the attempts of the current iteration, or of the items of an evaluation; on a ladder below a
    picture of accuracy by level, a row an iteration."""

    every_s = BAR_S

    def __init__(self) -> None:
        columns = (SpinnerColumn(), BarColumn(12), TextColumn("{task.description}", markup=False))
        screen = console.console(stderr=True)
        self._bars = Bars(*columns, console=screen, auto_refresh=False)
        self._task = self._bars.add_task("starting", total=None)
        self._rows: list[Row] = []
        self._taught = 0
        self._live = Live(console=screen, auto_refresh=False, transient=True)

    def __enter__(self) -> "Bar":
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def passed(self, milestone: Milestone, config: RunConfig) -> None:
        """Add a row to the picture; a line above the bar where there is none."""
        if milestone.standing is None:
            self.say(milestone_line(milestone, config.planned_iterations))
            return
        name = "base" if milestone.iteration < 0 else f"iteration {milestone.iteration}"
        self._rows, self._taught = [*self._rows, Row(name, milestone.standing)], config.curriculum.mastered
        self._draw()

    def show(self, pace: Pace) -> None:
        """Move the bar."""
        self._bars.update(self._task, total=pace.total or None, completed=pace.done, description=describe(pace))
        self._draw()

    def say(self, text: str, style: str = "") -> None:
        """Print above the bar."""
        self._live.console.print(console.prose(console.clean(text), stderr=True), style=style or None)

    def _draw(self) -> None:
        lines = picture(latest(self._rows), "validation", self._taught, marks())
        self._live.update(Group(*drawn(lines), self._bars.get_renderable()), refresh=True)


def marks(*, stderr: bool = True) -> str:
    """How a picture's accuracies are written where it is shown."""
    try:
        BLOCKS.encode(console.console(stderr=stderr).encoding)
    except UnicodeEncodeError:
        return DIGITS
    return BLOCKS


def drawn(lines: Sequence[str]) -> list[Text]:
    """The lines of a picture for a terminal, never wrapped."""
    return [Text(line, no_wrap=True, overflow="crop") for line in lines]


def describe(pace: Pace) -> str:
    """``iteration 2: tasks and attempts 120/512, 8.1/s, about 40 s left``."""
    label = PHASES.get(pace.phase, pace.phase)
    where = f"iteration {pace.iteration}: {label}" if pace.iteration >= 0 else label
    if pace.waits:
        return f"{where}: {pace.waits}"
    if pace.failing:
        return f"{where}{f' {pace.done}/{pace.total}' if pace.total else ''}: {pace.failing}"
    if not pace.total:
        return f"{where}: {pace.training}" if pace.training else where
    left = f", about {duration(pace.left_s)} left" if pace.left_s is not None else ""
    return f"{where} {pace.done}/{pace.total}, {pace.rate:.1f}/s{left}"
