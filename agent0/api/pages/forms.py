"""Forms that start something, for browsers without scripts too: each does what its route of the API does."""

from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from agent0.api.context import Context, key_of
from agent0.api.v1.writes import ForkRequest, StartRequest, fork_run, start_run
from agent0.assembly.replay.forks import pairs_of
from agent0.errors import ConfigError

router = APIRouter(include_in_schema=False)
Fields = dict[str, str]


@router.post("/runs")
async def start(request: Request, context: Context) -> Response:
    """Start the run that a form describes, then show it."""
    given = await _fields(request)
    try:
        asked = StartRequest(name=given["name"], profile=given["profile"], settings=_settings(given))
    except ValidationError as error:
        raise _unfit(error) from error
    found = await start_run(context, asked, given["again"], key_of(request))
    return RedirectResponse(f"/runs/{found.run}", 303)


@router.post("/runs/{run}/forks")
async def fork(request: Request, context: Context, run: str) -> Response:
    """Fork a run as a form describes, then show the fork."""
    given = await _fields(request)
    try:
        asked = ForkRequest(name=given["name"], at=int(given["at"] or "0"), settings=_settings(given))
    except ValueError as error:  # pydantic's is one
        raise _unfit(error) from error
    found = await fork_run(context, run, asked, given["again"], key_of(request))
    return RedirectResponse(f"/runs/{found.run}", 303)


async def _fields(request: Request) -> Fields:
    given = parse_qs((await request.body()).decode("utf-8", "replace"))
    return {name: given.get(name, [""])[0].strip() for name in ("name", "profile", "at", "set", "again")}


def _settings(given: Fields) -> dict[str, str]:
    """A setting a line."""
    return pairs_of(given["set"].split())


def _unfit(error: ValueError) -> ConfigError:
    return ConfigError("The form does not fit.", f"{str(error)[:300]}.", "Go back and correct it.")
