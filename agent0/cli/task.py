"""Tasks of a run."""

from typing import Annotated

import typer

from agent0.cli import terminal

app = typer.Typer(help="Tasks that a run's teacher proposed.")


@app.command("list")
def list_(
    run: terminal.Run = "LAST",
    iteration: Annotated[int | None, typer.Option("--iteration", "-i", min=0, help="One iteration only.")] = None,
    status: Annotated[str, typer.Option(help="requested, proposed, accepted, rejected or dropped.")] = "",
    domain: Annotated[str, typer.Option(help="One domain only.")] = "",
    limit: terminal.Limit = 100,
    as_json: terminal.Json = False,
) -> None:
    """Tasks in the order they were asked for."""
    from projections.runs import resolve
    from projections.tasks import list_tasks

    with terminal.tables() as db:
        rows = list_tasks(db, resolve(db, run), iteration, status, domain, limit)
    seen = ("task", "domain", "family", "level", "status", "question", "novelty", "solve_rate", "teacher_reward")
    terminal.table(rows, as_json, seen)


@app.command()
def show(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Task id, for example t0-003.")],
    run: terminal.Run = "LAST",
    as_json: terminal.Json = False,
) -> None:
    """One task with its attempts."""
    from projections.runs import resolve
    from projections.tasks import show_task

    with terminal.tables() as db:
        found = show_task(db, resolve(db, run), task)
    if as_json:
        terminal.data(found)
        return
    attempts = found.pop("attempts")
    terminal.record(found, False)
    terminal.table(attempts if isinstance(attempts, list) else [], False)
