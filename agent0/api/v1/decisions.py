"""A person's word on runs and checkpoints: pause, resume, cancel, promote, roll back. One event each, by the functions
that commands call."""

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from agent0.api.appending import Again, Begun, IfMatch, append, decided_before, require_unchanged
from agent0.api.context import ApiContext, Context
from agent0.api.problems import responses
from agent0.assembly.models.registry import promoted, rolled_back
from agent0.assembly.requests.decisions import decided
from agent0.events.base import Event, Recorded
from agent0.events.checkpoints import CheckpointPromoted, CheckpointRolledBack
from agent0.events.runs import RunCancelled, RunPaused, RunResumed
from agent0.projections.runs import show_run

router = APIRouter(prefix="/v1", responses=responses(412, 429))
Name = Annotated[str, Path(max_length=200)]


class Word(BaseModel):
    """Why a person decides so; it is a part of the event."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field("", max_length=2000)


class Back(Word):
    """To which earlier student of the run, `base` included."""

    to: str = Field(max_length=100)


@router.post("/runs/{run}/pause", operation_id="pause_run", status_code=202, tags=["runs"])
async def pause(
    response: Response, context: Context, run: Name, decision: Word, again: Again = "", if_match: IfMatch = ""
) -> Begun:
    """Begin nothing new in a run; what is in hand is finished and nothing is lost."""
    return located(response, await decide(context, run, RunPaused, decision.reason, again, if_match))


@router.post("/runs/{run}/resume", operation_id="resume_run", status_code=202, tags=["runs"])
async def resume(response: Response, context: Context, run: Name, again: Again = "", if_match: IfMatch = "") -> Begun:
    """Go on with a run that was paused, or with what a failed one has."""
    return located(response, await decide(context, run, RunResumed, "", again, if_match))


@router.post("/runs/{run}/cancel", operation_id="cancel_run", status_code=202, tags=["runs"])
async def cancel(
    response: Response, context: Context, run: Name, decision: Word, again: Again = "", if_match: IfMatch = ""
) -> Begun:
    """End a run for good; its events stay."""
    return located(response, await decide(context, run, RunCancelled, decision.reason, again, if_match))


@router.post("/runs/{run}/rollback", operation_id="roll_back", status_code=202, tags=["models"])
async def rollback(
    response: Response, context: Context, run: Name, decision: Back, again: Again = "", if_match: IfMatch = ""
) -> Begun:
    """Go back to an earlier student: what was promoted since is let go."""
    return located(response, await roll_back(context, run, decision.to, decision.reason, again, if_match))


@router.post(
    "/checkpoints/{run}/{checkpoint}/promote", operation_id="promote_checkpoint", status_code=202, tags=["models"]
)
async def promote(
    response: Response,
    context: Context,
    run: Name,
    checkpoint: Name,
    decision: Word,
    again: Again = "",
    if_match: IfMatch = "",
) -> Begun:
    """Make a checkpoint its run's student, whatever the gate said of it; a rollback undoes it."""
    return located(response, await promote_to(context, run, checkpoint, decision.reason, again, if_match))


async def decide(
    context: ApiContext, run: str, kind: type[Event], reason: str, again: str = "", if_match: str = ""
) -> Begun:
    """Pause, resume or cancel a run.

    Raises:
        NotFoundError: no such run. OperationError: it is in no state for it, or the server only reads.
        StaleError: it has changed since.
    """
    context.require_log()
    with context.tables() as db:
        row = show_run(db, run)
    if (earlier := decided_before(context, row["run"], kind, again)) is not None:
        return earlier
    require_unchanged(context, row["run"], if_match)
    return await append(context, decided(context.settings, row, _VERBS[kind], reason), again, if_match)


_VERBS: dict[type[Event], str] = {RunPaused: "pause", RunResumed: "resume", RunCancelled: "cancel"}


async def promote_to(
    context: ApiContext, run: str, checkpoint: str, reason: str, again: str = "", if_match: str = ""
) -> Begun:
    """Make a checkpoint its run's student.

    Raises:
        NotFoundError: there is none, or its weights are gone. OperationError: it cannot be, or the server only reads.
        StaleError: its run has changed since.
    """
    log, name = context.require_log(), context.resolve(run)
    if (earlier := decided_before(context, name, CheckpointPromoted, again)) is not None:
        return earlier
    require_unchanged(context, name, if_match)
    begin: Recorded = await promoted(context.settings, log, f"{name}/{checkpoint}", reason)
    return await append(context, begin, again, if_match)


async def roll_back(context: ApiContext, run: str, to: str, reason: str, again: str = "", if_match: str = "") -> Begun:
    """Make an earlier checkpoint the student of its run again; errors as for a promotion."""
    log, name = context.require_log(), context.resolve(run)
    if (earlier := decided_before(context, name, CheckpointRolledBack, again)) is not None:
        return earlier
    require_unchanged(context, name, if_match)
    return await append(context, await rolled_back(context.settings, log, name, to, reason), again, if_match)


def located(response: Response, begun: Begun) -> Begun:
    """Lead from ``response`` to the event of ``begun``, which is returned as it is."""
    response.headers["Location"] = f"/v1/events/{begun.seq}"
    return begun
