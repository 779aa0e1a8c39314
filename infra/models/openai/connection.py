"""The connection to one server: what it is asked and answers, as soon as it is not busy."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

import httpx2
from openai import (
    APIConnectionError,
    APIError,
    APIStatusError,
    AsyncOpenAI,
    AsyncStream,
    DefaultAsyncHttpxClient,
    OpenAIError,
)

from agent0.infra.models.calls.refusals import ClientErrors, error_in, page_in, readable, refusal
from agent0.infra.models.calls.slots import ClosedError, Slots
from agent0.infra.models.calls.streams import UNREADABLE, Patience, rate_limits, read_whole
from agent0.infra.models.openai.replies import Reading, ServerReply
from agent0.ports.models import Listen
from agent0.settings import ActorConfig

CONNECT_S = 5.0
CLIENT = ClientErrors(APIError, APIStatusError, APIConnectionError)
FAILURES: tuple[type[Exception], ...] = (OpenAIError, httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, *UNREADABLE)
T = TypeVar("T")


@cache
def _authorities() -> ssl.SSLContext:
    """Whose certificates count, read once: that takes longer than a short request."""
    return httpx2.create_ssl_context()


@dataclass(frozen=True)
class Answered:
    """What came of one call: its answers, the seconds until the first of them began, and until all had ended."""

    replies: list[ServerReply]
    first_s: float
    seconds: float


class Connection:
    """The server at ``root``, through the official client. ``key`` never stands in an error. One that is not
    ``patient`` asks once, whatever happens: whoever calls asks again, and pays for each try."""

    def __init__(self, actor: ActorConfig, root: str, key: str, patient: bool = True) -> None:
        self._actor, self.root, self._key, self.patient = actor, root, key, patient
        timeout = httpx2.Timeout(actor.timeout_s, connect=min(CONNECT_S, actor.timeout_s))
        self._client = AsyncOpenAI(
            base_url=f"{root}/v1",
            api_key=key or "none",
            timeout=timeout,
            max_retries=0,
            http_client=DefaultAsyncHttpxClient(
                verify=_authorities(), timeout=timeout, follow_redirects=False, event_hooks={"response": [readable]}
            ),
        )
        server, patience_s = f"The server at {root}", actor.timeout_s if patient else 0
        self._slots, self._looks = (Slots(server, actor.parallel, patience_s) for _ in range(2))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def request(self, method: str, path: str, content: Any = None) -> Any:
        """Return the JSON that it answers; errors as ``agent0.infra.models.calls.refusals.refusal`` has them. A GET
        takes no generation's turn, and waits for none."""
        slots = self._looks if method == "GET" else self._slots
        return await self._call(slots, partial(self._once, method, path, content))

    async def written(
        self,
        path: str,
        content: Mapping[str, object],
        reading: Callable[[], Reading],
        private: Sequence[str] = (),
        listen: Listen | None = None,
        turn: int = 0,
    ) -> Answered:
        """Return what it writes to ``content``, read by a fresh ``reading``. Its first word may take ``timeout_s``;
        from then on it counts as away once it falls silent. ``private`` texts stand in no error. ``listen``
        hears the first answer. Later turns are asked first.

        Raises:
            DependencyError, TransientError, OperationError, AuthError: as ``OpenAIServer.generate``.
        """
        return await self._call(self._slots, partial(self._read, path, content, reading, private, listen), turn)

    async def _call(self, slots: Slots, ask: Callable[[], Awaitable[T]], turn: int = 0) -> T:
        """Ask in a slot, and once more where the connection was closed before the answer began."""

        async def sure() -> T:
            try:
                return await ask()
            except ClosedError:
                if not self.patient:
                    raise
                return await ask()

        return await slots.call(sure, turn)

    async def _once(self, method: str, path: str, content: Any) -> Any:
        url = self.root + path
        try:
            async with asyncio.timeout(self._actor.timeout_s):
                if method == "GET":
                    reply = await self._client.get(url, cast_to=httpx2.Response)
                else:
                    reply = await self._client.post(url, cast_to=httpx2.Response, body=content)
                response = self._answer(reply)
                return response.json() if "json" in response.headers.get("content-type", "") else response.text
        except FAILURES as error:
            raise self._refusal(error, ()) from None

    async def _read(
        self,
        path: str,
        content: Mapping[str, object],
        reading: Callable[[], Reading],
        private: Sequence[str],
        listen: Listen | None,
    ) -> Answered:
        reader = reading()
        first_s, seconds = await read_whole(
            self._answers(path, content, reader, private),
            reader,
            self.root,
            Patience.of(self._actor),
            FAILURES,
            lambda error: self._refusal(error, private),
            listen,
        )
        return Answered(reader.replies(), first_s, seconds)

    async def _answers(
        self, path: str, content: Mapping[str, object], reading: Reading, private: Sequence[str]
    ) -> AsyncGenerator[Any]:
        """Its parts, none of which is an error."""
        async with aclosing(self._parts(path, content, reading)) as parts:
            async for part in parts:
                if error := error_in(part, self.root, [self._key, *private]):
                    raise error
                yield part

    async def _parts(self, path: str, content: Mapping[str, object], reading: Reading) -> AsyncGenerator[Any]:
        url = self.root + path
        if not content.get("stream"):
            yield self._answer(await self._client.post(url, cast_to=httpx2.Response, body=content)).json()
            return
        kind: type[AsyncStream[object]] = AsyncStream[object]
        stream = await self._client.post(url, cast_to=object, body=content, stream=True, stream_cls=kind)
        async with stream:
            reading.limits = rate_limits(stream.response.headers)
            if "event-stream" not in stream.response.headers.get("content-type", ""):
                await stream.response.aread()  # a server that knows no streams
                yield self._answer(stream.response).json()
                return
            async for part in stream:
                yield part

    def _answer(self, reply: httpx2.Response) -> httpx2.Response:
        """Return an answer in one piece; raises OtherServerError where it is a page."""
        if other := page_in(self.root, reply.status_code, reply.headers):
            raise other
        return reply

    def _refusal(self, error: Exception, private: Sequence[str]) -> Exception:
        return refusal(error, self.root, CLIENT, key_env=self._actor.key_env, private=[self._key, *private])
