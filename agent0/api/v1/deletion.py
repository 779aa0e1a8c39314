"""Runs that are hidden, tagged and deleted, and what a deletion frees."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from agent0.api.appending import Begun, append
from agent0.api.context import ApiContext, Context, key_of
from agent0.api.problems import responses
from agent0.api.v1.decisions import Name, located
from agent0.assembly.requests.run_deletion import delete_run, deletions, labelled
from agent0.projections.runs import resolve, show_run

router = APIRouter(prefix="/v1", responses=responses(429))
Tag = Annotated[str, Field(min_length=1, max_length=100)]


class Label(BaseModel):
    """Whether lists leave a run out, and its tags; what is absent stays as it is."""

    model_config = ConfigDict(extra="forbid")

    hidden: bool | None = None
    tags: list[Tag] | None = Field(None, max_length=100)


class Freed(BaseModel):
    """What deleting a run frees, and the runs that need it, so that it is refused."""

    run: str
    artifacts: int
    bytes: int
    users: list[str]


@router.post("/runs/{run}/label", operation_id="label_run", status_code=202, tags=["runs"])
async def label(response: Response, context: Context, request: Request, run: Name, wish: Label) -> Begun:
    """Hide a run from lists or show it again, and give it tags."""
    return located(response, await label_run(context, request, run, wish.hidden, wish.tags))


@router.get("/runs/{run}/deletion", operation_id="show_deletion", tags=["runs"])
async def show(context: Context, run: Name) -> Freed:
    """Say what deleting a run would free, and which runs need it."""
    [deletion] = await deletions(context.settings, context.require_log(), [_resolved(context, run)])
    return Freed(**deletion.row())


@router.post("/runs/{run}/delete", operation_id="delete_run", tags=["runs"])
async def delete(
    context: Context, request: Request, run: Name, reason: Annotated[str, Query(max_length=2000)] = ""
) -> Freed:
    """Delete a run that is over: what its events alone name is thrown away, its events stay. Refused where another run
    began from it or uses a checkpoint of it."""
    log, name = context.require_log(), _resolved(context, run)
    return Freed(**(await delete_run(context.settings, log, name, _asker(request), reason)).row())


async def label_run(
    context: ApiContext, request: Request, run: str, hidden: bool | None, tags: list[str] | None = None
) -> Begun:
    """Hide a run or show it, and give it tags; None leaves either as it is."""
    context.require_log()
    with context.tables() as db:
        row = show_run(db, run)
    return await append(context, labelled(row, _asker(request), hidden, tags))


def _asker(request: Request) -> str:
    """The name of the key that asks; empty where no key is asked for."""
    key = key_of(request)
    return key.name if key else ""


def _resolved(context: ApiContext, run: str) -> str:
    with context.tables() as db:
        return resolve(db, run)
