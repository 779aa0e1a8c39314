"""Checkpoints: what they were made of."""

from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.models.lineage import check_adapter
from agent0.assembly.models.lineage import lineage as chain
from agent0.assembly.runtime.read_models import sound_log
from agent0.cli import console, flags, lookup
from agent0.errors import LogError


def lineage(
    adapter: Annotated[
        str,
        typer.Argument(metavar="ADAPTER", help="RUN/CHECKPOINT, or its adapter's digest.", callback=lookup.of_newest),
    ],
    as_json: console.Json = False,
) -> None:
    """A checkpoint, its dataset, trajectories, tasks, teacher, verifiers, rewards, configuration and code; then its
    parent's, to the base."""
    settings = flags.settings()

    async def work() -> list[dict[str, Any]]:
        async with sound_log(settings) as log:
            return await chain(log, artifact_store(settings), adapter)

    checkpoints = console.run_async(work)
    if as_json:
        console.data(checkpoints)
        return
    for checkpoint in checkpoints:
        console.record(_described(checkpoint), False)
        console.text("")
    console.say(f"{len(checkpoints)} checkpoints down to the base; --json has every event id.")


SEEN = (
    "run",
    "checkpoint",
    "role",
    "parent",
    "adapter",
    "dataset",
    "config_sha",
    "commit",
    "dirty",
    "code_rev",
    "event",
)
DIRTY = {True: "yes: the code had changes that no commit has", False: "no", None: "not known"}


def _described(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """A checkpoint of a lineage as people read it: what it was made of is counted."""
    counted = ("teachers", "students", "verifiers", "rewards")
    counts = {name: ", ".join(f"{k} {n}" for k, n in checkpoint[name].items()) for name in counted}
    size = {
        "events": len(checkpoint["events"]),
        "tasks": len(checkpoint["tasks"]),
        "missing events": checkpoint["missing_events"],
    }
    return {**{name: checkpoint[name] for name in SEEN}, "dirty": DIRTY[checkpoint["dirty"]], **size, **counts}


def check(
    adapter: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="An adapter's file.")],
    as_json: console.Json = False,
) -> None:
    """Whether an adapter's lineage digest follows from what it says of itself, and its weights are those that it names:
    from the file alone."""
    result = check_adapter(adapter.read_bytes())
    console.record(result, as_json)
    if not result["agrees"]:
        raise LogError("The lineage digest does not follow from the note.", "The note was altered.")
    if result["weights_agree"] is False:
        raise LogError("The weights are not those that the note names.", "One of the two was altered.")
    if result["weights_agree"] is None:
        console.say("It has no digest of its weights: whether they were altered, none can say.")
