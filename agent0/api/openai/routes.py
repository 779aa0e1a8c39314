"""``/v1/chat/completions``, ``/v1/messages``, ``/v1/responses`` and ``/v1/models`` over the checkpoints of all runs and
the models of roles."""

import secrets
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import StreamingResponse

from agent0.api.context import ApiContext, Context
from agent0.api.openai.answers import Json, parts, whole
from agent0.api.openai.asking import Recording, answers, pieces, prepared
from agent0.api.openai.messages import MessageEvents, MessagesRequest, message_body
from agent0.api.openai.responses_api import ResponseEvents, ResponsesRequest, response_body
from agent0.api.openai.streams import DONE, MEDIA, ChatEvents, as_event, is_live, live
from agent0.api.openai.wire import ROUTED, ChatRequest
from agent0.api.problems import responses
from agent0.assembly.models.students import student
from agent0.assembly.routing.asking import ROLES, actor_of
from agent0.projections.base import Row
from agent0.projections.checkpoints import registry
from agent0.projections.runs import list_runs
from agent0.state.run_state import BASE

router = APIRouter(prefix="/v1", tags=["models"], responses=responses(402))
MOST = 1000
STREAMED: dict[int | str, Row] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}


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


@router.post("/chat/completions", operation_id="complete_chat", responses=STREAMED)
async def chat(context: Context, body: ChatRequest, recording: Recording) -> Any:
    """The next turn of a conversation by a checkpoint, or by `router/` and a role: that role's model of the server's
    settings, with its strategy, stand-ins and budgets. `return_token_ids` gives the ids of prompt and answer as the
    model saw and drew them, never encoded again. A chat is no part of a run: of it only calls that cost money are
    recorded, unless its address begins with `/v1/recordings/NAME`: then every turn is, with its tokens. `stream` sends
    a turn while it is written, where it is one of text alone and no strategy has yet to choose between answers."""
    chat = await prepared(context, body, recording)
    created = int(datetime.now(UTC).timestamp())
    head: Json = {"id": f"chatcmpl-{secrets.token_hex(12)}", "created": created, "model": chat.name}
    if is_live(body):
        return await live(pieces(context, chat), ChatEvents(body, head))
    written = await answers(context, chat)
    if body.stream:
        return StreamingResponse(_sent(parts(body, head, written)), media_type=MEDIA)
    return whole(body, head, written)


@router.post("/messages", operation_id="create_message", responses=STREAMED)
async def message(context: Context, body: MessagesRequest, recording: Recording) -> Any:
    """The same in the shape of Anthropic's Messages API."""
    chat = await prepared(context, body.chat(), recording, "messages")
    if body.stream:
        return await live(pieces(context, chat), MessageEvents(chat.body, chat.name))
    return message_body(chat.body, chat.name, (await answers(context, chat))[0])


@router.post("/responses", operation_id="create_response", responses=STREAMED)
async def response(context: Context, body: ResponsesRequest, recording: Recording) -> Any:
    """The same in the shape of OpenAI's Responses API. Nothing is stored under the id of a response."""
    chat = await prepared(context, body.chat(), recording, "responses")
    if body.stream:
        return await live(pieces(context, chat), ResponseEvents(body, chat.body, chat.name))
    return response_body(body, chat.body, chat.name, (await answers(context, chat))[0])


def _routed(context: ApiContext) -> list[str]:
    """Roles' models that the server's settings name; none where nothing can be charged."""
    return [f"{ROUTED}{role}" for role in ROLES if actor_of(context.settings, role).provider] if context.log else []


async def _sent(rows: Iterable[Json]) -> AsyncIterator[str]:
    for row in rows:
        yield as_event(row)
    yield DONE


def _model(name: str, time: str | None) -> Row:
    created = int(datetime.fromisoformat(time).timestamp()) if time else 0
    return {"id": name, "object": "model", "created": created, "owned_by": "agent0"}
