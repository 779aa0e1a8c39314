"""``/v1/chat/completions`` and ``/v1/models`` over the checkpoints of all runs."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import StreamingResponse

from agent0.api.context import ApiContext, Context
from agent0.api.openai.answers import parts, whole
from agent0.api.openai.wire import ChatRequest
from agent0.api.problems import responses
from agent0.assembly.models.students import adapter_of, student
from agent0.ports.models import GenerateRequest
from agent0.settings import RunConfig
from agent0.state.run_state import BASE
from agent0.tasks.seeds import derive_seed
from projections.checkpoints import registry
from projections.runs import list_runs, show_run

router = APIRouter(prefix="/v1", tags=["models"], responses=responses(402))
MOST = 1000
Row = dict[str, Any]
_STREAMED: dict[int | str, Row] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}


@router.get("/models", operation_id="list_models")
def models(context: Context) -> Row:
    """Students that can be talked to, as OpenAI lists models: checkpoints of all runs and what they began with."""
    with context.tables() as db:
        trained = [row for row in registry(db, role="student", limit=MOST) if row["adapter"] and not row["pruned"]]
        bases = [{"model": f"{run['run']}/{BASE}", "trained": run["started"]} for run in list_runs(db, MOST)]
    return {"object": "list", "data": [_model(row["model"], row["trained"]) for row in (*trained, *bases)]}


@router.get("/models/{model:path}", operation_id="show_model")
def model(context: Context, model: Annotated[str, Path(max_length=200)]) -> Row:
    """One student, by any name that `model` of a chat accepts."""
    with context.tables() as db:
        run, held = student(db, model)
    return _model(f"{run}/{held['checkpoint']}", held.get("trained"))


@router.post("/chat/completions", operation_id="complete_chat", responses=_STREAMED)
async def chat(context: Context, asked: ChatRequest) -> Any:
    """The next turn of a conversation by a checkpoint. `return_token_ids` gives the ids of prompt and answer as the
    model saw and drew them, never encoded again. A chat is no part of a run: nothing is recorded."""
    plan, request, name = await asyncio.to_thread(_prepared, context, asked)
    model = context.require_models().open(plan.student)
    first = request.sampling.seed
    seeds = [first, *(derive_seed(first, "choice", n) for n in range(1, asked.n or 1))]
    drawn = [replace(request, sampling=asked.sampling(seed)) for seed in seeds]
    written = await asyncio.gather(*(model.generate(one) for one in drawn))
    head = {"id": f"chatcmpl-{secrets.token_hex(12)}", "created": int(datetime.now(UTC).timestamp()), "model": name}
    if asked.stream:
        return StreamingResponse(_sent(parts(asked, head, written)), media_type="text/event-stream")
    return whole(asked, head, written)


async def _sent(rows: Iterable[Row]) -> AsyncIterator[str]:
    for row in rows:
        yield f"data: {json.dumps(row)}\n\n"
    yield "data: [DONE]\n\n"


def _prepared(context: ApiContext, asked: ChatRequest) -> tuple[RunConfig, GenerateRequest, str]:
    """The settings of the student that is asked, what it is asked, and its full name."""
    with context.tables() as db:
        run, held = student(db, asked.model)
        plan = RunConfig.recorded(show_run(db, run)["config"])
    name = f"{run}/{held['checkpoint']}"
    adapter = adapter_of(context.artifacts, name, held)
    seed = secrets.randbits(62) if asked.seed is None else asked.seed
    return plan, GenerateRequest(asked.turns(), asked.sampling(seed), asked.specs(), adapter, group="chat"), name


def _model(name: str, time: str | None) -> Row:
    created = int(datetime.fromisoformat(time).timestamp()) if time else 0
    return {"id": name, "object": "model", "created": created, "owned_by": "agent0"}
