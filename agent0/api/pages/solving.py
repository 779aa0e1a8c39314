"""Work on a repository from the pages: a folder that the server may read is copied, and written once accepted."""

import asyncio
import secrets
from pathlib import Path
from typing import cast, get_args

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from agent0.api.appending import append
from agent0.api.context import Context, key_of
from agent0.api.pages.forms import fields
from agent0.api.pages.rendering import router
from agent0.api.v1.tasks import repository_work, work_of
from agent0.assembly.solving.repository_copy import read_repository
from agent0.assembly.solving.solutions import SolutionRequest
from agent0.errors import ConfigError, OperationError
from agent0.verification.solutions.repository_job import Verb


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
