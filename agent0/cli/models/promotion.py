"""Which checkpoint is the student, by a person's word, and which are thrown away."""

from typing import Annotated, Any

import typer

from agent0.assembly.models.registry import go_back
from agent0.assembly.models.registry import promote as decide
from agent0.assembly.models.registry import prune as throw
from agent0.cli import console, flags, lookup
from agent0.cli.models.registry import Checkpoint
from agent0.projections.runs import resolve

Reason = Annotated[str, typer.Option("--reason", "-r", help="Why; it is part of the event.")]


def promote(checkpoint: Checkpoint, reason: Reason = "", as_json: console.Json = False) -> None:
    """Make a checkpoint its run's student, whatever the gate said of it. One event; `rollback` undoes it."""
    settings = flags.settings()
    _show_decision(console.run_async(lambda: decide(settings, checkpoint, reason)), as_json)


def rollback(
    to: Annotated[str, typer.Argument(metavar="CHECKPOINT", help="An earlier student, `base` included.")],
    run: Annotated[str, typer.Option(help="Run id, or LAST.")] = "LAST",
    reason: Reason = "",
    as_json: console.Json = False,
) -> None:
    """Go back to an earlier student: what was promoted since is let go. One event."""
    settings = flags.settings()
    with lookup.tables() as db:
        name = resolve(db, run)
    _show_decision(console.run_async(lambda: go_back(settings, name, to, reason)), as_json)


def prune(
    run: console.Run = "LAST",
    reason: Reason = "",
    commit: Annotated[bool, typer.Option("--commit", help="Throw them away; without it they are only named.")] = False,
    as_json: console.Json = False,
) -> None:
    """Adapters that a run which is over no longer needs: students it did not go on with and nothing else names. Their
    manifests stay, so `agent0 experiment retrain` makes them again."""
    settings = flags.settings()
    with lookup.tables() as db:
        name = resolve(db, run)
    pruning = console.run_async(lambda: throw(settings, name, reason, commit))
    if as_json:
        console.data(pruning)
        return
    console.table(pruning["pruned"], False)
    console.say(f"{pruning['bytes']:,} bytes." + ("" if commit else " Nothing is thrown away; --commit does it."))


def _show_decision(begun: Any, as_json: bool) -> None:
    event = begun.event
    student = getattr(event, "to", event.checkpoint)
    console.record({"run": begun.run, "event": begun.type, "student": student, "reason": event.reason}, as_json)
