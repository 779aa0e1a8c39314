"""What starts: runs and forks. Each is one event, and a request that is sent again under its key is that same event."""

import asyncio
import re
from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from agent0.api.admission.keys import Key
from agent0.api.appending import Again, Begun, append
from agent0.api.context import ApiContext, Context, key_of
from agent0.api.problems import responses
from agent0.assembly.models.warm_start import WarmStart, warm_checkpoint
from agent0.assembly.replay.forks import fork
from agent0.assembly.runtime.app import started
from agent0.assembly.runtime.execution import prepared
from agent0.assembly.runtime.plugins import with_plugin_files
from agent0.config.loading import load
from agent0.errors import AuthError, ConfigError
from agent0.infra.storage.row_formats import stored_rows
from agent0.projections.base import Row
from agent0.settings import LARGEST, Settings

router = APIRouter(prefix="/v1/runs", tags=["runs"], responses=responses(402))
REACHES_OUT = (".base_url", ".key_env", "questions.file", "questions.heldout", "questions.template", "documents.folder")
"""Settings that say whom a run calls, with which secret, and what file of the server's it reads."""
MOST_ROWS = 10_000
"""Rows of questions in a request."""
_PROFILE = re.compile(r"[A-Za-z0-9_-]{0,64}")
Text = Annotated[str, Field(max_length=2000)]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field("", max_length=100, description="for people; the run's id is made from it")
    settings: dict[str, Text] = Field({}, max_length=200, description="settings of a run, as after --set")


class StartRequest(_Asked):
    """A run to start: its profile, other settings, and its name."""

    profile: str = Field("", max_length=255, description="empty: that of the server")
    questions: list[Row] | None = Field(None, max_length=MOST_ROWS, description="rows with questions and answers")
    heldout: list[Row] | None = Field(None, max_length=MOST_ROWS, description="the held-out ones")
    adapter: str = Field("", max_length=200, description="a checkpoint that its student begins with: RUN/CHECKPOINT")


class ForkRequest(_Asked):
    """A run to start in the middle of another."""

    at: int = Field(0, ge=0, le=LARGEST, description="behind this event; 0: its end")


@router.post("", operation_id="start_run", status_code=202)
async def start(request: Request, response: Response, context: Context, body: StartRequest, again: Again = "") -> Begun:
    """Start a run; handlers execute it. `Location` is where to watch it."""
    begun = await start_run(context, body, again, key_of(request))
    response.headers["Location"] = f"/v1/runs/{begun.run}"
    return begun


@router.post("/{run}/forks", operation_id="fork_run", status_code=202)
async def fork_(
    request: Request,
    response: Response,
    context: Context,
    run: Annotated[str, Path(max_length=200)],
    body: ForkRequest,
    again: Again = "",
) -> Begun:
    """Start a run in the middle of another, under other settings; the past is shared."""
    begun = await fork_run(context, run, body, again, key_of(request))
    response.headers["Location"] = f"/v1/runs/{begun.run}"
    return begun


async def start_run(context: ApiContext, body: StartRequest, again: str, key: Key | None) -> Begun:
    """Append the beginning of a run.

    Raises:
        OperationError: the server only reads, or ``again`` was the key of another request.
        ConfigError: settings or an adapter that do not fit. RequirementsError: something is missing.
        NotFoundError: no such checkpoint.
        AuthError: ``key`` may not set what was set.
    """
    context.require_log()
    settings = await prepared(await question_settings(context, body, key), here=context.handlers)
    warm = await asyncio.to_thread(_warm, context, settings, body.adapter) if body.adapter else None
    return await append(context, started(settings, body.name, warm), again)


def _warm(context: ApiContext, settings: Settings, checkpoint: str) -> WarmStart:
    with context.tables() as db:
        return warm_checkpoint(settings, db, checkpoint)


async def fork_run(context: ApiContext, run: str, body: ForkRequest, again: str, key: Key | None) -> Begun:
    """Append the beginning of a fork of ``run``.

    Raises:
        NotFoundError: no such run or event; otherwise as ``start_run``.
    """
    log = context.require_log()
    _check(body.settings, key)
    begin = await fork(context.settings, log, context.resolve(run), body.at, body.settings, body.name)
    return await append(context, begin, again)


async def question_settings(context: ApiContext, body: StartRequest, key: Key | None) -> Settings:
    """The settings of the run of ``body``, the rows of its questions stored in the data folder.

    Raises:
        ConfigError: settings that do not fit. AuthError: ``key`` may not set what was set.
    """
    stored: dict[str, str] = {}
    for name, rows in (("run.questions.file", body.questions), ("run.questions.heldout", body.heldout)):
        if rows is not None:
            stored[name] = str(await asyncio.to_thread(stored_rows, context.settings.home, rows))
    return _settings(context, body, key, stored)


def _settings(context: ApiContext, body: StartRequest, key: Key | None, stored: Mapping[str, str]) -> Settings:
    """The server's settings with those of the request: those of runs only, since others would reach this process."""
    if others := [name for name in body.settings if not name.startswith("run.")]:
        raise ConfigError(f"{others[0][:80]!r} is no setting of a run.", "Their names begin with `run.`.")
    _check(body.settings, key)
    profile = profile_source(context.settings, body.profile)
    return with_plugin_files(load(profile, {**body.settings, **stored, "home": str(context.settings.home)}))


def profile_source(settings: Settings, profile: str) -> str:
    """What ``profile`` is loaded by on the server of ``settings``, whose own it is where empty or named as that.

    Raises:
        ConfigError: it is another file.
    """
    if profile in ("", settings.profile):
        return settings.profile_source
    if not _PROFILE.fullmatch(profile):
        raise ConfigError("A profile is named, no file is.", fix="See: agent0 config show --profile NAME")
    return profile


def _check(settings: Mapping[str, str], key: Key | None) -> None:
    """Whom a run calls, with which secret, and what it reads, is for who administers the server to say."""
    named = [name for name in settings if name.endswith(REACHES_OUT)]
    if named and key is not None and not key.may("admin"):
        raise AuthError(f"The key {key.name} may not set {named[0]}.", "It takes the scope admin.")
