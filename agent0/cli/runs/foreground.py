"""Follow a run to its end from a terminal, and print what came of it."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from agent0.cli import console
from agent0.errors import OperationError, RunFailedError
from agent0.settings import RunConfig, Settings

if TYPE_CHECKING:
    from agent0.events.base import Recorded
    from agent0.infra.log.event_log import Log

if TYPE_CHECKING:
    from agent0.assembly.runtime.progress import Progress


STOPPING = "Stopping: finishing what is in hand (again: at once)."


class Terminal:
    """Shows a run on stderr; says nothing where the output is JSON."""

    def __init__(self, settings: Settings, *, quiet: bool) -> None:
        self._held, self._trainings, self._quiet = settings, settings.home / "training", quiet

    def say(self, text: str, *, warning: bool = False) -> None:
        """A line on stderr."""
        console.say(text, "yellow" if warning else "")

    async def follow(self, log: "Log", run: str) -> "Progress":
        """Show the run until it is over."""
        from agent0.assembly.replay.state_snapshots import state_snapshots
        from agent0.cli.runs.live import follow

        snapshots = state_snapshots(self._held, log)
        return await follow(log, run, self._trainings, quiet=self._quiet, snapshots=snapshots)


def follow_to_end(
    settings: Settings,
    run: str,
    begin: "Recorded | None",
    news: str,
    *,
    with_handlers: bool,
    as_json: bool,
    wait: bool = False,
) -> None:
    """Follow ``run`` to its end and print what came of it; ``with_handlers`` executes it in this process, and waits
    there for what is missing where ``wait`` says so. ``news`` is said once it has begun.

    Raises:
        OperationError: the run was cancelled.
        RunFailedError: it failed.
    """
    from agent0.assembly.runtime.execution import execute_run, resume_command

    terminal = Terminal(settings, quiet=as_json)
    follow = partial(execute_run, wait=wait) if with_handlers else _watch
    messages = (
        (STOPPING, f"Left at once; run {run} may still be running. {resume_command(run)}") if with_handlers else ()
    )
    progress = console.run_async(lambda: follow(settings, run, begin, terminal, news), *messages)
    print_conclusion(settings, run, as_json)
    status = progress.state.status if progress.state else ""
    if status == "cancelled":
        raise OperationError(f"Run {run} was cancelled.")
    if status == "failed":
        raise run_failed_error(settings, run)


def require(settings: Settings, config: RunConfig, wait: bool) -> None:
    """Nothing may be missing that a run of ``config`` needs, or it is waited for."""
    from agent0.assembly.validate.requirements import require as look

    needs = settings.model_copy(update={"run": config})
    console.run_async(lambda: look(needs, console.say if wait else None))


def run_failed_error(settings: Settings, run: str) -> RunFailedError:
    """Make the error that says why ``run`` failed and how it may go on."""
    from agent0.projections.runs import show_run

    with console.tables(settings) as db:
        why = str(show_run(db, run)["failed"])
    fix = f"`agent0 run resume {run}` goes on with what it has; docs/guide/troubleshooting.md has the other ways."
    return RunFailedError(f"Run {run} failed.", f"{why[:1].upper()}{why[1:]}", fix)


async def _watch(settings: Settings, run: str, begin: "Recorded | None", terminal: Terminal, news: str) -> "Progress":
    from agent0.assembly.log.access import open_log
    from agent0.assembly.runtime.execution import append_begin, resume_command

    async with open_log(settings, make=bool(begin)) as log:
        await append_begin(log, begin, terminal, news)
        try:
            return await terminal.follow(log, run)
        except asyncio.CancelledError:
            terminal.say(f"Stopped watching; nothing is lost. {resume_command(run, 'watch')}", warning=True)
            raise


def print_conclusion(settings: Settings, run: str, as_json: bool) -> None:
    """Print what ``run`` came to, and the commands that show more."""
    from agent0.assembly.log.carriers import known_here
    from agent0.projections.attempts import list_attempts
    from agent0.report.overview import overview

    with console.tables(settings) as db:
        summary = overview(db, run, known_here(settings))
        curve, tried = _curve(settings, db, run), list_attempts(db, run, limit=1)
    if as_json:
        console.data({**summary, "curve": curve})
        return
    print_answer(settings, summary)
    _print_climb(summary)
    if curve:
        console.text(f"Learning curve: {curve}")
    shown = [f"trajectory show {attempt['attempt']} {run}" for attempt in tried]
    following = [
        f"run show {run} --full",
        f"run story {run}",
        f"task list {run}",
        *shown,
        "events grep wrong",
        f"report {run}",
    ]
    elsewhere = f"AGENT0_HOME={settings.home} " if settings.home != console.settings().home else ""
    console.say("Next: " + "\n      ".join(f"{elsewhere}agent0 {command}" for command in following))


def _print_climb(summary: dict[str, Any]) -> None:
    """Of a run on a ladder: the picture of its first and last student."""
    from agent0.cli.runs.live import marks
    from agent0.report.answers import climbs
    from agent0.report.climb_summary import run_picture

    if summary["status"] == "finished" and climbs(summary):
        console.text("\n".join(["", *run_picture(summary, marks(stderr=False)), ""]))


def _curve(settings: Settings, db: Any, run: str) -> str | None:
    """Draw the learning curve; the path of its picture, None (and a word why) where it cannot be written."""
    from agent0.report.charts.learning_curve import draw_curve

    path = settings.home / "reports" / f"{run}.png"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draw_curve(db, run, path)
    except OSError as error:
        console.say(f"The picture {path} is left out: {error.strerror or error}.", "yellow")
        return None
    return str(path)


def print_answer(settings: Settings, summary: dict[str, Any]) -> None:
    """Print why a run went badly, what it came to in a few lines, who carries it where it goes on, and what somebody
    should look at."""
    from agent0.assembly.log.carriers import carrier_line
    from agent0.cli.runs.why import print_why
    from agent0.report.alarm_groups import alarm_lines
    from agent0.report.overview import failures_for_people

    print_why(summary["why"])
    console.print_lines(summary["answer"])
    if summary["status"] == "running" and summary["carried"] is not False:
        console.print_lines([carrier_line(settings, summary["run"])])
    if summary["alarms"]:
        console.print_lines(["", "Alarms that stand", *alarm_lines(summary["alarm_kinds"])])
    if summary["failures"]:
        console.print_lines(["", "Reactions that were given up", *failures_for_people(summary)])


def print_tables(summary: dict[str, Any]) -> None:
    """Print the tables of ``run show --full``: the run, its learning curve, the held-out test, targets."""
    from agent0.report.overview import curve_columns, rows_for_people
    from agent0.report.run_benchmarks import benchmark_rows

    names = ("run", "name", "status", "profile", "seed", "iteration", "iterations", "tasks", "attempts", "events")
    cause = {name: summary[name] for name in ("failed", "waits_for") if summary[name]}
    if summary["evaluating"]:
        cause["evaluating"] = ", ".join(f"{e['evaluation']} {e['scored']}/{e['n']}" for e in summary["evaluating"])
    if summary["refused"]:
        cause["refused"] = ", ".join(f"{reason} {n:,}" for reason, n in summary["refused"].items())
    row = {name: summary[name] for name in (*names, "wall_s", "student", "config_sha")} | cause
    console.record(row, False)
    if summary["validation"]:
        columns = curve_columns(summary["validation"])
        console.table(summary["validation"], False, columns, title="\nLearning curve, on validation")
    if summary["test"]:
        console.table(rows_for_people(summary), False, title="\nHeld-out test, scored for the first and the last only")
    if summary["benchmarks"]:
        console.table(benchmark_rows(summary["benchmarks"]), False, title="\nBenchmarks, the same items each time")
    labels = {True: "met", False: "missed", None: "not measured"}
    rows = [
        {**row, "met": ", ".join(filter(None, (labels[row["met"]], row["rests_on"])))} for row in summary["targets"]
    ]
    columns = ("target", "wanted", "value", "met", "measure")
    console.table(rows, False, columns, title="\nTargets")
