"""Requests to a server of Agent0: answers are rows, streams are events, and problem documents become errors."""

import asyncio
import json
import re
import ssl
import uuid
from collections.abc import AsyncIterator, Mapping
from functools import cache
from time import monotonic
from typing import Any

import httpx

from agent0.errors import (
    Agent0Error,
    AuthError,
    ConfigError,
    DependencyError,
    NotFoundError,
    OperationError,
    RequirementsError,
    RunFailedError,
)

OLDEST = (0, 1)
"""The oldest version of a server that has every route that is asked for here. A later major version is refused; within
one, routes, fields and kinds of events are only added."""
CONNECT_S, ANSWER_S, SILENT_S = 10.0, 600.0, 45.0
"""Seconds for a connection and an answer; of a stream that is silent for longer nobody is there: it pings."""
AGAIN_S = 0.25
SHOWN = 200
STREAM = "text/event-stream"
_KINDS: Mapping[str, type[Agent0Error]] = {
    "config_invalid": ConfigError,
    "not_found": NotFoundError,
    "auth_denied": AuthError,
    "auth_missing": AuthError,
    "dependency_unreachable": RequirementsError,
    "run_failed": RunFailedError,
}
_BUSY = (429, 502, 503, 504)
"""Statuses of what may be there a moment later."""
_version = re.compile(r"(\d+)\.(\d+)")


class ServerVersionError(OperationError):
    """What answers is too old or too new a server of Agent0 for this client, or none at all."""


@cache
def _authorities() -> ssl.SSLContext:
    return httpx.create_ssl_context()


class ServerLink:
    """Asks one server. ``patience_s``: how long it may be away in the middle of a stream. Nothing stays open between
    two requests, so it serves any number of threads and loops."""

    def __init__(self, url: str, key: str, patience_s: float) -> None:
        self.url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._key = key
        self._patience_s, self._checked = patience_s, False

    async def get(self, path: str, params: Mapping[str, str] = {}) -> dict[str, Any]:
        """The answer to a GET of ``path``.

        Raises:
            DependencyError: the server does not answer. AuthError: it wants a key, or another one.
            ServerVersionError: it is too old. Agent0Error: what it says.
        """
        return await self._request_json("GET", path, params=params)

    async def post(self, path: str, body: object, again: str = "") -> dict[str, Any]:
        """The answer to a POST of ``body``, which counts once even where its answer is lost and it is sent again; so do
        all that name the same ``again``.

        Raises:
            Agent0Error: as ``get``.
        """
        return await self._request_json(
            "POST", path, json=body, headers={"Idempotency-Key": again or str(uuid.uuid4())}
        )

    async def stream(self, params: Mapping[str, str], after: int) -> AsyncIterator[dict[str, Any]]:
        """The events behind ``after`` as they come, without an end. A stream that is cut goes on behind the last event
        that came.

        Raises:
            DependencyError: the server is away for ``patience_s``; otherwise as ``get``.
        """
        away = monotonic()
        while True:
            why = "it ended the stream"
            try:
                async for data in self._messages(params, after):
                    event = json.loads(data) if data else {"seq": 0}
                    if event["seq"] > after:
                        after = event["seq"]
                        yield event
                    away = monotonic()
            except (httpx.TransportError, _StreamRefusedError) as error:
                why = _reason(error)
            if monotonic() > away + self._patience_s:
                raise self._away(f"{why}, and did not come back in {self._patience_s:g} s")
            await asyncio.sleep(AGAIN_S)

    async def _messages(self, params: Mapping[str, str], after: int) -> AsyncIterator[str]:
        """The data of every message that a stream sends whole; empty at every other line, as a sign of life."""
        headers = {"Accept": STREAM, "Last-Event-ID": str(after)}
        async with self._client(SILENT_S) as client:
            await self._require_version(client)
            async with client.stream("GET", "/v1/events", params=dict(params), headers=headers) as answer:
                if answer.status_code in _BUSY:
                    raise _StreamRefusedError(f"it answers {answer.status_code}")
                if answer.status_code != 200:
                    await answer.aread()
                    raise self._problem(answer)
                data: list[str] = []
                async for line in answer.aiter_lines():
                    if line.startswith("data:"):
                        data.append(line.removeprefix("data:").removeprefix(" "))
                    yield "" if line else "\n".join(data)
                    data = data if line else []

    async def _request_json(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        try:
            async with self._client(ANSWER_S) as client:
                await self._require_version(client)
                try:
                    answer = await client.request(method, path, **request)
                except (httpx.RemoteProtocolError, httpx.ReadError):  # cut while it answered: its key makes it one
                    answer = await client.request(method, path, **request)
        except httpx.TransportError as error:
            raise self._away(_reason(error)) from error
        if answer.is_success:
            return self._parsed(answer)
        raise self._problem(answer)

    def _client(self, answer_s: float) -> httpx.AsyncClient:
        timeout = httpx.Timeout(answer_s, connect=CONNECT_S)
        return httpx.AsyncClient(base_url=self.url, headers=self._headers, timeout=timeout, verify=_authorities())

    async def _require_version(self, client: httpx.AsyncClient) -> None:
        """Look once whether a server of Agent0 answers that is not too old."""
        if self._checked:
            return
        answer = await client.get("/version")
        if answer.status_code in _BUSY:
            raise self._problem(answer)
        version = str(self._parsed(answer).get("version", "")) if answer.is_success else ""
        match = _version.match(version)
        if match is None:
            raise self._other(f"It answers /version with status {answer.status_code}.")
        if int(match[1]) > OLDEST[0]:
            fix = "Update this client: pip install -U agent0-train"
            raise ServerVersionError("The server is newer than this client.", f"It is Agent0 {version}.", fix)
        if (int(match[1]), int(match[2])) < OLDEST:
            raise self._old(f"It is Agent0 {version}; this client asks for what {'.'.join(map(str, OLDEST))} has.")
        self._checked = True

    def _parsed(self, answer: httpx.Response) -> dict[str, Any]:
        try:
            parsed = answer.json()
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            raise self._other(f"It answers {answer.request.url.path} with no JSON object: {answer.text[:SHOWN]!r}.")
        return parsed

    def _problem(self, answer: httpx.Response) -> Agent0Error:
        """The error that a problem document describes; a key that it repeats is left out."""
        document = self._parsed(answer)
        problem = {name: str(value).replace(self._key or "\n", "…") for name, value in document.items()}
        slug = str(problem.get("type", "")).rpartition(":")[2]
        what, why, fix = (str(problem.get(name, "")) for name in ("title", "detail", "fix"))
        if answer.status_code == 401:
            fix = "Name a key of it: agent0.connect(URL, KEY). Who runs it makes one: agent0 api key add NAME"
        elif answer.status_code == 404 and not fix and why == "Not Found":  # no route: ours name what is not there
            return self._old(f"It has no {answer.request.url.path}.")
        return _KINDS.get(slug, OperationError)(what or f"It answers {answer.status_code}.", why, fix)

    def _away(self, why: str) -> DependencyError:
        fix = f"Is the address right, and `agent0 up` running there? Its page: {self.url}/runs"
        return DependencyError(f"The server at {self.url}", f"{why[:1].upper()}{why[1:]}.", fix)

    def _old(self, why: str) -> ServerVersionError:
        fix = "Have it updated (pip install -U agent0-train), or use a client of its version."
        return ServerVersionError(f"The server at {self.url} is too old.", why, fix)

    def _other(self, why: str) -> ServerVersionError:
        fix = "Name the address of `agent0 up`."
        return ServerVersionError(f"No server of Agent0 answers at {self.url}.", why, fix)


class _StreamRefusedError(Exception):
    """A stream was refused for now."""


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
