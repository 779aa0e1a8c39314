"""What repeated requests save: a tag of what was sent, and the cursor of the next page."""

from collections.abc import Callable, Sequence
from typing import Annotated

from fastapi import Depends, Query, Request, Response
from pydantic import BaseModel, Field

from agent0.api.context import context_of
from agent0.projections import position
from agent0.projections.base import Row
from agent0.settings import LARGEST

LIMIT = 100
MOST = 1000
Limit = Annotated[int, Query(ge=1, le=MOST, description="rows of a page at most")]
At = Annotated[int, Query(ge=0, le=LARGEST, description="as it was behind this event; 0: now")]
After = Annotated[str, Query(max_length=200, description="the cursor `next` of the page before")]
Counted = Annotated[str, Query(pattern="^[0-9]{0,7}$", description="the cursor `next` of the page before")]


class Page(BaseModel):
    """A page of rows. ``next`` is the cursor of the next one, null where there is none."""

    data: list[Row]
    next: str | None = Field(None, description="`after` of the next page")


class NotModified(Exception):  # noqa: N818 - no error
    """Raised where the client has already what would be sent to it."""

    def __init__(self, tag: str) -> None:
        self.tag = tag


def _tagged(request: Request, response: Response, at: At = 0) -> None:
    """Tag what is made of the tables by how far they have come; where the client has that, nothing is sent.

    The position is read before the rows: rows may be newer than their tag, never older."""
    with context_of(request).tables() as db:
        current = position(db)
    tag = f'W/"{current.seq}-{current.event[-12:]}-{current.tables[:8]}{f"-{at}" if at else ""}"'
    tags = [part.strip() for part in request.headers.get("if-none-match", "").split(",")]
    if tag in tags or "*" in tags:
        raise NotModified(tag)
    response.headers["ETag"] = tag


Tagged = Depends(_tagged)


def keyed_page(rows: Sequence[Row], limit: int, key: str) -> Page:
    """The first ``limit`` of ``rows``, of which one more was asked for; the cursor is ``key`` of the last one."""
    page_rows = [dict(row) for row in rows[:limit]]
    return Page(data=page_rows, next=str(page_rows[-1][key]) if len(rows) > limit else None)


def counted_page(fetch: Callable[[int], Sequence[Row]], after: str, limit: int) -> Page:
    """A page of what is short: ``fetch`` takes a number of rows, and the cursor counts those before."""
    start = int(after or 0)
    rows = fetch(start + limit + 1)[start:]
    more = str(start + limit) if len(rows) > limit else None
    return Page(data=[dict(row) for row in rows[:limit]], next=more)
