"""Forms that start something, for browsers without scripts too: each does what its route of the API does. One brings a
key."""

from typing import Any, Literal
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from agent0.api.admission.guard import COOKIE, address_of
from agent0.api.context import Context, key_of
from agent0.api.pages.attempt_pairs import ask_both
from agent0.api.pages.rendering import page
from agent0.api.pages.settings_form import changes
from agent0.api.problems import UnknownKeyError
from agent0.api.v1.admin import begin_rebuild, settle
from agent0.api.v1.decisions import decide, promote_to, roll_back
from agent0.api.v1.deletion import Label, archive, delete, label_run, prune
from agent0.api.v1.studies import AblationRequest, rescored, start_ablation
from agent0.api.v1.writes import ForkRequest, StartRequest, fork_run, start_run
from agent0.assembly.replay.forks import pairs_of
from agent0.errors import ConfigError, NotFoundError
from agent0.events.base import Event
from agent0.events.runs import RunCancelled, RunPaused, RunResumed

router = APIRouter(include_in_schema=False)
Fields = dict[str, str]


@router.post("/runs")
async def start(request: Request, context: Context) -> Response:
    """Start the run that a form describes, by a field a setting or several in one, then show it."""
    form = await fields(request, "name", "profile", "set", "again")
    others = changes(context.settings, form["profile"], await request.body())
    try:
        body = StartRequest(name=form["name"], profile=form["profile"], settings={**others, **_settings(form)})
    except ValidationError as error:
        raise unfit(error) from error
    begun = await start_run(context, body, form["again"], key_of(request))
    return RedirectResponse(f"/runs/{begun.run}", 303)


@router.post("/runs/label")
async def label_several(request: Request, context: Context) -> Response:
    """Hide, show or tag the runs that were ticked in the list, then show the list as it was filtered."""
    form = await fields(request, "tags", "action")
    runs = parse_qs((await request.body()).decode("utf-8", "replace")).get("run", [])
    tags = form["tags"].split() if form["action"] == "tag" else []
    hidden = {"hide": True, "show": False}.get(form["action"])
    if not runs or not (tags or hidden is not None):
        raise ConfigError("Nothing was ticked, or no tag was named.", fix="Tick runs in the list, and name a tag.")
    for run in runs:
        await label_run(context, request, run, _label(hidden=hidden, tags=tags or None), tags)
    query = request.url.query
    return RedirectResponse(f"/runs?{query}" if query else "/runs", 303)


@router.post("/runs/{run}/forks")
async def fork(request: Request, context: Context, run: str) -> Response:
    """Fork a run as a form describes, then show the fork."""
    form = await fields(request, "name", "at", "set", "again")
    try:
        body = ForkRequest(name=form["name"], at=int(form["at"] or "0"), settings=_settings(form))
    except ValueError as error:  # pydantic's is one
        raise unfit(error) from error
    begun = await fork_run(context, run, body, form["again"], key_of(request))
    return RedirectResponse(f"/runs/{begun.run}", 303)


@router.post("/runs/{run}/{action}")
async def decide_(request: Request, context: Context, run: str, action: str) -> Response:
    """Pause, resume, cancel, hide, show, label (tags and note), archive or delete a run as a form says, or go back to
    an earlier student."""
    if action in ("hide", "show", "label"):
        form = await fields(request, "tags", "note")
        labels = {"tags": form["tags"].split(), "note": form["note"]} if action == "label" else {}
        await label_run(context, request, run, _label(hidden=None if labels else action == "hide", **labels))
        return RedirectResponse(f"/runs/{quote(run, safe='')}", 303)
    if action in ("archive", "delete"):
        await (archive if action == "archive" else delete)(context, request, run)
        return RedirectResponse("/runs", 303)
    if action not in (*WORDS, "rollback"):
        raise NotFoundError("There is no such decision.")
    form = await fields(request, "reason", "to", "again")
    if action == "rollback":
        await roll_back(context, run, form["to"], form["reason"], form["again"])
    else:
        await decide(context, run, WORDS[action], form["reason"], form["again"])
    return RedirectResponse(f"/runs/{quote(run, safe='')}", 303)


@router.post("/models/{run}/{checkpoint}/promote")
async def promote(request: Request, context: Context, run: str, checkpoint: str) -> Response:
    """Make a checkpoint its run's student, then show it."""
    form = await fields(request, "reason", "again")
    await promote_to(context, run, checkpoint, form["reason"], form["again"])
    return RedirectResponse(f"/models/{quote(run, safe='')}/{quote(checkpoint, safe='')}", 303)


@router.post("/experiments/rescore")
async def rescore(request: Request, context: Context) -> Response:
    """Recompute the rewards of a run under other rules, write it down, then show what changed."""
    form = await fields(request, "run", "name", "rewards", "set")
    experiment = await rescored(context, form["run"], form["name"], form["rewards"], _settings(form))
    return RedirectResponse(f"/experiments/{quote(experiment, safe='')}", 303)


@router.post("/experiments/ablation")
async def ablation(request: Request, context: Context) -> Response:
    """Start a run for each variant of a setting and each seed, then show the runs."""
    form = await fields(request, "name", "profile", "setting", "values", "seeds", "set", "again")
    try:
        body = AblationRequest(
            name=form["name"],
            profile=form["profile"],
            setting=form["setting"],
            values=form["values"].split(),
            seeds=[int(seed) for seed in form["seeds"].split()],
            settings=_settings(form),
        )
    except ValueError as error:
        raise unfit(error) from error
    await start_ablation(context, body, form["again"], key_of(request))
    return RedirectResponse("/runs", 303)


@router.post("/experiments/fork")
async def fork_of(request: Request, context: Context) -> Response:
    """Fork the run that a form names, then show the fork."""
    form = await fields(request, "run")
    return await fork(request, context, form["run"])


@router.post("/compare")
async def ask(request: Request, context: Context) -> Response:
    """Submit a question to two checkpoints, then show their attempts side by side."""
    form = await fields(request, "left", "right", "question", "expected", "again")
    try:
        left, right = await ask_both(context, **form, key=key_of(request))
    except ValidationError as error:
        raise unfit(error) from error
    return RedirectResponse(f"/compare?left={left}&right={right}", 303)


@router.post("/admin/failures/{failure}/{action}")
async def decide_failure(
    request: Request, context: Context, failure: str, action: Literal["retry", "drop"]
) -> Response:
    """Have a failed reaction tried again or dropped, then show what else waits."""
    form = await fields(request, "reason", "again")
    await settle(context, failure, form["reason"] if action == "drop" else None, form["again"])
    return RedirectResponse("/admin", 303)


@router.post("/admin/prune")
async def prune_(request: Request, context: Context) -> Response:
    """Delete the runs that a form describes, then show the others."""
    form = await fields(request, "older_than", "larger_than", "tag", "reason")
    await prune(context, request, **form)
    return RedirectResponse("/runs", 303)


@router.post("/admin/rebuild")
async def rebuild(context: Context) -> Response:
    """Rebuild the tables beside the live ones, then show how it stands."""
    begin_rebuild(context)
    return RedirectResponse("/admin", 303)


WORDS: dict[str, type[Event]] = {"pause": RunPaused, "resume": RunResumed, "cancel": RunCancelled}


async def fields(request: Request, *names: str) -> Fields:
    """The fields ``names`` of a form, empty where they did not come."""
    sent = parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)
    request.state.form = {name: values[0] for name, values in sent.items()}
    return {name: sent.get(name, [""])[0].strip() for name in names}


def _label(**labels: Any) -> Label:
    try:
        return Label(**labels)
    except ValidationError as error:
        raise unfit(error) from error


def _settings(form: Fields) -> dict[str, str]:
    """A setting a line."""
    return pairs_of(form["set"].split())


def unfit(error: ValueError) -> ConfigError:
    """Make the error of a form that does not fit."""
    return ConfigError("The form does not fit.", f"{str(error)[:300]}.", "Correct it below.")


KEPT_S = 30 * 86_400
"""How long a browser keeps a key: in a cookie that no script reads and no other site sends."""


@router.get("/login")
def show_login(request: Request) -> Response:
    """Show the form that asks for a key."""
    return page(request, "login.html.jinja")


@router.post("/login")
async def take_key(request: Request, context: Context) -> Response:
    """Keep a key that is known in a cookie of the browser."""
    key_text = parse_qs((await request.body()).decode("utf-8", "replace")).get("key", [""])[0].strip()
    if not key_text or context.keys.find(key_text) is None:
        context.wrong_keys.take(key_text, address_of(request.scope))
        raise UnknownKeyError("That key is not known.", fix="Make one: agent0 api key add NAME")
    done = RedirectResponse("/runs", 303)
    done.set_cookie(
        COOKIE, key_text, max_age=KEPT_S, httponly=True, samesite="strict", secure=request.url.scheme == "https"
    )
    return done
