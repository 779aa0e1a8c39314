"""How the server itself fares: streams, consumers, failures, seals, and tables made anew."""

from typing import Any

from fastapi import APIRouter, Response

from agent0.api.conditional import LIMIT, At, Counted, Limit, Page, Tagged, counted_page
from agent0.api.context import ApiContext, Context
from agent0.api.problems import responses
from agent0.api.status import consumers, streams
from agent0.api.v1.lists import Of
from projections.failures import list_missing
from projections.runs import resolve
from projections.seals import list_seals

Row = dict[str, Any]
router = APIRouter(prefix="/v1/admin", tags=["admin"], responses=responses(429))


@router.get("/streams", operation_id="list_streams")
async def held(context: Context) -> Page:
    """The log's streams: first and last message, how many they hold, in how many bytes."""
    return Page(data=await streams(context.settings, context.require_log()))


@router.get("/consumers", operation_id="list_consumers")
async def durables(context: Context) -> Page:
    """Each handler's durable consumer: events that wait, that are in hand, and that came again."""
    return Page(data=await consumers(context.settings, context.require_log()))


@router.get("/failures", operation_id="list_failures", dependencies=[Tagged])
def failures(context: Context, of: Of = "", limit: Limit = LIMIT, after: Counted = "", at: At = 0) -> Page:
    """Reactions that were given up: those that wait for a decision, and those that a run went on without."""
    with context.tables(at) as db:
        run = resolve(db, of) if of else ""
        return counted_page(lambda n: list_missing(db, run, n), after, limit)


@router.get("/seals", operation_id="list_seals", dependencies=[Tagged])
def seals(context: Context, limit: Limit = LIMIT, after: Counted = "", at: At = 0) -> Page:
    """Checkpoints of the log's hash chain, oldest first."""
    with context.tables(at) as db:
        return counted_page(lambda n: list_seals(db)[:n], after, limit)


@router.post("/rebuild", operation_id="rebuild_tables", status_code=202)
async def rebuild(response: Response, context: Context) -> Row:
    """Make the tables anew from the log, in a process of its own; until that is done the old ones serve. How it stands
    is in the status (`Location`, `rebuild`)."""
    response.headers["Location"] = "/v1/status"
    return begin_rebuild(context)


def begin_rebuild(context: ApiContext) -> Row:
    """Begin to rebuild the tables.

    Raises:
        OperationError: they are being rebuilt, or the server only reads.
    """
    context.require_log()
    return context.rebuilding.begin(context.settings)
