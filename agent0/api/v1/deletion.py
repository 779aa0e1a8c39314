"""Runs that are hidden, tagged, archived, deleted and pruned, and what a deletion frees."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from agent0.api.appending import Begun, append
from agent0.api.conditional import Page
from agent0.api.context import ApiContext, Context, key_of
from agent0.api.problems import responses
from agent0.api.v1.decisions import Name, located
from agent0.assembly.requests.run_deletion import (
    RunSelection,
    archive_run,
    delete_run,
    deletions,
    labelled,
    prune_runs,
    tags_of,
)
from agent0.projections.runs import show_run

router = APIRouter(prefix="/v1", responses=responses(429))
Tag = Annotated[str, Field(min_length=1, max_length=100)]
Reason = Annotated[str, Query(max_length=2000)]
Note = Annotated[str, Field(max_length=2000)]
NUMBER = r"^[0-9]{1,9}(\.[0-9]{1,9})?"
Age = Annotated[str, Query(pattern=f"{NUMBER}[hdw]$", description="over for so long: 12h, 30d, 8w")]
Size = Annotated[str, Query(pattern=f"{NUMBER}([KMG]B)?$", description="frees at least that: 500MB, 2GB")]
OfTag = Annotated[str, Query(max_length=100, description="has this tag")]
ARCHIVES = "archives"
"""The folder of the data folder in which runs are archived."""


class Label(BaseModel):
    """Whether lists leave a run out, its tags and its note; what is absent stays as it is."""

    model_config = ConfigDict(extra="forbid")

    hidden: bool | None = None
    tags: list[Tag] | None = Field(None, max_length=100)
    note: Note | None = None


class Freed(BaseModel):
    """What deleting a run frees, and the runs that need it, so that it is refused."""

    run: str
    artifacts: int
    bytes: int
    users: list[str]


@router.post("/runs/{run}/label", operation_id="label_run", status_code=202, tags=["runs"])
async def label(response: Response, context: Context, request: Request, run: Name, wish: Label) -> Begun:
    """Hide a run from lists or show it again, and give it tags and a note."""
    return located(response, await label_run(context, request, run, wish))


@router.get("/runs/{run}/deletion", operation_id="show_deletion", tags=["runs"])
async def show(context: Context, run: Name) -> Freed:
    """Say what deleting a run would free, and which runs need it."""
    [deletion] = await deletions(context.settings, context.require_log(), [context.resolve(run)])
    return Freed(**deletion.row())


@router.post("/runs/{run}/delete", operation_id="delete_run", tags=["runs"])
async def delete(
    context: Context, request: Request, run: Name, reason: Annotated[str, Query(max_length=2000)] = ""
) -> Freed:
    """Delete a run that is over: what its events alone name is thrown away, its events stay. Refused where another run
    began from it or uses a checkpoint of it."""
    log, name = context.require_log(), context.resolve(run)
    return Freed(**(await delete_run(context.settings, log, name, _asker(request), reason)).row())


class ArchivedRun(Freed):
    """What a deletion freed, and the archive that has the run now."""

    archive: str


@router.post("/runs/{run}/archive", operation_id="archive_run", tags=["runs"])
async def archive(context: Context, request: Request, run: Name, reason: Reason = "") -> ArchivedRun:
    """Write a run that is over with its ancestors to an archive in the data folder, then delete it."""
    context.require_log()
    name = context.resolve(run)
    path: Path = context.settings.home / ARCHIVES / f"{name}.tar"
    return ArchivedRun(**await archive_run(context.settings, name, path, _asker(request), reason))


@router.get("/admin/prune", operation_id="list_prunable", tags=["admin"])
async def prunable(context: Context, older_than: Age = "0h", larger_than: Size = "0", tag: OfTag = "") -> Page:
    """Runs that are over and meet each condition, the largest first: what deleting each frees, and who needs it."""
    return await _pruned(context, RunSelection.of(older_than, larger_than, tag))


@router.post("/admin/prune", operation_id="prune_runs", tags=["admin"])
async def prune(
    context: Context, request: Request, older_than: Age, larger_than: Size = "0", tag: OfTag = "", reason: Reason = ""
) -> Page:
    """Delete all runs that are over and meet each condition; those that others need are kept, and named with these."""
    return await _pruned(context, RunSelection.of(older_than, larger_than, tag), _asker(request), reason, commit=True)


async def _pruned(
    context: ApiContext, selection: RunSelection, by: str = "", reason: str = "", *, commit: bool = False
) -> Page:
    log = context.require_log()
    chosen = await prune_runs(context.settings, log, selection, by, reason, commit=commit)
    return Page(data=[{**deletion.row(), "deleted": commit and not deletion.users} for deletion in chosen])


async def label_run(context: ApiContext, request: Request, run: str, wish: Label, more: Sequence[str] = ()) -> Begun:
    """Hide a run or show it, and give it tags and a note as ``wish`` says; ``more`` are tags beside those it has."""
    context.require_log()
    with context.tables() as db:
        row = show_run(db, run)
    tags = [*tags_of(row), *more] if more else wish.tags
    return await append(context, labelled(row, _asker(request), wish.hidden, tags, wish.note))


def _asker(request: Request) -> str:
    """The name of the key that asks; empty where no key is asked for."""
    key = key_of(request)
    return key.name if key else ""
