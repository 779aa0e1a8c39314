"""Runs: start, follow, look at, pause, resume, cancel."""

import asyncio
import contextlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent0.cli import console
from agent0.cli.runs import fork

if TYPE_CHECKING:
    from agent0.assembly.runtime.app import World
    from agent0.assembly.runtime.progress import Progress
    from agent0.settings import Settings
    from events.base import Event, Recorded
    from infra.log.event_log import Log

app = typer.Typer(help="Runs: start one, watch it, look at what came of it.")
Detach = Annotated[
    bool, typer.Option("--detach", "--no-wait", help="Only begin it: `agent0 handlers run` processes do the work.")
]
NoHandlers = Annotated[bool, typer.Option("--no-handlers", help="Watch only; other processes run the handlers.")]
Reason = Annotated[str, typer.Option(help="Why; it is recorded.")]
STOPPING = "Stopping: finishing what is in hand (again: at once)."


@app.command()
def start(
    profile: console.Profile = None,
    name: Annotated[str, typer.Option(help="A name for people; its id is made from it.")] = "",
    seed: Annotated[int | None, typer.Option(help="Seed of the whole run.")] = None,
    iterations: Annotated[int | None, typer.Option(min=1, help="Rounds.")] = None,
    tasks: Annotated[int | None, typer.Option(min=1, help="Tasks an iteration.")] = None,
    attempts: Annotated[int | None, typer.Option(min=1, help="Attempts a task.")] = None,
    pairs: console.Set = None,
    detach: Detach = False,
    no_handlers: NoHandlers = False,
    as_json: console.Json = False,
) -> None:
    """Start a run and follow it to its end. Ctrl-C stops cleanly; `agent0 run resume` goes on."""
    from agent0.assembly.runtime.app import check_names, started
    from agent0.assembly.runtime.providers import check_models
    from agent0.assembly.runtime.tool_policy import with_policy

    given = console.settings(
        profile, pairs, run__seed=seed, run__iterations=iterations, run__tasks=tasks, run__attempts=attempts
    )
    check_names(given.run)
    held = console.run_async(lambda: with_policy(given))
    if not (detach or no_handlers):  # other machines' models are theirs
        check_models(held.run)
    begin = started(held, name)
    if detach:
        console.run_async(lambda: _append(held, begin, make=True))
        console.record({"run": begin.run, "profile": held.profile, "config_sha": held_sha(begin)}, as_json)
        return
    news = f"Run {begin.run}: profile {held.profile}, seed {held.run.seed}, data in {held.home}"
    carry(held, begin.run, begin, news, with_handlers=not no_handlers, as_json=as_json)


@app.command()
def resume(
    run: console.Run = "LAST",
    profile: console.Profile = None,
    pairs: console.Set = None,
    detach: Detach = False,
    no_handlers: NoHandlers = False,
    as_json: console.Json = False,
) -> None:
    """Go on with a run that was stopped or paused. What it does was fixed when it started."""
    from events.runs import RunResumed

    held = console.settings(profile, pairs)
    row = _row(run)
    name = str(row["run"])
    if row["status"] == "cancelled":
        _refuse(name, "cancelled", "A cancelled run is over; start another.")
    if row["status"] == "finished":
        console.say(f"Run {name} is finished.")
        _conclude(held, name, as_json)
        return
    begin = _recorded(name, RunResumed()) if row["status"] == "paused" else None
    if detach:
        if begin:
            console.run_async(lambda: _append(held, begin))
        console.record({"run": name, "status": "running"}, as_json)
        return
    news = f"Run {name} goes on: profile {row['profile']}, seed {row['seed']}"
    carry(held, name, begin, news, with_handlers=not no_handlers, as_json=as_json)


@app.command("list")
def list_(
    limit: console.Limit = 20,
    forks: Annotated[bool, typer.Option("--forks", help="Only forks, with what they began from.")] = False,
    as_json: console.Json = False,
) -> None:
    """Runs, newest first."""
    from agent0.assembly.runtime.read_models import NothingError
    from projections.runs import list_runs

    try:
        with console.tables() as db:
            rows = list_runs(db, 100_000 if forks else limit)
    except NothingError:
        rows = []
    first = ("run", "parent", "parent_seq") if forks else ("run",)
    seen = ("status", "iteration", "validation", "heldout_first", "heldout_last", "events", "wall_s", "started")
    console.table([r for r in rows if r["parent"] or not forks][:limit], as_json, (*first, *seen))


@app.command()
def show(
    run: console.Run = "LAST",
    at: Annotated[int, typer.Option(min=0, metavar="SEQ", help="Its whole state as of this event instead.")] = 0,
    as_json: console.Json = False,
) -> None:
    """What a run came to: held-out scores, learning curve, targets; or its state at any event."""
    from agent0.report.overview import overview

    if at:
        fork.show_at(run, at, as_json)
        return

    with console.tables() as db:
        found = overview(db, run)
    if as_json:
        console.data(found)
    else:
        _tell(found)


app.command("fork")(fork.fork)
app.command("diff")(fork.diff)
app.command("check")(fork.check)


@app.command()
def watch(run: console.Run = "LAST", as_json: console.Json = False) -> None:
    """Follow a run that other processes carry, to its end."""
    held = console.settings()
    carry(held, str(_row(run)["run"]), None, "", with_handlers=False, as_json=as_json)


@app.command()
def story(run: console.Run = "LAST", as_json: console.Json = False) -> None:
    """The chain of causes from the run's start over a trained checkpoint to its end."""
    from agent0.errors import LogError
    from projections.events import story as chain
    from projections.events import unbroken
    from projections.runs import resolve

    with console.tables() as db:
        steps = chain(db, resolve(db, run))
    console.table(steps, as_json, ("seq", "time", "type", "handler", "task", "attempt", "text"))
    if not unbroken(steps):
        raise LogError("The chain of causes is broken.", "A cause is not in the log.", "Run `agent0 log check`.")
    console.say(f"{len(steps)} steps, each caused by the one before.")


@app.command()
def pause(run: console.Run = "LAST", reason: Reason = "", as_json: console.Json = False) -> None:
    """Begin nothing new in a run; what is in hand is finished and nothing is lost."""
    from events.runs import RunPaused

    row = _row(run)
    if row["status"] == "paused":
        console.say(f"Run {row['run']} is paused already.")
        console.record({"run": row["run"], "event": None}, as_json)
        return
    _decide(run, RunPaused(reason=reason), ("running",), as_json)


@app.command()
def cancel(
    run: console.Run = "LAST",
    reason: Reason = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: console.Json = False,
) -> None:
    """End a run for good; its events stay."""
    from events.runs import RunCancelled

    if not yes:
        typer.confirm(f"Cancel run {console.clean(_row(run)['run'])} for good?", abort=True, err=True)
    _decide(run, RunCancelled(reason=reason), ("running", "paused"), as_json)


def carry(
    held: "Settings", run: str, begin: "Recorded | None", news: str, *, with_handlers: bool, as_json: bool
) -> None:
    """Follow ``run`` to its end, with all handlers and the projector in this process where wanted. ``news`` is said
    once it has begun."""
    from agent0.errors import OperationError

    follow = carry_out if with_handlers else _watched
    words = (STOPPING, f"Left at once; run {run} may still be running. {_onward(run)}") if with_handlers else ()
    progress = console.run_async(lambda: follow(held, run, begin, news, quiet=as_json), *words)
    _conclude(held, run, as_json)
    if progress.state and progress.state.status == "cancelled":
        raise OperationError(f"Run {run} was cancelled.")


def _onward(run: str, verb: str = "resume") -> str:
    return f"Go on with: agent0 run {verb} {run}"


async def carry_out(held: "Settings", run: str, begin: "Recorded | None", news: str = "", *, quiet: bool) -> "Progress":
    """All handlers and the projector in this process, until ``run`` is over; ``begin`` is appended first, where
    everything else is in order."""
    from agent0.assembly.replay.forks import check_resumed
    from agent0.assembly.runtime.app import open_world
    from agent0.assembly.runtime.read_models import catch_up
    from events.runs import RunStarted

    async with open_world(held) as world:
        if begin is None or not isinstance(begin.event, RunStarted):
            await check_resumed(world.log, run)
        await catch_up(held, world.log)  # tables that cannot be kept must not be found out after the run has begun
        await _pause_others(held, world.log, run)
        try:
            await _begin(world.log, _fitted(world, begin), news)
            progress = await _carried(held, world, run, quiet)
        except BaseException as error:
            await _leave(world.log, run, error)
            raise
        await catch_up(held, world.log)
        return progress


def _fitted(world: "World", begin: "Recorded | None") -> "Recorded | None":
    """``begin`` as this machine can carry it; what that changed is said."""
    from agent0.assembly.validate.sandbox_speed import fitted

    if begin:
        begin, notice = fitted(world, begin)
        if notice:
            console.say(notice, "yellow")
    return begin


async def _begin(log: "Log", begin: "Recorded | None", news: str) -> None:
    from agent0.assembly.runtime.app import now

    if begin:  # stamped now: getting ready took its time
        await log.append([begin.model_copy(update={"time": now()})])
    if news:
        console.say(news)


async def _pause_others(held: "Settings", log: "Log", run: str) -> None:
    """A run whose process died is still running by the log, and would take its share of the handlers here."""
    from agent0.assembly.runtime.app import recorded
    from agent0.assembly.runtime.read_models import reading
    from events.runs import RunPaused
    from projections.runs import list_runs

    with reading(held) as db:
        left = [str(row["run"]) for row in list_runs(db, 100_000) if row["status"] == "running" and row["run"] != run]
    if left and await log.server.alone():
        await log.append([recorded(one, RunPaused(reason="nobody carried it")) for one in left])
        for one in left:
            console.say(f"Run {one} was left running and nobody carried it: paused. {_onward(one)}", "yellow")


async def _leave(log: "Log", run: str, error: BaseException) -> None:
    """Pause the run: one that nobody carries would take its share of the next one's handlers."""
    from agent0.assembly.runtime.app import recorded
    from agent0.errors import Agent0Error
    from events.runs import RunPaused

    by_hand = isinstance(error, asyncio.CancelledError)
    paused = RunPaused(reason="stopped by hand" if by_hand else "its process failed")
    with contextlib.suppress(Agent0Error):  # what went wrong before is what a person must hear
        if [one.type async for one in log.read(run, ("RunStarted", "RunFinished", "RunCancelled"))] != ["RunStarted"]:
            return
        await log.append([recorded(run, paused)])
    console.say(f"{'Stopped' if by_hand else 'Failed'}; nothing is lost. {_onward(run)}", "yellow")


async def _carried(held: "Settings", world: "World", run: str, quiet: bool) -> "Progress":
    from agent0.assembly.runtime.app import run_handlers
    from agent0.assembly.runtime.read_models import run_projector
    from agent0.cli.runs.live import follow

    async with asyncio.TaskGroup() as group:
        works = [group.create_task(run_handlers(world)), group.create_task(run_projector(held, world.log))]
        progress = await follow(world.log, run, held.home / "training", quiet=quiet)
        for work in works:
            work.cancel()
    return progress


async def _watched(held: "Settings", run: str, begin: "Recorded | None", news: str, *, quiet: bool) -> "Progress":
    from agent0.assembly.runtime.app import open_log
    from agent0.cli.runs.live import follow

    async with open_log(held, make=bool(begin)) as log:
        await _begin(log, begin, news)
        try:
            return await follow(log, run, held.home / "training", quiet=quiet)
        except asyncio.CancelledError:
            console.say(f"Stopped watching; nothing is lost. {_onward(run, 'watch')}", "yellow")
            raise


def _conclude(held: "Settings", run: str, as_json: bool) -> None:
    from agent0.report.overview import overview
    from projections.attempts import list_attempts

    with console.tables() as db:
        found = overview(db, run)
        curve, tried = _curve(held, db, run), list_attempts(db, run, limit=1)
    if as_json:
        console.data({**found, "curve": curve})
        return
    _tell(found)
    if curve:
        console.text(f"Learning curve: {curve}")
    shown = [f"trajectory show {one['attempt']} {run}" for one in tried]
    following = [f"run story {run}", f"task list {run}", *shown, "events grep wrong", f"report {run}"]
    console.say("Next: " + "\n      ".join(f"agent0 {one}" for one in following))


def _curve(held: "Settings", db: Any, run: str) -> str:
    """The path of the learning-curve picture; empty where matplotlib is not installed."""
    try:
        from agent0.report.charts.learning_curve import draw_curve
    except ImportError:
        return ""
    path = held.home / "reports" / f"{run}.png"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draw_curve(db, run, path)
    return str(path)


def _tell(found: dict[str, Any]) -> None:
    from agent0.report.overview import curve_columns, failures_for_people, rows_for_people

    names = ("run", "name", "status", "profile", "seed", "iteration", "iterations", "tasks", "attempts", "events")
    console.record({name: found[name] for name in (*names, "wall_s", "student", "config_sha")}, False)
    if found["validation"]:
        seen = curve_columns(found["validation"])
        console.table(found["validation"], False, seen, title="\nLearning curve (iteration -1: untrained)")
    if found["test"]:
        console.table(rows_for_people(found), False, title="\nHeld-out test, scored for the first and the last only")
    words = {True: "met", False: "missed", None: "not measured"}
    rows = [{**target, "met": words[target["met"]]} for target in found["targets"]]
    console.table(rows, False, title="\nTargets")
    if found["alarms"]:
        told = [f"{one['alarm']} ({one['severity']}): {one['message']}" for one in found["alarms"]]
        console.text("\n".join(["\nAlarms that stand", *told]))
    if found["failures"]:
        console.text("\n".join(["\nReactions that were given up", *failures_for_people(found)]))


def _decide(run: str, event: "Event", allowed: tuple[str, ...], as_json: bool) -> None:
    row = _row(run)
    name, status = str(row["run"]), str(row["status"])
    if status not in allowed:
        _refuse(name, status, f"Only a run that is {' or '.join(allowed)} can be changed like this.")
    console.run_async(lambda: _append(console.settings(), _recorded(name, event)))
    console.record({"run": name, "event": type(event).__name__}, as_json)


def _refuse(run: str, status: str, why: str) -> None:
    from agent0.errors import OperationError

    raise OperationError(f"Run {run} is {status}.", why, f"See: agent0 run show {run}")


def _row(run: str) -> dict[str, Any]:
    from projections.runs import show_run

    with console.tables() as db:
        return show_run(db, run)


def _recorded(run: str, event: "Event") -> "Recorded":
    from agent0.assembly.runtime.app import recorded

    return recorded(run, event)


async def _append(held: "Settings", begin: "Recorded", *, make: bool = False) -> None:
    from agent0.assembly.runtime.app import open_log

    async with open_log(held, make=make) as log:
        await log.append([begin])


def held_sha(begin: "Recorded") -> str:
    """The configuration's digest in a RunStarted."""
    return str(getattr(begin.event, "config_sha", ""))
