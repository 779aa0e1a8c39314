"""One way from a request to the turns that answer it, in every dialect: which model answers, and what is recorded."""

import asyncio
import re
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from agent0.api.context import ApiContext
from agent0.api.openai.streams import is_live
from agent0.api.openai.wire import ROUTED, ChatRequest
from agent0.assembly.models.students import adapter_of, student
from agent0.assembly.routing.asking import actor_of
from agent0.assembly.routing.billing import check_routing
from agent0.assembly.runtime.stamping import recorded
from agent0.errors import ConfigError
from agent0.events.submissions import RECORDING, TurnAnswered
from agent0.infra.gateway.streaming import streamed
from agent0.ports.models import GenerateRequest, Generation, Model
from agent0.projections.runs import show_run
from agent0.rollout.claim_check import claim, claim_turns
from agent0.rollout.trajectories import assemble
from agent0.settings import ActorConfig, RunConfig
from agent0.tasks.seeds import derive_seed

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def recording_of(request: Request) -> str:
    """The recording that the address names, empty where it names none.

    Raises:
        ConfigError: it is no name.
    """
    name = str(request.path_params.get("recording", ""))
    if name and not _NAME.fullmatch(name):
        raise ConfigError(f"{name[:80]!r} is no name of a recording.", "At most 64 letters, digits, _ and -.")
    return name


Recording = Annotated[str, Depends(recording_of)]


@dataclass(frozen=True)
class PreparedChat:
    """A request with the model that it asks: ``requests`` are one a choice, ``name`` is the model's full name."""

    body: ChatRequest
    name: str
    model: Model
    requests: tuple[GenerateRequest, ...]
    dialect: str = "chat"
    recording: str = ""


def translated(**fields: Any) -> ChatRequest:
    """Translate the fields of another dialect to a request for a chat.

    Raises:
        RequestValidationError: something of it is not served.
    """
    try:
        return ChatRequest.model_validate(fields)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from error


async def prepared(context: ApiContext, body: ChatRequest, recording: str = "", dialect: str = "chat") -> PreparedChat:
    """Look up whom ``body`` asks.

    Raises:
        NotFoundError: there is no such model. ConfigError: it may not be asked.
        OperationError: the server only reads, and the turn is to be recorded.
    """
    if recording:
        context.require_log()
    actor, request, name = await asyncio.to_thread(_asked, context, body)
    first = request.sampling.seed
    seeds = [first, *(derive_seed(first, "choice", n) for n in range(1, body.n or 1))]
    requests = tuple(replace(request, sampling=body.sampling(seed)) for seed in seeds)
    return PreparedChat(body, name, context.require_models().open(actor), requests, dialect, recording)


async def answers(context: ApiContext, chat: PreparedChat) -> list[Generation]:
    """The turn that answers, once for each choice; recorded before anybody gets it.

    Raises:
        Agent0Error: as ``Model.generate``.
    """
    generations = await asyncio.gather(*(chat.model.generate(request) for request in chat.requests))
    for request, generation in zip(chat.requests, generations, strict=True):
        await _record(context, chat, request, generation)
    return [*generations]


async def pieces(context: ApiContext, chat: PreparedChat) -> AsyncGenerator[str | Generation]:
    """The one turn that answers: its text while it is written, where that may be sent, and at last the whole.

    Raises:
        Agent0Error: as ``Model.generate``.
    """
    if not is_live(chat.body):
        yield (await answers(context, chat))[0]
        return
    async with aclosing(streamed(chat.model, chat.requests[0])) as parts:
        async for part in parts:
            if isinstance(part, Generation):
                await _record(context, chat, chat.requests[0], part)
            yield part


async def _record(context: ApiContext, chat: PreparedChat, request: GenerateRequest, generation: Generation) -> None:
    if not chat.recording:
        return
    trajectory, problem = assemble([generation])
    turns, turns_stored = await asyncio.to_thread(claim_turns, request.turns, context.artifacts)
    trajectory, trajectory_stored = await asyncio.to_thread(claim, trajectory, context.artifacts)
    event = TurnAnswered(
        student=chat.name,
        dialect=chat.dialect,
        turns=turns,
        turns_artifact=turns_stored,
        text=generation.text,
        finish=generation.finish,
        trajectory=trajectory,
        trajectory_artifact=trajectory_stored,
        trajectory_problem=problem,
        usage=generation.usage,
        model=generation.model,
        seed=request.sampling.seed,
        capture=generation.capture,
    )
    await context.require_log().append([recorded(f"{RECORDING}{chat.recording}", event)])


def _asked(context: ApiContext, body: ChatRequest) -> tuple[ActorConfig, GenerateRequest, str]:
    """The settings of the model that is asked, what it is asked, and its full name."""
    seed = secrets.randbits(62) if body.seed is None else body.seed
    if body.model.startswith(ROUTED):
        context.require_log()  # what is asked there may cost something, and the log has the budgets
        check_routing(context.settings)
        actor = actor_of(context.settings, body.model.removeprefix(ROUTED))
        return actor, GenerateRequest(body.turns(), body.sampling(seed), body.specs(), group="chat"), body.model
    with context.tables() as db:
        run, checkpoint = student(db, body.model)
        plan = RunConfig.recorded(show_run(db, run)["config"])
    name = f"{run}/{checkpoint['checkpoint']}"
    adapter = adapter_of(context.artifacts, name, checkpoint)
    request = GenerateRequest(body.turns(), body.sampling(seed), body.specs(), adapter, group="chat")
    return _actor(context, plan, body), request, name


def _actor(context: ApiContext, plan: RunConfig, body: ChatRequest) -> ActorConfig:
    """The student, with the models that stand in for it where they may.

    Raises:
        ConfigError: its run names none. OperationError: the server has no log to charge them to.
    """
    if body.routed:
        context.require_log()
    if body.routed and not plan.student.distil_from:
        fix = "Its run needs run.student.distil_from; or leave `routed` out."
        raise ConfigError("No model stands in for this student.", "", fix)
    return plan.student.in_rollouts() if body.routed else plan.student
