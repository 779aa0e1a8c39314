"""``/v1/chat/completions`` and ``/v1/models`` over the checkpoints of all runs and the models of roles."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import StreamingResponse

from agent0.api.context import ApiContext, Context
from agent0.api.openai.answers import Json, parts, whole
from agent0.api.openai.streams import DONE, MEDIA, as_event, is_live, live
from agent0.api.openai.wire import ROUTED, ChatRequest
from agent0.api.problems import responses
from agent0.assembly.models.students import adapter_of, student
from agent0.assembly.routing.asking import ROLES, actor_of
from agent0.assembly.routing.billing import check_routing
from agent0.errors import ConfigError
from agent0.ports.models import GenerateRequest
from agent0.projections.base import Row
from agent0.projections.checkpoints import registry
from agent0.projections.runs import list_runs, show_run
from agent0.settings import ActorConfig, RunConfig
from agent0.state.run_state import BASE
from agent0.tasks.seeds import derive_seed

router = APIRouter(prefix="/v1", tags=["models"], responses=responses(402))
MOST = 1000
_STREAMED: dict[int | str, Row] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}


@router.get("/models", operation_id="list_models")
def models(context: Context) -> Row:
    """Students that can be talked to, as OpenAI lists models: checkpoints of all runs and what they began with."""
    with context.tables() as db:
        trained = [row for row in registry(db, role="student", limit=MOST) if row["adapter"] and not row["pruned"]]
        bases = [{"model": f"{run['run']}/{BASE}", "trained": run["started"]} for run in list_runs(db, MOST)]
    rows = (*trained, *bases, *({"model": name, "trained": None} for name in _routed(context)))
    return {"object": "list", "data": [_model(row["model"], row["trained"]) for row in rows]}


@router.get("/models/{model:path}", operation_id="show_model")
def model(context: Context, model: Annotated[str, Path(max_length=200)]) -> Row:
    """One student, by any name that `model` of a chat accepts."""
    if model in _routed(context):
        return _model(model, None)
    with context.tables() as db:
        run, checkpoint = student(db, model)
    return _model(f"{run}/{checkpoint['checkpoint']}", checkpoint.get("trained"))


@router.post("/chat/completions", operation_id="complete_chat", responses=_STREAMED)
async def chat(context: Context, body: ChatRequest) -> Any:
    """The next turn of a conversation by a checkpoint, or by `router/` and a role: that role's model of the server's
    settings, with its strategy, stand-ins and budgets. `return_token_ids` gives the ids of prompt and answer as the
    model saw and drew them, never encoded again. A chat is no part of a run: of it only calls that cost money are
    recorded. `stream` sends a turn while it is written, where it is one of text alone and no strategy has yet to choose
    between answers."""
    actor, request, name = await asyncio.to_thread(_prepared, context, body)
    model = context.require_models().open(actor)
    first = request.sampling.seed
    seeds = [first, *(derive_seed(first, "choice", n) for n in range(1, body.n or 1))]
    drawn = [replace(request, sampling=body.sampling(seed)) for seed in seeds]
    created = int(datetime.now(UTC).timestamp())
    head: Json = {"id": f"chatcmpl-{secrets.token_hex(12)}", "created": created, "model": name}
    if is_live(body):
        return await live(model, body, drawn[0], head)
    written = await asyncio.gather(*(model.generate(sample) for sample in drawn))
    if body.stream:
        return StreamingResponse(_sent(parts(body, head, written)), media_type=MEDIA)
    return whole(body, head, written)


def _routed(context: ApiContext) -> list[str]:
    """Roles' models that the server's settings name; none where nothing can be charged."""
    return [f"{ROUTED}{role}" for role in ROLES if actor_of(context.settings, role).provider] if context.log else []


async def _sent(rows: Iterable[Json]) -> AsyncIterator[str]:
    for row in rows:
        yield as_event(row)
    yield DONE


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


def _prepared(context: ApiContext, body: ChatRequest) -> tuple[ActorConfig, GenerateRequest, str]:
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


def _model(name: str, time: str | None) -> Row:
    created = int(datetime.fromisoformat(time).timestamp()) if time else 0
    return {"id": name, "object": "model", "created": created, "owned_by": "agent0"}
