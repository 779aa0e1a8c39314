"""Reactions that were given up: look at them, retry or drop them."""

from typing import Annotated, Any

import typer

from agent0.assembly.log.access import open_log
from agent0.assembly.requests.decisions import dropping, retrying
from agent0.cli import console, flags, lookup
from agent0.events.base import Recorded
from agent0.projections.failures import list_failures, list_missing, show_failure
from agent0.projections.runs import resolve

Failure = Annotated[str, typer.Argument(metavar="FAILURE", help="Failure id, or a unique beginning of it.")]


def list_(
    run: Annotated[str, typer.Option(help="One run only; LAST for the newest.")] = "",
    status: Annotated[
        str, typer.Option(help="open, retried, dropped, all, or missing: open and dropped ones.")
    ] = "missing",
    limit: console.Limit = 100,
    as_json: console.Json = False,
) -> None:
    """Failures, newest first: those that wait for a person (open), and those that the run went on without (dropped)."""
    with lookup.tables() as db:
        of = resolve(db, run) if run else ""
        if status == "missing":
            rows = console.limited(lambda n: list_missing(db, of, n), limit)
        else:
            rows = console.limited(lambda n: list_failures(db, of, "" if status == "all" else status, n), limit)
    heads = ("failure", "status", "failed_handler", "cause_task", "error", "message", "run", "cause_type", "deliveries")
    console.table(rows, as_json, heads, keep=("message",))


def show(failure: Failure, as_json: console.Json = False) -> None:
    """One failure with its traceback and the event that was reacted to."""
    console.record(_failure(failure), as_json)


def retry(failure: Failure, as_json: console.Json = False) -> None:
    """Try the reaction again: its handler takes it up as soon as it runs."""
    _settle(retrying(_failure(failure)), as_json)


def drop(
    failure: Failure,
    reason: Annotated[str, typer.Option(help="Why; it is recorded.")] = "dropped by hand",
    as_json: console.Json = False,
) -> None:
    """Give the reaction up for good; the run goes on without its effects."""
    _settle(dropping(_failure(failure), reason), as_json)


def _failure(failure: str) -> dict[str, Any]:
    with lookup.tables() as db:
        return show_failure(db, failure)


def _settle(begin: Recorded, as_json: bool) -> None:
    async def work() -> int:
        async with open_log(flags.settings()) as log:
            return (await log.append([begin]))[0]

    seq = console.run_async(work)
    console.record({"failure": begin.event.model_dump()["failure"], "event": begin.type, "seq": seq}, as_json)
