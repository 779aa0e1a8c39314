"""Reactions that were given up: look at them, retry or drop them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent0.cli import console

if TYPE_CHECKING:
    from events.base import Event

app = typer.Typer(help="Reactions that were given up (the dead letters).")
Failure = Annotated[str, typer.Argument(metavar="FAILURE", help="Failure id, or a unique beginning of it.")]


@app.command("list")
def list_(
    run: Annotated[str, typer.Option(help="One run only; LAST for the newest.")] = "",
    status: Annotated[
        str, typer.Option(help="open, retried, dropped, all, or missing: open and dropped ones.")
    ] = "missing",
    limit: console.Limit = 100,
    as_json: console.Json = False,
) -> None:
    """Failures, newest first: those that wait for a person (open), and those that the run went on without (dropped)."""
    from projections.failures import list_failures, list_missing
    from projections.runs import resolve

    with console.tables() as db:
        of = resolve(db, run) if run else ""
        if status == "missing":
            rows = console.limited(lambda n: list_missing(db, of, n), limit)
        else:
            rows = console.limited(lambda n: list_failures(db, of, "" if status == "all" else status, n), limit)
    seen = ("failure", "status", "failed_handler", "cause_task", "error", "message", "run", "cause_type", "deliveries")
    console.table(rows, as_json, seen, keep=("message",))


@app.command()
def show(failure: Failure, as_json: console.Json = False) -> None:
    """One failure with its traceback and the event that was reacted to."""
    console.record(_found(failure), as_json)


@app.command()
def retry(failure: Failure, as_json: console.Json = False) -> None:
    """Try the reaction again: its handler takes it up as soon as it runs."""
    from events.alarms import ReactionRetried

    held = _open(failure)
    event = ReactionRetried(**{name: held[name] for name in ReactionRetried.model_fields})
    _settle(held, event, as_json)


@app.command()
def drop(
    failure: Failure,
    reason: Annotated[str, typer.Option(help="Why; it is recorded.")] = "dropped by hand",
    as_json: console.Json = False,
) -> None:
    """Give the reaction up for good; the run goes on without its effects."""
    from events.alarms import ReactionDropped

    held = _open(failure)
    fields = {name: held[name] for name in ReactionDropped.model_fields if name != "reason"}
    _settle(held, ReactionDropped(**fields, reason=reason), as_json)


def _found(failure: str) -> dict[str, Any]:
    from projections.failures import show_failure

    with console.tables() as db:
        return show_failure(db, failure)


def _open(failure: str) -> dict[str, Any]:
    from agent0.errors import OperationError

    held = _found(failure)
    if held["status"] != "open":
        raise OperationError(
            f"Failure {held['failure']} is {held['status']} already.", "Only open ones can be settled."
        )
    return held


def _settle(held: dict[str, Any], event: "Event", as_json: bool) -> None:
    from agent0.assembly.log.access import open_log
    from agent0.assembly.runtime.stamping import recorded

    async def work() -> int:
        async with open_log(console.settings()) as log:
            return (await log.append([recorded(held["run"], event)]))[0]

    seq = console.run_async(work)
    console.record({"failure": held["failure"], "event": type(event).__name__, "seq": seq}, as_json)
