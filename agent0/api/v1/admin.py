"""How the server itself fares: streams, consumers, failures, seals, and tables made anew."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from agent0.api.appending import Again, Begun, append, decided_before
from agent0.api.conditional import LIMIT, At, Counted, Limit, Page, Tagged, counted_page
from agent0.api.context import ApiContext, Context
from agent0.api.problems import responses
from agent0.api.status import consumers, streams
from agent0.api.v1.decisions import Word, located
from agent0.api.v1.lists import Of
from agent0.assembly.requests.decisions import dropping, retrying
from agent0.events.alarms import ReactionDropped, ReactionRetried
from agent0.projections.base import Row
from agent0.projections.failures import list_missing, show_failure
from agent0.projections.runs import resolve
from agent0.projections.seals import list_seals

router = APIRouter(prefix="/v1/admin", tags=["admin"], responses=responses(429))
Failure = Annotated[str, Path(min_length=1, max_length=200, description="a failure's id, or a unique beginning of it")]


@router.get("/streams", operation_id="list_streams")
async def list_streams(context: Context) -> Page:
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


@router.post("/failures/{failure}/retry", operation_id="retry_failure", status_code=202)
async def retry(response: Response, context: Context, failure: Failure, again: Again = "") -> Begun:
    """Try a reaction again that was given up: its handler takes it up as soon as it runs."""
    return located(response, await settle(context, failure, None, again))


@router.post("/failures/{failure}/drop", operation_id="drop_failure", status_code=202)
async def drop(response: Response, context: Context, failure: Failure, decision: Word, again: Again = "") -> Begun:
    """Give a reaction up for good; its run goes on without the effects."""
    return located(response, await settle(context, failure, decision.reason, again))


async def settle(context: ApiContext, failure: str, reason: str | None, again: str = "") -> Begun:
    """Have a failed reaction tried again, or dropped where a ``reason`` is given, be it empty.

    Raises:
        NotFoundError: no such failure. OperationError: it was settled before, or the server only reads.
    """
    context.require_log()
    with context.tables() as db:
        row = show_failure(db, failure)
    kind = ReactionRetried if reason is None else ReactionDropped
    if (earlier := decided_before(context, row["run"], kind, again)) is not None:
        return earlier
    return await append(context, retrying(row) if reason is None else dropping(row, reason), again)


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
