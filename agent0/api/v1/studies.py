"""Experiments that are started over HTTP: a run's rewards under other rules, and one run a variant of a setting."""

import asyncio
from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from agent0.api.admission.keys import Key
from agent0.api.appending import Again, Begun, shown
from agent0.api.context import ApiContext, Context, key_of
from agent0.api.problems import responses
from agent0.api.v1.writes import StartRequest, Text, start_run
from agent0.assembly.replay.rescore import Rescore, rescore_run
from agent0.assembly.validate.rewards import AS_RUN, reward_policy
from agent0.errors import ConfigError
from agent0.rewards import reward_sets

router = APIRouter(prefix="/v1/experiments", tags=["experiments"], responses=responses(402, 429))
MOST = 24
"""Runs of one ablation."""
Values = Annotated[list[Text], Field(min_length=2, max_length=8)]
Seeds = Annotated[list[Annotated[int, Field(ge=0, le=2**31)]], Field(min_length=1, max_length=8)]


class RescoreRequest(BaseModel):
    """A run whose rewards are to be recomputed under other rules."""

    model_config = ConfigDict(extra="forbid")

    run: str = Field(max_length=200)
    name: str = Field(min_length=1, max_length=50, description="of the experiment")
    rewards: str = Field("", max_length=80, description="a registered set; empty: the run's own rules")
    settings: dict[str, Text] = Field({}, max_length=50, description="of run.rewards, by dotted key")


class Rescored(BaseModel):
    """The experiment that was written down, by its id."""

    experiment: str


class AblationRequest(BaseModel):
    """Runs that differ in one setting, and in their seeds."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field("ablation", max_length=40)
    profile: str = Field("", max_length=64, description="empty: that of the server")
    setting: str = Field(min_length=5, max_length=200, description="of a run, by dotted key")
    values: Values
    seeds: Seeds = [0]
    settings: dict[str, Text] = Field({}, max_length=200, description="what all of them share")


class Started(BaseModel):
    """The runs that began, in order of values, then seeds."""

    runs: list[Begun]


@router.post("/rescore", operation_id="rescore_run", status_code=202)
async def rescore(response: Response, context: Context, body: RescoreRequest) -> Rescored:
    """Recompute all rewards of a run, its teacher's too, without a model. The same name again goes on with it."""
    experiment = await rescored(context, body.run, body.name, body.rewards, body.settings)
    response.headers["Location"] = f"/v1/experiments/{experiment}"
    return Rescored(experiment=experiment)


@router.post("/ablation", operation_id="start_ablation", status_code=202)
async def ablation(request: Request, context: Context, body: AblationRequest, again: Again = "") -> Started:
    """Start a run for each value of a setting and each seed; compare them when they are finished."""
    return Started(runs=await start_ablation(context, body, again, key_of(request)))


async def rescored(context: ApiContext, run: str, name: str, rewards: str, changes: Mapping[str, str]) -> str:
    """Recompute the rewards of ``run`` under the set ``rewards`` with ``changes``, and write it down as ``name``. It is
    done in a thread with a loop of its own, so that the server answers meanwhile. Returns the experiment's id.

    Raises:
        NotFoundError: no such run. ConfigError: rules that cannot be.
        OperationError: an experiment of this name asked something else, or the server only reads.
    """
    log = context.require_log()
    if rewards and rewards not in reward_sets():
        raise ConfigError(f"There is no reward set {rewards[:80]!r}.", f"Known: {', '.join(sorted(reward_sets()))}.")
    request = Rescore(context.resolve(run), name, reward_policy(rewards or AS_RUN), commit=True, changes=changes)
    result = await asyncio.to_thread(lambda: asyncio.run(rescore_run(context.settings, request)))
    await shown(context, await log.last_seq())
    return str(result["experiment"])


async def start_ablation(context: ApiContext, body: AblationRequest, again: str, key: Key | None) -> list[Begun]:
    """Append the beginnings of all runs of an ablation.

    Raises:
        ConfigError: too many, or settings that do not fit; otherwise as ``start_run``.
    """
    context.require_log()
    if len(body.values) * len(body.seeds) > MOST:
        raise ConfigError(f"These are {len(body.values) * len(body.seeds)} runs.", f"{MOST} are the most.")
    begun = []
    for number, value in enumerate(body.values):
        for seed in body.seeds:
            settings = {**body.settings, body.setting: value, "run.seed": str(seed)}
            start = StartRequest(name=f"{body.name} {number} seed {seed}", profile=body.profile, settings=settings)
            begun.append(await start_run(context, start, f"{again}/{number}/{seed}" if again else "", key))
    return begun
