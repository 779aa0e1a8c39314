"""OpenAI's batches through the official client: a file of requests goes in and a file of answers comes out, at half the
price and within a day."""

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from agent0.events.values import Usage
from agent0.infra.models.calls.batch_api import BatchRefusedError, Failure, busy_as_away
from agent0.infra.models.calls.refusals import refusal
from agent0.infra.models.calls.thinking import chat_fields
from agent0.infra.models.openai.connection import CLIENT, FAILURES
from agent0.infra.models.openai.dialects import PATHS, Way, body
from agent0.infra.models.openai.replies import Reading
from agent0.infra.models.openai.server_facts import key_of, root_of
from agent0.ports.models import GenerateRequest, Generation
from agent0.settings import ActorConfig

WAY = Way("chat", "text", streams=False)
ENDED = ("completed", "failed", "expired", "cancelled")
TEXT_ONLY = "the server gives text only"
MEND = "Nothing was charged. Mend what it names, then run the same command again: the requests are handed in anew."


class OpenAIBatches:
    """Batches of one model of the server at ``actor.base_url``."""

    def __init__(self, actor: ActorConfig) -> None:
        self._actor, self._root, self._key = actor, root_of(actor.base_url), key_of(actor)
        self._client = AsyncOpenAI(
            base_url=f"{self._root}/v1",
            api_key=self._key or "none",
            timeout=actor.timeout_s,
            max_retries=0,
            http_client=DefaultAsyncHttpxClient(timeout=actor.timeout_s, follow_redirects=False),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def submit(self, requests: Mapping[str, GenerateRequest]) -> str:
        """Hand in ``requests``; the id of the batch."""
        bodies = {name: body(WAY, request, self._actor.model, (), ()) for name, request in requests.items()}
        fields = chat_fields(self._actor, "")
        lines = [
            {"custom_id": name, "method": "POST", "url": PATHS["chat"], "body": content | fields}
            for name, content in bodies.items()
        ]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        private = [turn.content for request in requests.values() for turn in request.turns]
        try:
            file = await self._client.files.create(file=("requests.jsonl", text.encode()), purpose="batch")
            created = await self._client.batches.create(
                input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
            )
        except FAILURES as error:
            raise self._refusal(error, private) from None
        return str(created.id)

    async def ended(self, batch: str) -> bool:
        """Whether it has ended."""
        return (await self._retrieve(batch)).status in ENDED

    async def results(self, batch: str) -> AsyncGenerator[tuple[str, Generation | Failure]]:
        """What came of each request.

        Raises:
            BatchRefusedError: the vendor refused the batch as a whole.
        """
        state = await self._retrieve(batch)
        files = [file_id for file_id in (state.output_file_id, state.error_file_id) if file_id]
        if state.status == "failed" and not files:
            messages = [error.message or "" for error in (state.errors.data or [] if state.errors else [])]
            raise BatchRefusedError(f"The batch {batch} was refused.", "; ".join(messages)[:300], MEND)
        for file in files:
            try:
                text = (await self._client.files.content(file)).text
                for line in filter(None, text.splitlines()):
                    entry = json.loads(line)
                    yield str(entry["custom_id"]), self._read(entry)
            except FAILURES as error:
                raise self._refusal(error, ()) from None

    async def _retrieve(self, batch: str) -> Any:
        try:
            return await self._client.batches.retrieve(batch)
        except FAILURES as error:
            raise self._refusal(error, ()) from None

    def _read(self, entry: Mapping[str, Any]) -> Generation | Failure:
        answered = entry.get("response") or {}
        if answered.get("status_code") != 200:
            error = entry.get("error") or (answered.get("body") or {}).get("error") or {}
            return Failure("errored", str(error.get("code") or error.get("type") or answered.get("status_code") or ""))
        reading = Reading(WAY)
        reading.add(answered["body"])
        [reply] = reading.replies()
        return Generation(
            text=reply.text,
            thinking=reply.thinking,
            finish=reply.finish,
            usage=Usage(prompt_tokens=reply.read, completion_tokens=reply.written),
            model=f"openai/{self._actor.model}",
            capture="text",
            untrainable=TEXT_ONLY,
            counted=reply.counted,
            served=reply.served,
        )

    def _refusal(self, error: Exception, private: Any) -> Exception:
        failure = refusal(error, self._root, CLIENT, key_env=self._actor.key_env, private=[self._key, *private])
        return busy_as_away(failure, self._root)
