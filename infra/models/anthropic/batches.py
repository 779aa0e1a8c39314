"""Anthropic's Message Batches through the official client: half the price, within a day."""

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import httpx2

from agent0.infra.models.anthropic.messages import MessageReading, body
from agent0.infra.models.anthropic.provider import ADDRESS, CLIENT, FAILURES, KEY, client_of, generation, key_of
from agent0.infra.models.calls.batch_api import Failure, busy_as_away
from agent0.infra.models.calls.refusals import refusal
from agent0.ports.models import GenerateRequest, Generation
from agent0.settings import ActorConfig


class AnthropicBatches:
    """Batches of one of Anthropic's models.

    Raises:
        AuthError: the variable that holds the key is not set.
    """

    def __init__(self, actor: ActorConfig) -> None:
        self._actor, self._root = actor, (actor.base_url or ADDRESS).rstrip("/").removesuffix("/v1")
        self._client, self._name = client_of(actor, self._root), f"anthropic/{actor.model}"

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def submit(self, requests: Mapping[str, GenerateRequest]) -> str:
        """Hand in ``requests``; the id of the batch."""
        params: list[Any] = [{"custom_id": name, "params": self._params(request)} for name, request in requests.items()]
        private = [turn.content for request in requests.values() for turn in request.turns]
        try:
            return str((await self._client.messages.batches.create(requests=params)).id)
        except FAILURES as error:
            raise self._refusal(error, private) from None

    async def ended(self, batch: str) -> bool:
        """Whether it has ended."""
        try:
            state = await self._client.messages.batches.retrieve(batch)
        except FAILURES as error:
            raise self._refusal(error, ()) from None
        return bool(state.processing_status == "ended")

    async def results(self, batch: str) -> AsyncGenerator[tuple[str, Generation | Failure]]:
        """What came of each request: asked of this server, wherever it says that they lie."""
        try:
            answer = await self._client.get(f"/v1/messages/batches/{batch}/results", cast_to=httpx2.Response)
            for line in filter(None, answer.text.splitlines()):
                entry = json.loads(line)
                yield str(entry["custom_id"]), self._read(entry["result"])
        except FAILURES as error:
            raise self._refusal(error, ()) from None

    def _params(self, request: GenerateRequest) -> dict[str, object]:
        whole = body(request, self._actor.model, self._actor.thinking)
        return {key: value for key, value in whole.items() if key != "stream"}

    def _read(self, result: Mapping[str, Any]) -> Generation | Failure:
        if result["type"] != "succeeded":
            error = (result.get("error") or {}).get("error") or {}
            return Failure(str(result["type"]), str(error.get("type") or ""))
        reading = MessageReading()
        reading.add_whole(result["message"])
        return generation(reading, self._name, None, 0.0)

    def _refusal(self, error: Exception, private: Any) -> Exception:
        failure = refusal(
            error, self._root, CLIENT, key_env=self._actor.key_env or KEY, private=[key_of(self._actor), *private]
        )
        return busy_as_away(failure, self._root)
