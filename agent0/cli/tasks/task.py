"""Tasks of a run, and a person's verdicts on answers to them."""

from typing import Annotated

import typer

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.models.lineage import TouchedCheckpoint, touched
from agent0.assembly.runtime.read_models import sound_log
from agent0.cli import console, flags, lookup
from agent0.projections.runs import resolve
from agent0.projections.tasks import list_tasks, show_task


def list_(
    run: console.Run = "LAST",
    iteration: console.Iteration = None,
    status: Annotated[str, typer.Option(help="requested, proposed, accepted, rejected or dropped.")] = "",
    domain: Annotated[str, typer.Option(help="One domain only.")] = "",
    limit: console.Limit = 100,
    as_json: console.Json = False,
) -> None:
    """Tasks in the order they were asked for."""
    with lookup.tables() as db:
        of = resolve(db, run)
        rows = console.limited(lambda n: list_tasks(db, of, iteration, status, domain, n), limit)
    columns = (
        "task",
        "status",
        "solve_rate",
        "level",
        "question",
        "family",
        "teacher_reward",
        "novelty",
        "domain",
        "credit",
    )
    why = ("reason", "detail") if any(row["reason"] for row in rows) else ()
    console.table(rows, as_json, (*columns[:5], *why, *columns[5:]))


def show(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Task id, for example t0-003.")],
    run: console.Run = "LAST",
    as_json: console.Json = False,
) -> None:
    """One task with its attempts, partial credit apart from success, and what persons said of them."""
    with lookup.tables() as db:
        row = show_task(db, resolve(db, run), task)
    if as_json:
        console.data(row)
        return
    attempts, reviews = row.pop("attempts"), row.pop("reviews")
    console.record(row, False)
    console.table(attempts, False)
    if reviews:
        console.table(reviews, False, ("attempt", "reviewer", "correct", "reason", "reviewed"), title="reviews")


def lineage(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Task id, as in t0-003.")],
    run: console.Run = "LAST",
    as_json: console.Json = False,
) -> None:
    """Every checkpoint that a task touched, of runs and experiments: by its own events, or through a parent."""
    settings = flags.settings()
    with lookup.tables() as db:
        name = str(resolve(db, run))

    async def work() -> list[TouchedCheckpoint]:
        async with sound_log(settings) as log:
            return await touched(log, artifact_store(settings), name, task)

    checkpoints = console.run_async(work)
    console.table(checkpoints, as_json, ("run", "checkpoint", "events", "through", "adapter"))
    if not checkpoints and not as_json:
        console.say(f"No checkpoint was trained on {task}.")
