"""Runs: start, follow, look at, pause, resume, cancel."""

import sqlite3
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent0.cli import console
from agent0.cli.models.named_model import BOTH, Model, model_flags
from agent0.cli.runs import fork, positions
from agent0.cli.runs.durations import time_or_iterations
from agent0.cli.runs.foreground import follow_to_end, print_answer, print_conclusion, print_tables, require
from agent0.errors import LogError
from agent0.settings import RunConfig, Settings

if TYPE_CHECKING:
    from agent0.events.base import Recorded
    from agent0.training.diet import Diet

Form = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="csv, parquet, tensorboard, mlflow or wandb (the last two need their package).",
    ),
]
Folder = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where it goes.")]


def export(
    run: console.Run = "LAST", form: Form = "csv", out: Folder = Path("exported"), as_json: console.Json = False
) -> None:
    """Write a run's learning curve, measures and test scores, by iterations done (0: untrained), as a file or a
    tracker's own store. Nothing is sent. Example: agent0 run export LAST --format tensorboard --out logs"""
    from agent0.assembly.tracking.measured import measured
    from agent0.assembly.tracking.sinks import export as write

    with console.tables() as db:
        series = measured(db, run)
    console.in_folder(out)
    target = write(series, form, out)
    values = {"run": series.run, "written": str(target), "steps": len(series.rows()), "values": len(series.points)}
    console.record(values, as_json)


def diet(run: console.Run = "LAST", as_json: console.Json = False) -> None:
    """Of all tokens that a run trained on: how many the student wrote as they stand, how many are of what its base was
    taught, and how many of anything else, for every checkpoint."""
    from agent0.projections.runs import show_run
    from agent0.training.diet import total

    with console.tables() as db:
        row = show_run(db, run)
    name, provider = row["run"], row["config"]["student"]["provider"]
    entries = console.run_async(lambda: _read(name))
    rows, summed = [asdict(entry) for entry in entries], total(entries)
    if as_json:
        console.data({"run": name, "checkpoints": rows, "total": asdict(summed)})
        return
    console.table(rows, as_json)
    if not summed.tokens:
        console.say(f"Run {name} has trained nothing.")
        return
    shares = (summed.own_share, summed.taught_share, summed.other_share)
    written, taught, other = (f"{100 * (share or 0):.1f} %" for share in shares)
    console.say(
        f"Of {summed.tokens:,} tokens learned, {written} were written by the model in training as they stand, "
        f"{taught} are of what its base was taught, {other} of anything else."
    )
    if provider == "scripted":
        console.say("Its model is scripted: it writes from the solutions of the families themselves.")
    if summed.strange:
        console.say(f"{summed.strange} of the named answers are not of this run's own checkpoints.")


async def _read(run: str) -> "list[Diet]":
    from agent0.assembly.models.diet import diets
    from agent0.assembly.runtime.read_models import sound_log
    from agent0.infra.storage.artifacts import FileArtifacts

    settings = console.settings()
    async with sound_log(settings) as log:
        return await diets(log, FileArtifacts(settings.home), run)


Detach = Annotated[
    bool, typer.Option("--detach", "--no-wait", help="Only begin it: `agent0 handlers run` processes do the work.")
]
NoHandlers = Annotated[bool, typer.Option("--no-handlers", help="Watch only; other processes run the handlers.")]
Questions = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Questions with answers to train on, as GSM8K, MATH, SVAMP, MBPP have them."),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for what the run needs and this machine lacks.")]
Time = Annotated[
    str, typer.Option("--for", metavar="TIME", help="Work so long instead: 2h, 90m. The last round is finished.")
]
STOPPED = "stopped"
"""On screens: a run that is running by its events while no process carries it."""
Reason = Annotated[str, typer.Option(help="Why; it is recorded.")]


def start(
    profile: console.Profile = None,
    name: Annotated[str, typer.Option(help="A name for people; its id is made from it.")] = "",
    seed: Annotated[int | None, typer.Option(help="Seed of the whole run.")] = None,
    iterations: Annotated[int | None, typer.Option(min=1, help="Rounds.")] = None,
    time: Time = "",
    tasks: Annotated[int | None, typer.Option(min=1, help="Tasks an iteration.")] = None,
    attempts: Annotated[int | None, typer.Option(min=1, help="Attempts a task.")] = None,
    questions: Questions = None,
    model: Model = None,
    pairs: console.Set = None,
    plugin: console.Plugin = None,
    detach: Detach = False,
    no_handlers: NoHandlers = False,
    wait: Wait = False,
    as_json: console.Json = False,
) -> None:
    """Start a run and follow it to its end. Ctrl-C stops cleanly; `agent0 run resume` goes on."""
    from agent0.assembly.runtime.app import started
    from agent0.assembly.runtime.execution import prepared
    from agent0.experiments.smaller_run import difference

    sizes = {"run__seed": seed, "run__iterations": iterations, "run__tasks": tasks, "run__attempts": attempts}
    limit = time_or_iterations(time, iterations)
    named = {"run__questions__file": questions, **model_flags(model, None, *BOTH)}
    chosen = console.settings(profile, pairs, plugins=plugin, run__time_limit=limit, **sizes, **named)
    here = not (detach or no_handlers)
    settings = console.run_async(lambda: prepared(chosen, console.say if wait else None, here=here))
    if smaller := difference(chosen.run, settings.run):
        console.say(f"{settings.run.questions.file} holds out fewer rows than are set: {smaller}.", "yellow")
    begin = started(settings, name)
    if detach:
        console.run_async(lambda: _append(settings, begin, make=True))
        console.record({"run": begin.run, "profile": settings.profile, "config_sha": held_sha(begin)}, as_json)
        return
    news = f"Run {begin.run}: profile {settings.profile}, seed {settings.run.seed}, data in {settings.home}"
    follow_to_end(settings, begin.run, begin, news, with_handlers=not no_handlers, as_json=as_json, wait=wait)


def resume(
    run: console.Run = "LAST",
    profile: console.Profile = None,
    pairs: console.Set = None,
    plugin: console.Plugin = None,
    detach: Detach = False,
    no_handlers: NoHandlers = False,
    wait: Wait = False,
    as_json: console.Json = False,
) -> None:
    """Go on with a run that was stopped or paused, or with what a failed one has. What it does was fixed when it
    started."""
    from agent0.assembly.log.carriers import carrier_line, carriers
    from agent0.assembly.runtime.execution import resumption

    settings = console.settings(profile, pairs, plugins=plugin)
    row = _row(run, settings)
    name = str(row["run"])
    if row["status"] == "finished":
        console.say(f"Run {name} is finished.")
        print_conclusion(settings, name, as_json)
        return
    begin = resumption(settings, row)
    if detach:
        if begin:
            console.run_async(lambda: _append(settings, begin))
        console.record({"run": name, "status": "running"}, as_json)
        return
    if not no_handlers:
        require(settings, RunConfig.recorded(row["config"]), wait)
        if row["status"] == "running" and carriers(settings):
            console.say(f"{carrier_line(settings, name)} This process shares the work.", "yellow")
    news = f"Run {name} goes on: profile {row['profile']}, seed {row['seed']}"
    follow_to_end(settings, name, begin, news, with_handlers=not no_handlers, as_json=as_json, wait=wait)


def list_(
    limit: console.Limit = 20,
    forks: Annotated[bool, typer.Option("--forks", help="Only forks, with what they began from.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Hidden and deleted runs, too.")] = False,
    as_json: console.Json = False,
) -> None:
    """List runs, newest first; with --forks only forks."""
    from agent0.assembly.log.carriers import carried
    from agent0.assembly.runtime.read_models import NothingError

    try:
        with console.tables() as db:
            rows = console.limited(lambda n: _listed(db, n, forks, everything), limit)
    except NothingError:
        rows = console.Limited()
    shown = carried(console.settings(), rows)
    if not as_json:
        shown = [{**row, "status": STOPPED if row["carried"] is False else row["status"]} for row in shown]
    first = ("run", "parent", "parent_seq") if forks else ("run",)
    columns = ("status", "iteration", "validation", "heldout_first", "heldout_last", "started", "wall_s", "events")
    why = tuple(name for name in ("failed", "waits_for") if any(r[name] for r in shown))
    console.table(rows.like(shown), as_json, (*first, *columns, *why), keep=("started", *why))


def _listed(db: sqlite3.Connection, limit: int, forks: bool, everything: bool) -> list[dict[str, Any]]:
    """The newest runs, or the newest forks."""
    from agent0.projections.runs import list_runs

    if not forks:
        return list_runs(db, limit, hidden=everything)
    return [row for row in list_runs(db, 100_000, hidden=everything) if row["parent"]][:limit]


def show(
    run: console.Run = "LAST",
    at: Annotated[str, typer.Option(metavar="WHERE", help=f"Its whole state then instead: {positions.HELP}.")] = "",
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """What a run came to in three lines; with --full its scores, learning curve and targets. Or its state at any
    event."""
    from agent0.assembly.log.carriers import known_here
    from agent0.report.overview import overview

    if at:
        fork.show_at(run, at, as_json)
        return

    with console.tables() as db:
        summary = overview(db, run, known_here(console.settings()))
    if as_json:
        console.data(summary)
        return
    print_answer(console.settings(), summary)
    if full:
        console.text("")
        print_tables(summary)
    else:
        console.say(f"Tables: agent0 run show {summary['run']} --full. Page: agent0 report {summary['run']}")


def watch(run: console.Run = "LAST", as_json: console.Json = False) -> None:
    """Follow a run that other processes execute, to its end; first it says which ones."""
    from agent0.assembly.log.carriers import carrier_line

    settings, row = console.settings(), _row(run)
    news = carrier_line(settings, row["run"]) if row["status"] == "running" else ""
    follow_to_end(settings, str(row["run"]), None, news, with_handlers=False, as_json=as_json)


def story(run: console.Run = "LAST", as_json: console.Json = False) -> None:
    """The chain of causes from the run's start over a trained checkpoint to its end."""
    from agent0.projections.events import story as chain
    from agent0.projections.events import unbroken
    from agent0.projections.runs import resolve

    with console.tables() as db:
        steps = chain(db, resolve(db, run))
    console.table(steps, as_json, ("seq", "time", "type", "text", "task", "attempt", "handler"), keep=("text",))
    if not unbroken(steps):
        raise LogError("The chain of causes is broken.", "A cause is not in the log.", "Run `agent0 log check`.")
    console.say(f"{len(steps)} steps, each caused by the one before.")


def pause(run: console.Run = "LAST", reason: Reason = "", as_json: console.Json = False) -> None:
    """Begin nothing new in a run; what is in hand is finished and nothing is lost."""
    from agent0.assembly.requests.decisions import pausing

    row = _row(run)
    begin = pausing(row, reason)
    if begin is None:
        console.say(f"Run {row['run']} is paused already.")
        console.record({"run": row["run"], "event": None}, as_json)
        return
    _decide(begin, as_json)


def cancel(
    run: console.Run = "LAST",
    reason: Reason = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: console.Json = False,
) -> None:
    """End a run for good; its events stay."""
    from agent0.assembly.requests.decisions import cancelling

    if not yes:
        typer.confirm(f"Cancel run {console.clean(_row(run)['run'])} for good?", abort=True, err=True)
    _decide(cancelling(_row(run), reason), as_json)


def _decide(begin: "Recorded", as_json: bool) -> None:
    console.run_async(lambda: _append(console.settings(), begin))
    console.record({"run": begin.run, "event": begin.type}, as_json)


def _row(run: str, settings: Settings | None = None) -> dict[str, Any]:
    from agent0.projections.runs import show_run

    with console.tables(settings) as db:
        return show_run(db, run)


async def _append(settings: Settings, begin: "Recorded", *, make: bool = False) -> None:
    from agent0.assembly.log.access import open_log

    async with open_log(settings, make=make) as log:
        await log.append([begin])


def held_sha(begin: "Recorded") -> str:
    """Return the digest of the configuration in a RunStarted."""
    return str(getattr(begin.event, "config_sha", ""))
