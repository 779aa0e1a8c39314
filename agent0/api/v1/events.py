"""Events as pages of JSON and as a stream, by one handler: what a stream sends is what a page holds, its id is the
event's sequence, and both go on behind the one that was seen last."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event

from agent0.api.conditional import LIMIT, At, Limit, Page, Tagged
from agent0.api.context import LOOK_S, ApiContext, Context
from agent0.api.problems import responses
from agent0.assembly.api.transports import required_types
from agent0.assembly.runtime.read_models import require_reached
from agent0.errors import NotFoundError
from agent0.projections.base import Row
from agent0.projections.events import extent_of, show_event, stored_events
from agent0.projections.runs import resolve
from agent0.settings import LARGEST

router = APIRouter(prefix="/v1/events", tags=["events"], responses=responses())
PING_S = 15.0
CHUNK = 200
STREAM = "text/event-stream"
Seq = Annotated[int, Query(ge=0, le=LARGEST)]
_STREAMED: dict[int | str, Row] = {
    200: {"content": {STREAM: {"schema": {"type": "string"}}}, "description": "a page, or a stream for this media type"}
}


@dataclass(frozen=True)
class EventFilter:
    """Which events are asked for; what is empty filters nothing."""

    run: str
    type: str
    task: str

    def rows(self, db: sqlite3.Connection, after: int, until: int, limit: int) -> list[tuple[int, str]]:
        """(sequence, JSON) of events, oldest first: the envelope as the log holds it, with ``seq`` and ``text``."""
        stored = stored_events(db, self.run, self.type, self.task, after, until, limit)
        return [
            (row["seq"], f'{{"seq":{row["seq"]},"text":{json.dumps(row["text"])},{str(row["body"])[1:]}')
            for row in stored
        ]


@router.get("", operation_id="list_events", response_model=Page, responses=_STREAMED)
def events(
    request: Request,
    context: Context,
    run: Annotated[str, Query(max_length=200)] = "",
    type: Annotated[str, Query(max_length=400, description="these event classes only, by commas")] = "",
    task: Annotated[str, Query(max_length=80)] = "",
    after: Seq = 0,
    until: Annotated[Seq, Query(description="the last one; 0: the end")] = 0,
    limit: Limit = LIMIT,
    last_event_id: Annotated[
        str, Header(pattern="^[0-9]{0,18}$", description="as `after`: a stream goes on there")
    ] = "",
) -> Any:
    """Events after a sequence, oldest first. With `Accept: text/event-stream` they come as they happen, and do not end;
    `id` of each is its sequence."""
    streamed = STREAM in request.headers.get("accept", "")
    begin = int(last_event_id or after) if streamed else after
    with context.tables() as db:
        require_reached(db, max(begin, until))
        event_filter = EventFilter(_token(db, run), required_types(type), task)
        rows = [] if streamed else event_filter.rows(db, begin, until, limit + 1)
    if streamed:
        return EventSourceResponse(stream(context, event_filter, begin, until), headers={"X-Accel-Buffering": "no"})
    more = str(rows[limit - 1][0]) if len(rows) > limit else None
    return Page(data=[json.loads(body) for _, body in rows[:limit]], next=more)


@router.get("/{event}", operation_id="show_event", dependencies=[Tagged])
def event(
    context: Context, event: Annotated[str, Path(max_length=64, description="sequence or id")], at: At = 0
) -> Row:
    """One event with everything in it, and the events that it caused."""
    with context.tables(at) as db:
        return show_event(db, event)


async def stream(context: ApiContext, event_filter: EventFilter, after: int, until: int = 0) -> AsyncIterator[bytes]:
    """Events behind ``after`` as they reach the tables, up to ``until`` (0: without an end). Each look opens the tables
    anew, so a stream holds nothing while it waits, and goes on in tables that a rebuild put in place. While they stand
    still, only their position is read, once for all streams."""

    def look(behind: int) -> list[tuple[int, str]]:
        with context.tables() as db:
            return event_filter.rows(db, behind, until, CHUNK)

    yield KEEPALIVE_COMMENT  # so that a client knows at once that it is connected
    silent, last_end = 0.0, -1
    while not context.ending.is_set() and (not until or after < until):
        end = await context.end()
        rows = await asyncio.to_thread(look, after) if end != last_end else []
        if rows:  # sent at once: between two sends it is noticed that a reader has left
            after, silent = rows[-1][0], 0.0
            yield b"".join(format_sse_event(data_str=body, id=str(seq)) for seq, body in rows)
            continue
        if until:
            return
        last_end = end
        silent += await _rest(context)
        if silent >= PING_S:
            silent = 0.0
            yield KEEPALIVE_COMMENT


async def _rest(context: ApiContext) -> float:
    """Wait a moment, or until the server ends."""
    try:
        async with asyncio.timeout(LOOK_S):
            await context.ending.wait()
    except TimeoutError:
        pass
    return LOOK_S


def _token(db: sqlite3.Connection, run: str) -> str:
    """The run's id; what is none (an experiment, a benchmark run, `log`) as it is, where events carry it."""
    if not run:
        return ""
    try:
        return resolve(db, run)
    except NotFoundError:
        if extent_of(db, run) == (0, 0):
            raise
        return run
