"""Anthropic's models (Claude) through the official client. They give text only: no token ids, no log-probabilities."""

import os
from collections.abc import AsyncGenerator, Sequence

import httpx2
from anthropic import (
    AnthropicError,
    APIConnectionError,
    APIError,
    APIStatusError,
    AsyncAnthropic,
    AsyncStream,
    DefaultAsyncHttpxClient,
)

from agent0.errors import AuthError, RefusedError
from agent0.events.values import Usage
from agent0.infra.models.anthropic.messages import MessageReading, body
from agent0.infra.models.calls.counts import count_of
from agent0.infra.models.calls.refusals import ClientErrors, page_in, readable, refusal, unset
from agent0.infra.models.calls.slots import Slots
from agent0.infra.models.calls.streams import UNREADABLE, Patience, rate_limits, read_whole
from agent0.ports.models import GenerateRequest, Generation
from agent0.settings import ActorConfig

ADDRESS = "https://api.anthropic.com"
KEY = "ANTHROPIC_API_KEY"
CONNECT_S = 5.0
CLIENT = ClientErrors(APIError, APIStatusError, APIConnectionError)
FAILURES: tuple[type[Exception], ...] = (AnthropicError, httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, *UNREADABLE)
TEXT_ONLY = "the server gives text only"


class Anthropic:
    """The ``Model`` port on one of Anthropic's models. Each request is sent once, whatever happens.

    Raises:
        AuthError: the variable that holds the key is not set.
    """

    streams = True

    def __init__(self, actor: ActorConfig) -> None:
        self._actor, self._root = actor, (actor.base_url or ADDRESS).rstrip("/").removesuffix("/v1")
        self.name = f"anthropic/{actor.model}"
        self._key, self._client = key_of(actor), client_of(actor, self._root)
        self._slots = Slots(f"The server at {self._root}", actor.parallel, 0)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def generate(self, request: GenerateRequest) -> Generation:
        """Write one turn.

        Raises:
            AuthError: the server refused the key.
            ServerBusyError: it takes no request now. DependencyError: nothing answers there, or it falls silent.
            TransientError: it failed, broke off, or its first token took longer than ``timeout_s``.
            RefusedError: it has no such model, or cannot do what is asked.
        """
        if request.prefill:
            raise RefusedError("Anthropic's models cannot begin a turn with given text.", "The API refuses it.")
        if request.adapter:
            raise RefusedError("Anthropic's models load no adapters.", "", "Use another provider for this role.")
        return await self._slots.call(lambda: self._written(request), request.turn)

    async def _written(self, request: GenerateRequest) -> Generation:
        reading, private = MessageReading(), [turn.content for turn in request.turns]
        first_s, wall_s = await read_whole(
            self._parts(request, reading),
            reading,
            self._root,
            Patience.of(self._actor),
            FAILURES,
            lambda error: self._refusal(error, private),
            request.listen,
        )
        return generation(reading, self.name, first_s, wall_s)

    async def _parts(self, request: GenerateRequest, reading: MessageReading) -> AsyncGenerator[object]:
        kind: type[AsyncStream[object]] = AsyncStream[object]
        content = body(request, self._actor.model, self._actor.thinking)
        stream = await self._client.post("/v1/messages", cast_to=object, body=content, stream=True, stream_cls=kind)
        async with stream:
            if other := page_in(self._root, stream.response.status_code, stream.response.headers):
                raise other
            reading.limits = rate_limits(stream.response.headers)
            async for part in stream:
                yield part

    def _refusal(self, error: Exception, private: Sequence[str]) -> Exception:
        named = self._actor.key_env or KEY
        return refusal(error, self._root, CLIENT, key_env=named, private=[self._key, *private])


def generation(reading: MessageReading, name: str, first_s: float | None, wall_s: float) -> Generation:
    """The turn that was read, of the model ``name``."""
    counted = reading.counted
    read = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    usage = Usage(
        prompt_tokens=sum(count_of(counted.get(name)) for name in read),
        completion_tokens=count_of(counted.get("output_tokens")),
        wall_s=wall_s,
        first_s=first_s,
    )
    return Generation(
        text=reading.text,
        thinking=reading.thinking,
        finish=reading.finish,
        usage=usage,
        model=name,
        capture="text",
        untrainable=TEXT_ONLY,
        counted=counted,
        served=reading.served,
    )


def client_of(actor: ActorConfig, root: str) -> AsyncAnthropic:
    """The official client of the server at ``root``, which tries nothing again.

    Raises:
        AuthError: the variable that holds the key is not set.
    """
    timeout = httpx2.Timeout(actor.timeout_s, connect=min(CONNECT_S, actor.timeout_s))
    return AsyncAnthropic(
        api_key=key_of(actor),
        base_url=root,
        timeout=timeout,
        max_retries=0,
        http_client=DefaultAsyncHttpxClient(
            timeout=timeout, follow_redirects=False, event_hooks={"response": [readable]}
        ),
    )


def key_of(actor: ActorConfig) -> str:
    """The key in the variable that ``actor.key_env`` names, or in Anthropic's own.

    Raises:
        AuthError: that variable is not set.
    """
    named = actor.key_env or KEY
    if key := os.environ.get(named, "").strip():
        return key
    raise AuthError("The key for Anthropic is missing.", *unset(named))
