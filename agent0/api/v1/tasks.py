"""Tasks that persons submit: a run's student solves them, a verifier judges the answer, nothing is trained on them."""

import pathlib
import secrets
import sqlite3
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from agent0.api.admission.keys import Key
from agent0.api.appending import Again, Begun, append
from agent0.api.conditional import LIMIT, After, At, Limit, Page, Tagged, keyed_page
from agent0.api.context import ApiContext, Context, key_of
from agent0.api.problems import responses
from agent0.assembly.api.trajectories import transcript_of
from agent0.assembly.models.students import adapter_of, present_student
from agent0.assembly.requests.submissions import Submission, submitted
from agent0.assembly.solving.repository_copy import RepositoryCopy
from agent0.assembly.solving.solutions import (
    SOLUTION_EVENTS,
    RepositorySolution,
    SolutionRequest,
    solution_of,
    submission_of,
)
from agent0.assembly.solving.turn_lines import plan_lines
from agent0.errors import ConfigError
from agent0.events.base import Recorded, decode
from agent0.events.tasks import ToolCalled, TurnCompleted
from agent0.events.values import SOLVING
from agent0.projections.base import Row
from agent0.projections.events import stored_events
from agent0.projections.runs import resolve, show_run
from agent0.projections.submissions import list_submissions, show_submission
from agent0.settings import LARGEST, RunConfig
from agent0.tools.paths import printable
from agent0.tools.snapshots import MOST_FILES, is_inside, kept
from agent0.verification.solutions.repository_job import Verb

router = APIRouter(prefix="/v1/tasks", tags=["tasks"], responses=responses(429))


class TaskRequest(BaseModel):
    """A task for a student, and the right answer where it is known."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1, max_length=2000)
    model: str = Field("LAST", max_length=200, description="RUN (its student of now), RUN/CHECKPOINT, or a digest")
    expected: str = Field("", max_length=2000, description="the right answer; empty: it is computed, where it can be")
    domain: str = Field("", max_length=80, description="one of the run's; empty: its first")
    seed: int | None = Field(None, ge=0, le=LARGEST)


class RepositoryRequest(BaseModel):
    """Work on a repository: its text files by path, and with `base` those of an earlier version to look at what
    changed. `check` must say whether the code is right, and may import the packages `needs`."""

    model_config = ConfigDict(extra="forbid")

    verb: Verb
    files: dict[str, str] = Field(min_length=1, max_length=MOST_FILES)
    base: dict[str, str] = Field(default_factory=dict, max_length=MOST_FILES)
    check: str = Field("pytest -q", min_length=1, max_length=500)
    name: str = Field("repository", max_length=80, pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$")
    model: str = Field("LAST", max_length=200, description="RUN (its student of now), RUN/CHECKPOINT, or a digest")
    seconds: float | None = Field(
        None, ge=1, le=3600, description="that the check may take; empty: the server's most, beyond which none may"
    )
    needs: tuple[str, ...] = Field((), max_length=20)
    seed: int | None = Field(None, ge=0, le=LARGEST)
    less: int = Field(1, ge=1, le=1000, description="refactor: by how much branches and repeated statements must fall")


@router.post("/repository", operation_id="submit_repository", status_code=202)
async def submit_repository(
    request: Request, response: Response, context: Context, body: RepositoryRequest, again: Again = ""
) -> Begun:
    """Submit work on a repository. At `Location` come its `diff` and the `votes` on it; the files are the client's, and
    nothing is written anywhere else."""
    context.require_log()
    key = key_of(request)
    begin = _repository_work(context, body, key.name if key else "")
    begun = await append(context, begin, again)
    response.headers["Location"] = f"/v1/tasks/{begun.run}"
    return begun


def _repository_work(context: ApiContext, body: RepositoryRequest, by: str) -> Recorded:
    """The event that asks for the work.

    Raises:
        ConfigError: a path that cannot be in a work folder, or a check that may take longer than the server lets it;
            otherwise as ``repository_work``.
    """
    seed = secrets.randbits(31) if body.seed is None else body.seed
    most = context.settings.sandbox.verifier_wall_s
    if body.seconds is not None and body.seconds > most:
        why = "Its setting sandbox.verifier_wall_s has no more."
        raise ConfigError(f"A check may take {most:g} s on this server.", why, "Name fewer seconds, or raise it there.")
    request = SolutionRequest(body.verb, body.check, body.seconds or most, body.needs, seed, body.less)
    copy = RepositoryCopy(pathlib.Path(body.name), _encoded(body.files), base=_encoded(body.base) or None)
    return repository_work(context, body.model, request, copy, by)


def repository_work(
    context: ApiContext, model: str, request: SolutionRequest, copy: RepositoryCopy, by: str, folder: str = ""
) -> Recorded:
    """The event that asks the student ``model`` for work on a repository, which is written into ``folder`` once that is
    accepted.

    Raises:
        ConfigError: files that are none of Python, or no check.
        NotFoundError: no such student, or its weights are gone.
    """
    with context.tables() as db:
        run, checkpoint = present_student(db, model)
        config = RunConfig.recorded(show_run(db, run)["config"])
    name = f"{run}/{checkpoint['checkpoint']}"
    student = (run, checkpoint["checkpoint"], adapter_of(context.artifacts, name, checkpoint))
    return submission_of(config, context.artifacts, request, copy, student, by, folder)


def work_of(context: ApiContext, db: sqlite3.Connection, task: str) -> tuple[RepositorySolution | None, list[str]]:
    """The work on a repository with the id ``task``, None where it is none or not done; and the lines of its turns.

    Raises:
        NotFoundError, LogError: what it is about is missing or damaged.
    """
    kinds = (*SOLUTION_EVENTS, ToolCalled, TurnCompleted)
    rows = stored_events(db, task, ",".join(kind.__name__ for kind in kinds))
    events = [decode(stored["body"], stored["seq"]).event for stored in rows]
    return solution_of(task, events, context.artifacts), plan_lines(events, context.artifacts)


def _encoded(files: dict[str, str]) -> dict[str, bytes]:
    wrong = [path for path in files if not is_inside(path) or printable(path) != path]
    if wrong:
        raise ConfigError(f"{printable(wrong[0][:80])!r} is no path in a repository.", "", "Write it like src/a.py.")
    encoded = {path: text.encode(errors="replace") for path, text in files.items()}
    if kept(encoded)[1]:
        raise ConfigError("The files do not fit into a work folder.", "One lies below another, or they are too many.")
    return encoded


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
    """One submitted task; ``solution`` is a whole attempt, None where there is none yet. Of work on a repository
    ``plan`` has the turns so far; once it is done ``diff`` has the changes, ``votes`` what was tried of them,
    ``folder`` is where they may be written to, and ``written`` whether they are.

    Raises:
        NotFoundError: there is none, or its transcript is gone.
    """
    with context.tables(at) as db:
        row = show_submission(db, task)
        work, plan = work_of(context, db, task) if row["domain"] == SOLVING else (None, [])
    row |= {"plan": plan} if row["domain"] == SOLVING else {}
    if work is not None:
        row |= {"diff": work.diff, "votes": [vote.model_dump(mode="json") for vote in work.votes]}
        row |= {"folder": "" if work.is_review else work.job.folder, "written": work.is_written, "holds": work.solved}
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
