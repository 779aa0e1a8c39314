"""Runs from their tables: list, read the events of, pause and cancel runs."""

import sqlite3
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.log.carriers import carried
from agent0.assembly.models.diet import RunLedger, diets, run_ledger
from agent0.assembly.requests.decisions import cancelling, pausing, weighing
from agent0.assembly.requests.run_filters import require_possible
from agent0.assembly.runtime.read_models import NothingError, sound_log
from agent0.assembly.tracking.measured import measured
from agent0.assembly.tracking.sinks import export as write
from agent0.cli import console, flags, lookup
from agent0.errors import LogError
from agent0.events.base import Recorded
from agent0.projections.events import story as chain
from agent0.projections.events import unbroken
from agent0.projections.runs import RunFilter, list_runs, resolve
from agent0.settings import Settings
from agent0.training.diet import Diet, total

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
    """Write a run's learning curve, measures and test scores, by iterations done (0: untrained), and every training
    step as a file (csv, parquet: RUN-steps beside it) or a tracker's own store. Nothing is sent. Example: agent0 run
    export LAST --format tensorboard --out logs"""
    with lookup.tables() as db:
        series = measured(db, run)
    console.in_folder(out)
    target = write(series, form, out)
    values = {"run": series.run, "written": str(target), "steps": len(series.rows()), "values": len(series.points)}
    values["training_steps"] = len(series.training_rows())
    console.record(values, as_json)


def diet(run: console.Run = "LAST", as_json: console.Json = False) -> None:
    """Of all tokens that a run trained on: how many the student wrote as they stand, how many are of what its base was
    taught, and how many of anything else, for every checkpoint."""
    row = lookup.run_row(run)
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


def ledger(run: console.Run = "LAST", limit: console.Limit = 100, as_json: console.Json = False) -> None:
    """What became of a run's tasks: asked, accepted, finished, trained on, never; and whether attempts that were
    trained on are longer or shorter than others of the same verdict."""
    name = str(lookup.run_row(run)["run"])
    entries = console.run_async(lambda: _ledger(name))
    if as_json:
        console.data({"run": name, **entries.as_row()})
        return
    counts, length = entries.counts(), entries.length
    console.text(f"{name}: " + ", ".join(f"{count:,} tasks {word}" for word, count in counts.items()) + ".")
    if length.area is None or length.p is None:
        console.text("Too few attempts were trained on, or too few were not, to test whether length decided that.")
    else:
        bias = "no sign that length decided" if length.p > LEVEL else "length goes with what was trained on"
        console.text(
            f"An attempt trained on is longer than another of its verdict in {length.area:.0%} of pairs "
            f"(p {length.p:.2g}): {bias}."
        )
    rows = [asdict(task) for task in entries.tasks if task.finished and not task.trained]
    console.table(rows[:limit], False, title="never trained on")


LEVEL = 0.05


async def _ledger(run: str) -> RunLedger:
    settings = flags.settings()
    async with sound_log(settings) as log:
        return await run_ledger(log, artifact_store(settings), run)


async def _read(run: str) -> list[Diet]:
    settings = flags.settings()
    async with sound_log(settings) as log:
        return await diets(log, artifact_store(settings), run)


STOPPED = "stopped"
"""On screens: a run that is running by its events while no process carries it."""
Number = Annotated[
    int, typer.Argument(metavar="N", min=1, max=100, help="A run of 20 gets twice the slots of one of 10.")
]
Reason = Annotated[str, typer.Option(help="Why; it is recorded.")]


def list_(
    limit: console.Limit = 20,
    forks: Annotated[bool, typer.Option("--forks", help="Only forks, with what they began from.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Hidden and deleted runs, too.")] = False,
    tag: Annotated[str, typer.Option(help="Only those with this tag.")] = "",
    profile: Annotated[str, typer.Option(help="Only those of this profile.")] = "",
    status: Annotated[str, typer.Option(help="Only those that are so: running, paused, failed, finished …")] = "",
    text: Annotated[str, typer.Option(help="Only those with this in id, name, tag or note.")] = "",
    as_json: console.Json = False,
) -> None:
    """List runs, newest first; with --forks only forks."""
    chosen = RunFilter(tag, profile, status, text)
    try:
        with lookup.tables() as db:
            require_possible(db, chosen)
            rows = console.limited(lambda n: _listed(db, n, forks, everything, chosen), limit)
    except NothingError:
        rows = console.Limited()
    shown = carried(flags.settings(), rows)
    if not as_json:
        shown = [{**row, "status": STOPPED if row["carried"] is False else row["status"]} for row in shown]
    first = ("run", "parent", "parent_seq") if forks else ("run",)
    columns = ("status", "iteration", "validation", "heldout_first", "heldout_last", "started", "wall_s", "events")
    why = tuple(name for name in ("failed", "waits_for", "note") if any(r[name] for r in shown))
    console.table(rows.like(shown), as_json, (*first, *columns, *why), keep=("started", *why))


def _listed(
    db: sqlite3.Connection, limit: int, forks: bool, everything: bool, chosen: RunFilter
) -> list[dict[str, Any]]:
    """The newest runs, or the newest forks."""
    if not forks:
        return list_runs(db, limit, hidden=everything, chosen=chosen)
    return [row for row in list_runs(db, 100_000, hidden=everything, chosen=chosen) if row["parent"]][:limit]


def story(run: console.Run = "LAST", as_json: console.Json = False) -> None:
    """The chain of causes from the run's start over a trained checkpoint to its end."""
    with lookup.tables() as db:
        steps = chain(db, resolve(db, run))
    console.table(steps, as_json, ("seq", "time", "type", "text", "task", "attempt", "handler"), keep=("text",))
    if not unbroken(steps):
        raise LogError("The chain of causes is broken.", "A cause is not in the log.", "Run `agent0 log check`.")
    console.say(f"{len(steps)} steps, each caused by the one before.")


def pause(run: console.Run = "LAST", reason: Reason = "", as_json: console.Json = False) -> None:
    """Begin nothing new in a run; what is in hand is finished and nothing is lost."""
    row = lookup.run_row(run)
    begin = pausing(row, reason)
    if begin is None:
        console.say(f"Run {row['run']} is paused already.")
        console.record({"run": row["run"], "event": None}, as_json)
        return
    _decide(begin, as_json)


def priority(
    run: console.Run,
    number: Number,
    as_json: console.Json = False,
) -> None:
    """Share workers between runs under way: each run's slots are in proportion to its priority, 10 unless set; none
    waits for ever. It counts from now on, on every host."""
    _decide(weighing(lookup.run_row(run), number), as_json)


def cancel(
    run: console.Run = "LAST",
    reason: Reason = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: console.Json = False,
) -> None:
    """End a run for good; its events stay."""
    if not yes:
        typer.confirm(f"Cancel run {console.clean(lookup.run_row(run)['run'])} for good?", abort=True, err=True)
    _decide(cancelling(lookup.run_row(run), reason), as_json)


def _decide(begin: Recorded, as_json: bool) -> None:
    console.run_async(lambda: append(flags.settings(), begin))
    console.record({"run": begin.run, "event": begin.type}, as_json)


async def append(settings: Settings, begin: Recorded, *, make: bool = False) -> None:
    """Write one event into the log, which is made where there is none and ``make`` says so."""
    async with open_log(settings, make=make) as log:
        await log.append([begin])
