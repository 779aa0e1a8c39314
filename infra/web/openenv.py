"""Environments of others by OpenEnv's wire: frames over a WebSocket, each answered by one. Nothing that comes is
believed: a frame is read into what it must be, and after a step the state is asked for, so that a second answer to
either shows as what it is."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from agent0.errors import ConfigError, DependencyError
from agent0.events.values import Episode
from agent0.infra.web.download import page
from agent0.ports.environments import EnvironmentFaultError

OPEN_S, ANSWER_S, CLOSE_S = 10.0, 120.0, 1.0
"""Seconds for a connection, for the answer to a frame, and for a goodbye."""
LARGEST = 1 << 20
"""Bytes of a frame."""
SHOWN = 200
_ANSWER_REFUSED = frozenset({"EXECUTION_ERROR", "VALIDATION_ERROR"})
"""Codes of the wire for a step that was read and could not be carried out."""
_M = TypeVar("_M", bound=BaseModel)


class _Wire(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class ObservationData(_Wire):
    """What a reset or a step gives: fields of the environment's own, its reward, and whether its episode has ended."""

    observation: dict[str, JsonValue]
    reward: float | None = None
    done: bool


class _ObservationFrame(_Wire):
    type: Literal["observation"]
    data: ObservationData


class _StateFrame(_Wire):
    type: Literal["state"]
    data: dict[str, JsonValue]


class _ErrorData(_Wire):
    code: str = ""
    message: str = ""


class _ErrorFrame(_Wire):
    type: Literal["error"]
    data: _ErrorData


class _Property(_Wire):
    type: JsonValue = None


class _ActionSchema(_Wire):
    properties: dict[str, _Property] = Field(default_factory=dict)
    required: list[str] = Field(default_factory=list)


class _Schema(_Wire):
    action: _ActionSchema


class ServerMetadata(_Wire):
    """What a server says of itself: its name, and a version where it has one."""

    name: str = Field(min_length=1, max_length=SHOWN)
    version: str | None = Field(None, max_length=SHOWN)


_frame: TypeAdapter[_ObservationFrame | _StateFrame | _ErrorFrame] = TypeAdapter(
    Annotated[_ObservationFrame | _StateFrame | _ErrorFrame, Field(discriminator="type")]
)


def base_url(url: str) -> str:
    """The address of a server, ``http://host:port/path`` without a slash at its end, as http, ws or with ``/ws``.

    Raises:
        ConfigError: it is no such address, or holds a password or a query, which would be in the log.
    """
    try:
        parts = urlsplit(url)
        scheme = {"http": "http", "ws": "http", "https": "https", "wss": "https"}.get(parts.scheme, "")
        host = (parts.hostname or "").encode("idna")
        whole = bool(scheme and host and url.isprintable() and " " not in url and parts.port != 0)
    except ValueError:
        scheme, whole = "", False
    if not whole or parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        why = "It must be http://HOST:PORT, without user, password or query."
        raise ConfigError(f"{url[:SHOWN]!r} is no address of an environment.", why)
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/ws')}"


class OpenEnvSession:
    """One session of a server: its episodes, one after the other."""

    def __init__(self, socket: ClientConnection, url: str, answer_s: float) -> None:
        self._socket, self._url, self._answer_s = socket, url, answer_s

    async def reset(self, seed: int) -> ObservationData:
        """Begin the episode of ``seed``.

        Raises:
            DependencyError: it cannot now. EnvironmentFaultError: it answers something else, or has ended at once.
        """
        frame = await self._asked("reset", {"seed": seed})
        if isinstance(frame, _ErrorFrame):
            raise away(self._url, f"It does not begin: {frame.data.code} {frame.data.message[:SHOWN]}")
        begun = self._observation(frame)
        if begun.done:
            raise self._fault("an episode that has ended before its first step")
        return begun

    async def step(self, action: Mapping[str, str]) -> ObservationData:
        """Carry out the one action of an episode; returns what came of it.

        Raises:
            DependencyError: the server was lost, or is full. EnvironmentFaultError: it refuses the action, answers
                something else or twice, or does not end the episode.
        """
        frame = await self._asked("step", action)
        if isinstance(frame, _ErrorFrame):
            why = f"{frame.data.code} {frame.data.message[:SHOWN]}"
            raise self._fault(why) if frame.data.code in _ANSWER_REFUSED else away(self._url, why)
        ended = self._observation(frame)
        if not isinstance(await self._asked("state", {}), _StateFrame):
            raise self._fault("more than one frame to one request")
        if not ended.done:
            raise self._fault("an episode that goes on after its answer, and only those of one step are asked")
        return ended

    async def _asked(self, kind: str, data: Mapping[str, JsonValue]) -> _ObservationFrame | _StateFrame | _ErrorFrame:
        request = TypeAdapter(dict[str, JsonValue]).dump_json({"type": kind, "data": dict(data)}).decode()
        try:
            async with asyncio.timeout(self._answer_s):
                await self._socket.send(request)
                text = await self._socket.recv()
        except TimeoutError as error:
            why = f"nothing to {kind} in {self._answer_s:g} s"
            raise (self._fault(why) if kind == "step" else away(self._url, f"It answers {why}.")) from error
        except ConnectionClosed as error:
            if error.sent is not None and error.sent.code in (1002, 1007, 1009):  # our own refusal of what it sent
                raise self._fault(f"no frame of at most {LARGEST:,} bytes") from error
            raise away(self._url, f"It was lost: {error}") from error
        try:
            return _frame.validate_json(text)
        except (ValidationError, RecursionError) as error:
            raise self._fault(f"no frame of the wire to {kind}: {_first(error)}") from error

    def _observation(self, frame: _ObservationFrame | _StateFrame) -> ObservationData:
        if isinstance(frame, _StateFrame):
            raise self._fault("a state, and none was asked for")
        return frame.data

    def _fault(self, why: str) -> EnvironmentFaultError:
        return EnvironmentFaultError(f"The environment at {self._url} cannot be believed.", f"It gives {why}.")


def away(url: str, why: str) -> DependencyError:
    """The error of an environment that is not there, or not the one it was."""
    return DependencyError(f"The environment at {url}", why, "Start it there; a run goes on by itself.")


def _first(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:SHOWN]


class OpenEnvServers:
    """Reaches servers of OpenEnv's wire, by a session for each episode. ``answer_s``: seconds for one frame."""

    def __init__(self, answer_s: float = ANSWER_S) -> None:
        self._answer_s = answer_s

    @asynccontextmanager
    async def session(self, url: str) -> AsyncIterator[OpenEnvSession]:
        """A session of the server at ``url``, as ``base_url`` writes it.

        Raises:
            DependencyError: it cannot be reached.
        """
        address = f"ws{url.removeprefix('http')}/ws"
        try:
            async with asyncio.timeout(OPEN_S):
                socket = await connect(address, max_size=LARGEST, close_timeout=CLOSE_S, proxy=None, compression=None)
        except (OSError, WebSocketException) as error:
            raise away(url, f"{type(error).__name__}: {error}") from error
        try:
            yield OpenEnvSession(socket, url, self._answer_s)
        finally:
            await socket.close()

    async def reward(self, episode: Episode, question: str, answer: str) -> float | None:
        """As ``Environments.reward``."""
        async with self.session(episode.url) as session:
            begun = await session.reset(episode.seed)
            if begun.observation.get(episode.question) != question:
                raise away(episode.url, f"It asks another question at seed {episode.seed} than when it was added.")
            return (await session.step({episode.action: answer})).reward

    async def metadata(self, url: str) -> ServerMetadata:
        """What the server at ``url`` says of itself. Errors as for ``action``."""
        return await self._page(url, "metadata", ServerMetadata)

    async def action(self, url: str) -> str:
        """The one field that an action of the environment at ``url`` needs.

        Raises:
            DependencyError: it is away. EnvironmentFaultError: it says nothing that can be read.
            ConfigError: its actions are more than one text.
        """
        schema = (await self._page(url, "schema", _Schema)).action
        fields = [(name, schema.properties.get(name, _Property())) for name in schema.required]
        if [field.type for _, field in fields] != ["string"]:
            why = f"An action needs: {', '.join(schema.required)[:SHOWN] or 'nothing'}. Only one text can be asked for."
            raise ConfigError(f"The environment at {url} cannot be asked.", why)
        return fields[0][0]

    async def _page(self, url: str, path: str, model: type[_M]) -> _M:
        try:
            async with asyncio.timeout(self._answer_s):
                text = await asyncio.to_thread(page, f"{url}/{path}", "application/json")
            return model.model_validate_json(text or "")
        except TimeoutError as error:
            raise away(url, f"It answers nothing in {self._answer_s:g} s.") from error
        except (ValidationError, RecursionError) as error:
            what = f"The environment at {url} cannot be believed."
            raise EnvironmentFaultError(what, f"Its /{path}: {_first(error)}.") from error
