"""Hides, tags, notes, archives and deletes runs, and prunes them by age, size and tag."""

from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.assembly.log.access import open_log
from agent0.assembly.requests.run_deletion import (
    Deletion,
    RunSelection,
    archive_run,
    delete_run,
    deletions,
    labelled,
    prune_runs,
    tags_of,
)
from agent0.cli import console, flags, lookup
from agent0.projections.runs import show_run

KEPT = "Nothing is deleted; --commit deletes it."
Commit = Annotated[bool, typer.Option("--commit", help="Do it; without it, only say what it frees.")]
Reason = Annotated[str, typer.Option(help="Why; it is recorded.")]


def hide(
    run: console.Run = "LAST",
    undo: Annotated[bool, typer.Option("--undo", help="Show it in lists again.")] = False,
    as_json: console.Json = False,
) -> None:
    """Leave a run out of lists; it is still there under its name, and `run list --all` has it."""
    console.record(_label(run, hidden=not undo), as_json)


def tag(
    run: console.Run,
    tags: Annotated[list[str], typer.Argument(metavar="TAG …", help="Tags that it gets.")],
    remove: Annotated[bool, typer.Option("--remove", help="Take them away instead.")] = False,
    as_json: console.Json = False,
) -> None:
    """Give a run tags, by which `run list` and `run prune` choose."""
    console.record(_label(run, tags=tags, remove=remove), as_json)


def note(
    run: console.Run,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is to be said of it; empty takes the note away.")],
    as_json: console.Json = False,
) -> None:
    """Write a note on a run; lists and its page show it."""
    console.record(_label(run, text=text), as_json)


def delete(run: console.Run, commit: Commit = False, reason: Reason = "", as_json: console.Json = False) -> None:
    """Delete a run that is over: checkpoints, transcripts and all else that it alone names. Its events stay, so that
    every seal of the log verifies, and one more says what was deleted, when and by whom. Refused where another run
    began from it or uses a checkpoint of it."""
    name, settings = lookup.run_id(run), flags.settings()

    async def work() -> Deletion:
        async with open_log(settings) as log:
            if commit:
                return await delete_run(settings, log, name, settings.router.user, reason)
            return (await deletions(settings, log, [name]))[0]

    deletion = console.run_async(work)
    console.record({**_shown(deletion, as_json), "deleted": commit}, as_json)
    if not commit:
        console.say(KEPT)


def archive(
    run: console.Run,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="A .tar file, or a new folder.")],
    reason: Reason = "",
    as_json: console.Json = False,
) -> None:
    """Write a run with its ancestors to an archive, then delete it as `run delete --commit` does. `agent0 view FILE`
    opens it; `agent0 events import FILE` brings it into a data folder of its own."""
    name, settings = lookup.run_id(run), flags.settings()
    archived = console.run_async(lambda: archive_run(settings, name, out, settings.router.user, reason))
    console.record(archived, as_json)


def prune(
    older_than: Annotated[str, typer.Option(metavar="AGE", help="Over for so long: 12h, 30d, 8w.")] = "0h",
    larger_than: Annotated[str, typer.Option(metavar="SIZE", help="Frees at least that: 500MB, 2GB.")] = "0",
    tag: Annotated[str, typer.Option(help="Has this tag.")] = "",
    commit: Commit = False,
    reason: Reason = "",
    as_json: console.Json = False,
) -> None:
    """Delete all runs that are over and meet each condition; without --commit only list them with what each frees.
    Those that other runs need are kept, and named with these."""
    selection, settings = RunSelection.of(older_than, larger_than, tag), flags.settings()

    async def work() -> list[Deletion]:
        async with open_log(settings) as log:
            return await prune_runs(settings, log, selection, settings.router.user, reason, commit=commit)

    with lookup.tables():
        deletions = console.run_async(work)
    rows = [{**_shown(deletion, as_json), "deleted": commit and not deletion.users} for deletion in deletions]
    console.table(rows, as_json, ("run", "frees" if not as_json else "bytes", "artifacts", "users", "deleted"))
    if rows and not commit:
        console.say(KEPT)


def _label(
    run: str,
    hidden: bool | None = None,
    tags: list[str] | None = None,
    remove: bool = False,
    text: str | None = None,
) -> dict[str, Any]:
    settings = flags.settings()
    with lookup.tables() as db:
        row = show_run(db, lookup.run_id(run))
    before = tags_of(row)
    after = [tag for tag in before if tag not in (tags or ())] if remove else [*before, *(tags or ())]
    event = labelled(row, settings.router.user, hidden, after, text)

    async def work() -> None:
        async with open_log(settings) as log:
            await log.append([event])

    console.run_async(work)
    return {"run": event.run, **event.event.model_dump(mode="json", include={"hidden", "tags", "note"})}


def _shown(deletion: Deletion, as_json: bool) -> dict[str, Any]:
    if as_json:
        return deletion.row()
    return {"run": deletion.run, "frees": f"{deletion.bytes / 1e6:,.1f} MB", "artifacts": len(deletion.artifacts),
            "users": ", ".join(deletion.users)}  # fmt: skip
