"""Follow a run to its end from a terminal, and print what came of it."""

import asyncio
from functools import partial
from typing import Any

from agent0.assembly.log.access import open_log
from agent0.assembly.log.carriers import known_here
from agent0.assembly.replay.state_snapshots import state_snapshots
from agent0.assembly.runtime.execution import append_begin, execute_run, resume_command
from agent0.assembly.runtime.progress import Progress
from agent0.assembly.validate.requirements import require as look
from agent0.cli import console, flags, lookup
from agent0.cli.runs.live import follow, marks
from agent0.cli.runs.show import print_answer
from agent0.errors import OperationError, RunFailedError
from agent0.events.base import Recorded
from agent0.infra.log.event_log import Log
from agent0.projections.attempts import list_attempts
from agent0.projections.runs import show_run
from agent0.report.answers import climbs
from agent0.report.climb_summary import run_picture
from agent0.report.overview import overview
from agent0.settings import RunConfig, Settings

STOPPING = "Stopping: finishing what is in hand (again: at once)."


class Terminal:
    """Shows a run on stderr; says nothing where the output is JSON."""

    def __init__(self, settings: Settings, *, quiet: bool) -> None:
        self._held, self._trainings, self._quiet = settings, settings.home / "training", quiet

    def say(self, text: str, *, warning: bool = False) -> None:
        """A line on stderr."""
        console.say(text, "yellow" if warning else "")

    async def follow(self, log: Log, run: str) -> Progress:
        """Show the run until it is over."""
        snapshots = state_snapshots(self._held, log)
        return await follow(log, run, self._trainings, quiet=self._quiet, snapshots=snapshots)


def follow_to_end(
    settings: Settings,
    run: str,
    begin: Recorded | None,
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
    terminal = Terminal(settings, quiet=as_json)
    carry = partial(execute_run, wait=wait) if with_handlers else _watch
    messages = (
        (STOPPING, f"Left at once; run {run} may still be running. {resume_command(run)}") if with_handlers else ()
    )
    progress = console.run_async(lambda: carry(settings, run, begin, terminal, news), *messages)
    print_conclusion(settings, run, as_json)
    status = progress.state.status if progress.state else ""
    if status == "cancelled":
        raise OperationError(f"Run {run} was cancelled.")
    if status == "failed":
        raise run_failed_error(settings, run)


def require(settings: Settings, config: RunConfig, wait: bool) -> None:
    """Nothing may be missing that a run of ``config`` needs, or it is waited for."""
    needs = settings.model_copy(update={"run": config})
    console.run_async(lambda: look(needs, console.say if wait else None))


def run_failed_error(settings: Settings, run: str) -> RunFailedError:
    """Make the error that says why ``run`` failed and how it may go on."""
    with lookup.tables(settings) as db:
        why = str(show_run(db, run)["failed"])
    fix = f"`agent0 run resume {run}` goes on with what it has; docs/guide/troubleshooting.md has the other ways."
    return RunFailedError(f"Run {run} failed.", f"{why[:1].upper()}{why[1:]}", fix)


async def _watch(settings: Settings, run: str, begin: Recorded | None, terminal: Terminal, news: str) -> Progress:
    async with open_log(settings, make=bool(begin)) as log:
        await append_begin(log, begin, terminal, news)
        try:
            return await terminal.follow(log, run)
        except asyncio.CancelledError:
            terminal.say(f"Stopped watching; nothing is lost. {resume_command(run, 'watch')}", warning=True)
            raise


def print_conclusion(settings: Settings, run: str, as_json: bool) -> None:
    """Print what ``run`` came to, and the commands that show more."""
    with lookup.tables(settings) as db:
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
    elsewhere = f"AGENT0_HOME={settings.home} " if settings.home != flags.settings().home else ""
    console.say("Next: " + "\n      ".join(f"{elsewhere}agent0 {command}" for command in following))


def _print_climb(summary: dict[str, Any]) -> None:
    """Of a run on a ladder: the picture of its first and last student."""
    if summary["status"] == "finished" and climbs(summary):
        console.text("\n".join(["", *run_picture(summary, marks(stderr=False)), ""]))


def _curve(settings: Settings, db: Any, run: str) -> str | None:
    """Draw the learning curve; the path of its picture, None (and a word why) where it cannot be written."""
    from agent0.report.charts.learning_curve import draw_curve  # noqa: PLC0415 - matplotlib, before which a run would wait

    path = settings.home / "reports" / f"{run}.png"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draw_curve(db, run, path)
    except OSError as error:
        console.say(f"The picture {path} is left out: {error.strerror or error}.", "yellow")
        return None
    return str(path)
