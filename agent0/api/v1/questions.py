"""Files of questions that come as rows: what a run would read of them, and what must be mended."""

import asyncio

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from agent0.api.context import Context, key_of
from agent0.api.problems import responses
from agent0.api.v1.writes import MOST_ROWS, StartRequest, Text, question_settings
from agent0.assembly.validate.question_check import check_questions
from agent0.projections.base import Row

router = APIRouter(prefix="/v1/questions", tags=["tasks"], responses=responses(429))


class QuestionsRequest(BaseModel):
    """Rows with questions and answers, as a run takes them."""

    model_config = ConfigDict(extra="forbid")

    questions: list[Row] = Field(min_length=1, max_length=MOST_ROWS)
    heldout: list[Row] | None = Field(None, max_length=MOST_ROWS, description="the held-out ones")
    settings: dict[str, Text] = Field({}, max_length=50, description="such as run.questions.columns")


@router.post("/check", operation_id="check_questions")
async def check(request: Request, context: Context, body: QuestionsRequest) -> Row:
    """What a run would read of rows, as `agent0 questions check --json` says it: `faults` names each row that must be
    mended, with its column."""
    context.require_log()
    start = StartRequest(**body.model_dump())
    settings = await question_settings(context, start, key_of(request))
    return await asyncio.to_thread(lambda: asyncio.run(check_questions(settings)).as_row())
