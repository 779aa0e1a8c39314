"""Tasks that persons submit: a run's student solves them, a verifier judges the answer, nothing is trained on them."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from agent0.api.admission.keys import Key
from agent0.api.appending import Again, Begun, append
from agent0.api.conditional import LIMIT, After, At, Limit, Page, Tagged, keyed_page
from agent0.api.context import ApiContext, Context, key_of
from agent0.api.problems import responses
from agent0.assembly.api.trajectories import transcript_of
from agent0.assembly.requests.submissions import Submission, submitted
from agent0.projections.base import Row
from agent0.projections.runs import resolve
from agent0.projections.submissions import list_submissions, show_submission
from agent0.settings import LARGEST

router = APIRouter(prefix="/v1/tasks", tags=["tasks"], responses=responses(429))


class TaskRequest(BaseModel):
    """A task for a student, and the right answer where it is known."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1, max_length=2000)
    model: str = Field("LAST", max_length=200, description="RUN (its student of now), RUN/CHECKPOINT, or a digest")
    expected: str = Field("", max_length=2000, description="the right answer; empty: it is computed, where it can be")
    domain: str = Field("", max_length=80, description="one of the run's; empty: its first")
    seed: int | None = Field(None, ge=0, le=LARGEST)


@router.post("", operation_id="submit_task", status_code=202)
async def submit(request: Request, response: Response, context: Context, body: TaskRequest, again: Again = "") -> Begun:
    """Submit a task; handlers solve and judge it. `Location` is where to watch it, `run` its name."""
    begun = await submit_task(context, body, again, key_of(request))
    response.headers["Location"] = f"/v1/tasks/{begun.run}"
    return begun


@router.get("", operation_id="list_submitted_tasks", dependencies=[Tagged])
def tasks(
    context: Context,
    of: Annotated[str, Query(alias="run", max_length=200, description="for students of one run only")] = "",
    limit: Limit = LIMIT,
    after: After = "",
    at: At = 0,
) -> Page:
    """Submitted tasks with what became of them, newest first."""
    with context.tables(at) as db:
        rows = list_submissions(db, resolve(db, of) if of else "", limit + 1, after)
    return keyed_page(rows, limit, "submission")


@router.get("/{task}", operation_id="show_submitted_task", dependencies=[Tagged])
def task(context: Context, task: Annotated[str, Path(max_length=80)], at: At = 0) -> Row:
    """One submitted task with its solution: transcript, tool calls, verdict."""
    return submission_data(context, task, at)


def submission_data(context: ApiContext, task: str, at: int = 0) -> Row:
    """One submitted task; ``solution`` is a whole attempt, None where there is none yet.

    Raises:
        NotFoundError: there is none, or its transcript is gone.
    """
    with context.tables(at) as db:
        row = show_submission(db, task)
    if row["solution"]:
        row["solution"]["transcript"] = transcript_of(context.settings, row["solution"])
    return row


async def submit_task(context: ApiContext, body: TaskRequest, again: str, key: Key | None) -> Begun:
    """Append the submission of a task.

    Raises:
        ConfigError: the question is none, or the run has no such domain. NotFoundError: no such student.
        OperationError: the server only reads, or ``again`` was the key of another request.
    """
    context.require_log()
    submission = Submission(**body.model_dump())
    with context.tables() as db:
        begin = submitted(db, context.artifacts, submission, key.name if key else "")
    return await append(context, begin, again)
