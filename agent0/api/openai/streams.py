"""A turn that is sent while it is written, in the parts of OpenAI's API. Who stops reading closes the connection to the
server that writes it."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from agent0.api.openai.answers import Json, delta, last_parts
from agent0.api.openai.wire import ChatRequest
from agent0.api.problems import problem_of
from agent0.errors import Agent0Error
from agent0.infra.gateway.streaming import streamed
from agent0.ports.models import GenerateRequest, Generation, Model

MEDIA = "text/event-stream"
DONE = "data: [DONE]\n\n"
Pieces = AsyncGenerator[str | Generation]


def as_event(row: Json) -> str:
    """Format ``row`` as a server-sent event, JSON on one line."""
    return f"data: {json.dumps(row)}\n\n"


class ClosedStream(StreamingResponse):
    """A stream that is closed when its reader goes: what writes for it ends at once."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        async with aclosing(self.body_iterator):  # type: ignore[type-var]  # ours is a generator
            await super().__call__(scope, receive, send)


def is_live(body: ChatRequest) -> bool:
    """Whether parts may be sent while the turn is written: one choice, as text, of which nothing depends on its end."""
    return bool(body.stream) and (body.n or 1) == 1 and not (body.specs() or body.logprobs or body.return_token_ids)


async def live(model: Model, body: ChatRequest, request: GenerateRequest, head: Json) -> StreamingResponse:
    """Send the turn of ``model`` while it is written.

    Raises:
        Agent0Error: as ``Model.generate``, where nothing was sent yet.
    """
    pieces = streamed(model, request)
    try:
        first = await anext(pieces)
    except BaseException:
        await pieces.aclose()
        raise
    return ClosedStream(_sent(body, {**head, "object": "chat.completion.chunk"}, first, pieces), media_type=MEDIA)


async def _sent(body: ChatRequest, head: Json, first: str | Generation, pieces: Pieces) -> AsyncIterator[str]:
    """The events of a turn; one that breaks off ends with an error, as clients of OpenAI's API look for it."""
    yield as_event({**head, "choices": [delta({"role": "assistant", "content": ""})]})
    async with aclosing(pieces):
        try:
            async for row in _rows(body, head, first, pieces):
                yield as_event(row)
        except Agent0Error as error:
            problem = problem_of(error)
            fields = {"message": " ".join(filter(None, (problem.title, problem.detail))), "type": problem.type}
            yield as_event({"error": {**fields, "code": str(problem.status)}})
            return
    yield DONE


async def _rows(body: ChatRequest, head: Json, first: str | Generation, pieces: Pieces) -> AsyncIterator[Json]:
    piece = first
    while isinstance(piece, str):
        yield {**head, "choices": [delta({"content": piece})]}
        piece = await anext(pieces)
    for row in last_parts(body, head, piece):
        yield row
