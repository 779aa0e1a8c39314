"""The pages on which a person talks with a student: a task submitted and watched, work on a repository that is written
once accepted, and a chat."""

import asyncio
import json
import secrets
from pathlib import Path
from typing import Annotated, cast, get_args

from fastapi import Query, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from agent0.api.appending import append
from agent0.api.conditional import LIMIT, At, Limit
from agent0.api.context import ApiContext, Context, key_of
from agent0.api.openai.routes import chat as complete
from agent0.api.openai.routes import models
from agent0.api.openai.wire import ChatRequest
from agent0.api.pages.forms import fields, unfit
from agent0.api.pages.rendering import Shown, page, router, twin
from agent0.api.v1.tasks import TaskRequest, repository_work, submission_data, submit_task, work_of
from agent0.assembly.runtime.read_models import NothingError
from agent0.assembly.solving.repository_copy import read_repository
from agent0.assembly.solving.solutions import SolutionRequest
from agent0.assembly.validate.call_forms import call_forms
from agent0.errors import ConfigError, OperationError
from agent0.projections.base import Row
from agent0.projections.runs import list_runs
from agent0.projections.submissions import list_submissions
from agent0.verification.solutions.repository_job import Verb

LONGEST = 200_000
"""Characters of a conversation that a form brings back."""


@twin("/submit", "submit.html.jinja", tagged=False)
def submit(context: Context, limit: Limit = LIMIT, at: At = 0) -> Shown:
    """Tasks that were submitted, and a form for another."""
    try:
        with context.tables(at) as db:
            rows, names = list_submissions(db, limit=limit), [row["run"] for row in list_runs(db, LIMIT)]
    except NothingError:
        rows, names = [], []
    more = {"names": names if context.log else [], "again": secrets.token_urlsafe(16)}
    more |= {"verbs": get_args(Verb), "start": str(Path.cwd())}
    return Shown({"submissions": rows}, at, more)


@twin("/tasks/{task}", "submission.html.jinja")
def submission(context: Context, task: str, at: At = 0) -> Shown:
    """One submitted task, as far as it is solved."""
    return Shown({"task": submission_data(context, task, at)}, at)


@router.post("/submit")
async def take(request: Request, context: Context) -> Response:
    """Submit the task that a form describes, then show it."""
    form = await fields(request, "question", "model", "expected", "again")
    try:
        body = TaskRequest(question=form["question"], model=form["model"], expected=form["expected"])
    except ValidationError as error:
        raise unfit(error) from error
    begun = await submit_task(context, body, form["again"], key_of(request))
    return RedirectResponse(f"/tasks/{begun.run}", 303)


@router.post("/solve")
async def solve(request: Request, context: Context) -> Response:
    """Submit the work that a form describes, then show it."""
    context.require_log()
    form = await fields(request, "folder", "verb", "check", "model", "dirty", "again")
    if form["verb"] not in get_args(Verb):
        raise ConfigError("There is no such work.", f"Known: {', '.join(get_args(Verb))}.")
    copy = await asyncio.to_thread(read_repository, readable_folder(form["folder"], context.settings.home))
    if copy.dirty and not form["dirty"]:
        why = f"{len(copy.dirty)} files, such as {copy.dirty[0]}."
        raise ConfigError("The folder has what is not committed.", why, "Commit it, or tick that it is taken along.")
    seconds = context.settings.sandbox.verifier_wall_s
    work = SolutionRequest(cast(Verb, form["verb"]), form["check"], seconds, seed=secrets.randbits(31))
    key = key_of(request)
    begin = repository_work(context, form["model"], work, copy, key.name if key else "", str(copy.folder))
    begun = await append(context, begin, form["again"])
    return RedirectResponse(f"/tasks/{begun.run}", 303)


@router.post("/tasks/{task}/accept")
async def accept(context: Context, task: str) -> Response:
    """Write the changes of work that is done into its folder, then show it."""
    context.require_log()
    with context.tables() as db:
        solution = work_of(context, db, task)[0]
    if solution is None:
        raise OperationError(f"{task[:80]} is no work on a repository that is done.", "", "Look again when it is.")
    if solution.job.folder:
        readable_folder(solution.job.folder, context.settings.home)
    await asyncio.to_thread(solution.apply)
    return RedirectResponse(f"/tasks/{solution.id}", 303)


def readable_folder(name: str, home: Path) -> Path:
    """The folder ``name``, where this server may read and write it: below the one in which it was started, as a person
    chose that, and apart from its data folder ``home``.

    Raises:
        ConfigError: it lies elsewhere.
    """
    start, home = Path.cwd(), home.resolve()
    folder = (start / name).resolve() if "\0" not in name else Path("/")
    apart = not folder.is_relative_to(home) and not home.is_relative_to(folder)
    if name and start != Path("/") and folder.is_relative_to(start) and apart:
        return folder
    why = f"It reads folders below {start}, in which it was started, but for its own data."
    raise ConfigError(f"The server does not read {name[:200]!r}.", why, "Start it in a folder above: agent0 up")


@router.get("/chat")
def chat(request: Request, context: Context, model: Annotated[str, Query(max_length=200)] = "") -> Response:
    """A form that begins a chat with a student."""
    return _shown(request, context, model, [])


@router.get("/chat.json")
def chat_models(context: Context) -> Row:
    """List the students and the roles' models that can be talked to."""
    return {"models": _model_names(context)}


@router.post("/chat")
async def say(request: Request, context: Context) -> Response:
    """Let the student answer, and show the conversation; it is kept in the page, and nowhere else."""
    form = await fields(request, "model", "said", "message")
    try:
        before = json.loads(form["said"][:LONGEST] or "[]")
        body = ChatRequest(model=form["model"], messages=[*before, {"role": "user", "content": form["message"]}])
    except (ValueError, TypeError) as error:  # pydantic's is one
        raise unfit(ValueError(str(error))) from error
    reply: Row = await complete(context, body, "")
    messages = [message.model_dump(include={"role", "content"}) for message in body.messages]
    answer = {"role": "assistant", "content": reply["choices"][0]["message"]["content"] or ""}
    return _shown(request, context, form["model"], [*messages, answer])


def _shown(request: Request, context: ApiContext, model: str, messages: list[Row]) -> Response:
    values: Row = {"models": _model_names(context), "model": model, "said": messages, "kept": json.dumps(messages)}
    return page(request, "chat.html.jinja", **values)


def _model_names(context: ApiContext) -> list[str]:
    try:
        return [model["id"] for model in models(context)["data"]] if context.models else []
    except NothingError:
        return []


@twin("/models/calls", "calls.html.jinja", tagged=False)
def calls(context: Context) -> Shown:
    """Which form of calls each model's chat template teaches, and what of it is read back."""
    return Shown({"models": call_forms(context.settings)})
