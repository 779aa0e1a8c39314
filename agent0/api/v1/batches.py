"""Files of questions: submitted with a request, watched, and their answers fetched row by row."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from agent0.api.conditional import LIMIT, At, Counted, Limit, Page, Tagged, counted_page, keyed_page
from agent0.api.context import ApiContext, Context
from agent0.api.problems import responses
from agent0.assembly.batches.served_batches import BatchSubmission, SubmittedBatch, submitted_batch
from agent0.errors import NotFoundError
from agent0.projections.base import Row
from agent0.projections.batches import list_answers, list_batches, show_batch

Name = Annotated[str, Path(max_length=80)]
router = APIRouter(prefix="/v1/batches", tags=["tasks"], responses=responses(402, 429))


class BatchRequest(BaseModel):
    """Questions for a student, one a row, and who is asked."""

    model_config = ConfigDict(extra="forbid")

    rows: list[Row] = Field(min_length=1, max_length=100_000, description="objects with a `question`, and an `id`")
    model: str = Field("", max_length=200, description="RUN, RUN/CHECKPOINT or a digest; empty: the server's student")
    tools: bool = Field(True, description="whether it may call its tools")
    temperature: float = Field(0.0, ge=0, le=100, description="0: always the likeliest token")


class BatchBegun(BaseModel):
    """The batch that rows are answered as, and how many they are."""

    batch: str
    rows: int


@router.post("", operation_id="submit_batch", status_code=202)
async def submit(response: Response, context: Context, body: BatchRequest) -> BatchBegun:
    """Have rows answered, each once, in this server; the same rows for the same student are the same batch, and go on
    where they were. `Location` is where to watch it. Rows that cannot be asked are answered by an error."""
    context.require_log()
    batch = await asyncio.to_thread(_submitted, context, BatchSubmission(**body.model_dump()))
    context.batches.begin(batch)
    response.headers["Location"] = f"/v1/batches/{batch.id}"
    return BatchBegun(batch=batch.id, rows=batch.began.rows)


def _submitted(context: ApiContext, submission: BatchSubmission) -> SubmittedBatch:
    with context.tables() as db:
        return submitted_batch(db, context.settings, submission)


@router.get("", operation_id="list_batches", dependencies=[Tagged])
def batches(context: Context, limit: Limit = LIMIT, after: Counted = "", at: At = 0) -> Page:
    """Files of questions that were answered, and how far each came, oldest first."""
    with context.tables(at) as db:
        return counted_page(lambda n: list_batches(db)[:n], after, limit)


@router.get("/{batch}", operation_id="show_batch")
def batch(context: Context, batch: Name, at: At = 0) -> Row:
    """One file of questions: who answers it and how far that came; LAST is the newest. `here`: how one that came with a
    request stands in this server."""
    here = context.batches.state(batch)
    try:
        with context.tables(at) as db:
            row = show_batch(db, batch)
    except NotFoundError:
        if here is None:
            raise
        return {"batch": batch, "here": here}
    return {**row, "here": context.batches.state(str(row["batch"]))}


@router.get("/{batch}/rows", operation_id="list_batch_rows", dependencies=[Tagged])
def rows(context: Context, batch: Name, limit: Limit = LIMIT, after: Counted = "", at: At = 0) -> Page:
    """Answers to the rows of a file, in its order; an `event` has the whole conversation."""
    with context.tables(at) as db:
        return keyed_page(list_answers(db, batch, int(after or 0), limit + 1), limit, "row")
