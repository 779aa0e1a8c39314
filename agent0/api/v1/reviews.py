"""What awaits a person's verdict, and a verdict."""

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from agent0.api.appending import Again, Begun, append
from agent0.api.conditional import LIMIT, At, Counted, Limit, Page, Tagged, counted_page
from agent0.api.context import Context
from agent0.api.problems import responses
from agent0.api.v1.decisions import located
from agent0.assembly.requests.reviews import LONGEST_NAME, LONGEST_REASON, review_events
from agent0.assembly.runtime.stamping import recorded
from agent0.errors import ConfigError
from agent0.projections.reviews import awaiting, judged
from agent0.projections.runs import resolve

router = APIRouter(prefix="/v1/runs", tags=["runs"], responses=responses(429))
Name = Annotated[str, Path(max_length=200)]


class Review(BaseModel):
    """A person's verdict on the answer of one attempt; ``correct`` null: it cannot be decided."""

    model_config = ConfigDict(extra="forbid")

    attempt: str = Field(max_length=200)
    correct: bool | None
    reviewer: str = Field(max_length=LONGEST_NAME)
    reason: str = Field("", max_length=LONGEST_REASON)


@router.get("/{run}/reviews", operation_id="list_awaiting", dependencies=[Tagged])
def listed(context: Context, run: Name, limit: Limit = LIMIT, after: Counted = "", at: At = 0) -> Page:
    """Answers that no person has judged, undecided ones first, as `agent0 task review` shows them."""
    with context.tables(at) as db:
        name = resolve(db, run)
        return counted_page(lambda n: awaiting(db, name, n), after, limit)


@router.post("/{run}/review", operation_id="review_attempt", status_code=202)
async def review(response: Response, context: Context, run: Name, verdict: Review, again: Again = "") -> Begun:
    """Judge the answer of an attempt. It decides where nothing has yet; later it is recorded, and raises an alarm where
    it contradicts the machine."""
    context.require_log()
    name = context.resolve(run)
    with context.tables() as db:
        rows = judged(db, name, verdict.attempt)
    if [row["attempt"] for row in rows] != [verdict.attempt]:
        names = ", ".join(row["attempt"] for row in rows)
        raise ConfigError(f"{verdict.attempt} is a task.", "A verdict is on one attempt.", f"Name an attempt: {names}.")
    begin, *more = [
        recorded(name, event) for event in review_events(rows, [verdict.correct], verdict.reviewer, verdict.reason)
    ]
    return located(response, await append(context, begin, again, more=more))
