"""A turn that is sent while it is written, in the parts of whichever dialect asks. Who stops reading closes the
connection to the server that writes it."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from typing import Protocol

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from agent0.api.openai.answers import Json, delta, last_parts
from agent0.api.openai.wire import ChatRequest
from agent0.api.problems import ProblemDocument, problem_of
from agent0.errors import Agent0Error
from agent0.ports.models import Generation

MEDIA = "text/event-stream"
DONE = "data: [DONE]\n\n"
Pieces = AsyncGenerator[str | Generation]


class TurnEvents(Protocol):
    """The parts of one turn in a dialect, each a server-sent event. ``end`` comes with the turn as it was drawn, after
    all of its text or, where nothing was sent of it, after none."""

    def begin(self) -> Iterator[str]:
        """Make the events that come before the turn."""
        ...

    def text(self, piece: str) -> Iterator[str]:
        """Make the events of more of its text."""
        ...

    def end(self, generation: Generation) -> Iterator[str]:
        """Make the events of what is left, and of its end."""
        ...

    def failure(self, problem: ProblemDocument) -> str:
        """Make the event that says that it broke off."""
        ...


def as_event(row: Json) -> str:
    """Format ``row`` as a server-sent event, JSON on one line."""
    return f"data: {json.dumps(row)}\n\n"


def typed_event(row: Json) -> str:
    """Format ``row`` as a server-sent event that bears the name of its type."""
    return f"event: {row['type']}\n{as_event(row)}"


def message_of(problem: ProblemDocument) -> str:
    """Return what happened and why, on one line."""
    return " ".join(filter(None, (problem.title, problem.detail)))


class ClosedStream(StreamingResponse):
    """A stream that is closed when its reader goes: what writes for it ends at once."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        async with aclosing(self.body_iterator):  # type: ignore[type-var]  # ours is a generator
            await super().__call__(scope, receive, send)


def is_live(body: ChatRequest) -> bool:
    """Whether parts may be sent while the turn is written: one choice, as text, of which nothing depends on its end."""
    return bool(body.stream) and (body.n or 1) == 1 and not (body.specs() or body.logprobs or body.return_token_ids)


async def live(pieces: Pieces, events: TurnEvents) -> StreamingResponse:
    """Send the turn that ``pieces`` are of while it is written.

    Raises:
        Agent0Error: as ``Model.generate``, where nothing was sent yet.
    """
    try:
        first = await anext(pieces)
    except BaseException:
        await pieces.aclose()
        raise
    return ClosedStream(_sent(events, first, pieces), media_type=MEDIA)


async def _sent(events: TurnEvents, piece: str | Generation, pieces: Pieces) -> AsyncIterator[str]:
    """The events of a turn; one that breaks off ends with an error, as clients of its dialect look for it."""
    for event in events.begin():
        yield event
    async with aclosing(pieces):
        try:
            while isinstance(piece, str):
                for event in events.text(piece):
                    yield event
                piece = await anext(pieces)
            for event in events.end(piece):
                yield event
        except Agent0Error as error:
            yield events.failure(problem_of(error))


class ChatEvents:
    """A turn of text alone in parts of OpenAI's chats."""

    def __init__(self, request: ChatRequest, head: Json) -> None:
        self._request, self._head = request, {**head, "object": "chat.completion.chunk"}

    def begin(self) -> Iterator[str]:
        """Make the part with the role of its writer."""
        yield as_event({**self._head, "choices": [delta({"role": "assistant", "content": ""})]})

    def text(self, piece: str) -> Iterator[str]:
        """Make a part with more of its text."""
        yield as_event({**self._head, "choices": [delta({"content": piece})]})

    def end(self, generation: Generation) -> Iterator[str]:
        """Why the turn ended, and the count of tokens where it is requested."""
        yield from map(as_event, last_parts(self._request, self._head, generation))
        yield DONE

    def failure(self, problem: ProblemDocument) -> str:
        """Make an error in the place of a part."""
        fields = {"message": message_of(problem), "type": problem.type, "code": str(problem.status)}
        return as_event({"error": fields})
