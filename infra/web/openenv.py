"""Environments of others by OpenEnv's wire: frames over a WebSocket, each answered by one. Nothing that comes is
believed: a frame is read into what it must be, and after a step the state is asked for, so that a second answer to
either shows as what it is."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from agent0.errors import ConfigError, DependencyError
from agent0.events.episodes import Episode
from agent0.infra.mcp.schema import SchemaRefused, harmless
from agent0.infra.web.download import page
from agent0.ports.environments import EnvironmentFaultError, StepOutcome
from agent0.ports.models import ToolSpec
from agent0.tools.untrusted import visible

OPEN_S, ANSWER_S, CLOSE_S = 10.0, 120.0, 1.0
"""Seconds for a connection, for the answer to a frame, and for a goodbye."""
PAUSES_S = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds until a full server is asked again where it has no session of ours: one that ended may count a moment."""
LARGEST = 1 << 20
"""Bytes of a frame."""
SHOWN, LONGEST_TEXT, MOST_TOOLS = 200, 2_000, 64
ACT = "act"
"""The tool that carries out an action of an environment without tools of its own."""
FULL = "CAPACITY_REACHED"
"""The code of the wire for a server that has no room for one more session."""
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


class _ActionSchema(_Wire):
    model_config = ConfigDict(extra="allow")

    properties: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    required: list[str] = Field(default_factory=list)

    @property
    def calls(self) -> bool:
        """Whether an action calls one of the environment's own tools."""
        return "tool_name" in self.required and "arguments" in self.properties


class _Schema(_Wire):
    action: _ActionSchema


class _OpenEnvTool(_Wire):
    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    description: str = ""
    input_schema: dict[str, JsonValue]


class _OpenEnvTools(_Wire):
    tools: list[_OpenEnvTool] = Field(min_length=1, max_length=MOST_TOOLS)


class ServerMetadata(_Wire):
    """What a server says of itself: its name, and a version where it has one."""

    name: str = Field(min_length=1, max_length=SHOWN)
    version: str | None = Field(None, max_length=SHOWN)


_request: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])
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

    async def reset(self, seed: int, options: Mapping[str, JsonValue]) -> ObservationData | None:
        """Begin the episode of ``seed``, with ``options`` of the environment's own; None: the server is full.

        Raises:
            DependencyError: it cannot now. EnvironmentFaultError: it answers something else, or has ended at once.
        """
        frame = await self._frame("reset", {**options, "seed": seed})
        if isinstance(frame, _ErrorFrame):
            if frame.data.code == FULL:
                return None
            raise away(self._url, f"It does not begin: {frame.data.code} {frame.data.message[:SHOWN]}")
        begun = self._observation(frame)
        if begun.done:
            raise self._fault("an episode that has ended before its first step")
        return begun

    async def step(self, action: Mapping[str, JsonValue]) -> ObservationData | str:
        """Carry out an action; returns what came of it, or why it was refused.

        Raises:
            DependencyError: the server was lost, or is full.
            EnvironmentFaultError: it answers something else, or twice.
        """
        frame = await self._frame("step", action)
        if isinstance(frame, _ErrorFrame):
            why = f"{frame.data.code} {frame.data.message[:SHOWN]}"
            if frame.data.code not in _ANSWER_REFUSED:
                raise away(self._url, why)
        state = await self._frame("state")
        if isinstance(state, _ErrorFrame):
            raise self._fault(f"no state: {state.data.code} {state.data.message[:SHOWN]}")
        if not isinstance(state, _StateFrame):
            raise self._fault("more than one frame to one request")
        return why if isinstance(frame, _ErrorFrame) else self._observation(frame)

    async def tools(self) -> tuple[ToolSpec, ...]:
        """The environment's own tools. Errors as for ``step``."""
        answer = await self.step({"type": "list_tools"})
        try:
            listed = _OpenEnvTools.model_validate({} if isinstance(answer, str) else answer.observation).tools
            return tuple(model_tool(tool.name, tool.description, tool.input_schema) for tool in listed)
        except (ValidationError, SchemaRefused) as error:
            raise self._fault(f"no list of tools: {_first(error)}") from error

    async def _frame(
        self, kind: str, data: Mapping[str, JsonValue] | None = None
    ) -> _ObservationFrame | _StateFrame | _ErrorFrame:
        """What a frame is answered; their servers refuse data beside a kind that takes none."""
        fields: dict[str, JsonValue] = {"type": kind} if data is None else {"type": kind, "data": dict(data)}
        request = _request.dump_json(fields).decode()
        try:
            async with asyncio.timeout(self._answer_s):
                with contextlib.suppress(ConnectionClosed):  # what it wrote before says why
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


def model_tool(name: str, description: str, schema: Mapping[str, JsonValue]) -> ToolSpec:
    """A tool as a model may read it.

    Raises:
        SchemaRefused: its schema must not be shown.
    """
    return ToolSpec(name, visible(description)[:LONGEST_TEXT] or name, harmless({"type": "object", **schema}))


def shown(observation: Mapping[str, JsonValue]) -> str:
    """What a student reads of an observation: its one text, or all fields as JSON."""
    (text,) = observation.values() if len(observation) == 1 else (None,)
    return text if isinstance(text, str) else json.dumps(observation, ensure_ascii=False)


class OpenEnvEpisode:
    """An episode over a session, which has begun it. ``calls``: its tools are the environment's own."""

    def __init__(self, session: OpenEnvSession, question: str, tools: tuple[ToolSpec, ...], calls: bool) -> None:
        self._session, self.question, self.tools, self._calls = session, question, tools, calls

    async def step(self, tool: str, arguments: Mapping[str, JsonValue]) -> StepOutcome:
        """As ``OpenEpisode.step``."""
        call: Mapping[str, JsonValue] = {"type": "call_tool", "tool_name": tool, "arguments": {**arguments}}
        outcome = await self._session.step(call if self._calls else arguments)
        if isinstance(outcome, str):
            return StepOutcome(outcome, refused=True)
        return StepOutcome(shown(outcome.observation), outcome.reward, outcome.done)


async def _episode(
    session: OpenEnvSession, observed: Mapping[str, JsonValue], question: str, steps: tuple[ToolSpec, ...] | None
) -> OpenEnvEpisode:
    """The episode that ``session`` has begun with what was ``observed``; its own tools are asked for where ``steps``
    are none."""
    asked = observed.get(question) if question else shown(observed)
    if not isinstance(asked, str):
        fields = ", ".join(observed)[:SHOWN] or "nothing"
        raise ConfigError(f"An observation has no text {question!r}.", f"It has: {fields}.", "Name it: --question")
    calls = steps == ()
    return OpenEnvEpisode(session, asked, await session.tools() if calls else steps or (), calls)


def _first(error: ValidationError | RecursionError | SchemaRefused) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    if isinstance(error, SchemaRefused):
        return str(error)
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:SHOWN]


class OpenEnvServers:
    """Reaches servers of OpenEnv's wire, by a session for each episode; those of a full server follow one another.
    ``answer_s``: seconds for one frame."""

    def __init__(self, answer_s: float = ANSWER_S) -> None:
        self._answer_s, self._open, self._ended = answer_s, Counter[str](), asyncio.Event()

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

    @asynccontextmanager
    async def opened(self, episode: Episode) -> AsyncIterator[OpenEnvEpisode]:
        """As ``Environments.opened``, and a ConfigError where there is no text ``episode.question``."""
        steps = await self.steps(episode.url) if episode.tools else None
        try:
            async with self._begun(episode, steps) as begun:
                yield begun
        finally:
            self._ended.set()
            self._ended = asyncio.Event()

    @asynccontextmanager
    async def _begun(self, episode: Episode, steps: tuple[ToolSpec, ...] | None) -> AsyncIterator[OpenEnvEpisode]:
        """The episode, begun once there is room. ``steps``: as ``steps`` gives them; None: it has one step."""
        pauses = iter(PAUSES_S)
        while True:
            ended = self._ended
            async with self.session(episode.url) as session:
                if (observed := await session.reset(episode.seed, episode.options)) is not None:
                    begun = await _episode(session, observed.observation, episode.question, steps)
                    self._open[episode.url] += 1
                    try:
                        yield begun
                    finally:
                        self._open[episode.url] -= 1
                    return
            if self._open[episode.url]:
                await ended.wait()
            elif (pause_s := next(pauses, None)) is not None:
                await asyncio.sleep(pause_s)
            else:
                raise away(episode.url, f"It does not begin: {FULL}")

    async def steps(self, url: str) -> tuple[ToolSpec, ...]:
        """The tool that carries out an action of the environment at ``url``; nothing where it has tools of its own,
        which a session tells. Errors as for ``action``."""
        schema = (await self._page(url, "schema", _Schema)).action
        if schema.calls:
            return ()
        fields = schema.model_dump()
        fields["properties"].pop("metadata", None)
        try:
            return (model_tool(ACT, f"{fields.get('description') or 'Carries out an action.'}", fields),)
        except SchemaRefused as error:
            raise ConfigError(f"The environment at {url} cannot be asked.", f"Its actions: {error}.") from error

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
        fields = [schema.properties.get(name, {}).get("type") for name in schema.required]
        if fields != ["string"]:
            why = f"An action needs: {', '.join(schema.required)[:SHOWN] or 'nothing'}. A question wants one text."
            raise ConfigError(f"The environment at {url} is no question.", why, "Add its episodes of steps: --steps")
        return schema.required[0]

    async def _page(self, url: str, path: str, model: type[_M]) -> _M:
        try:
            async with asyncio.timeout(self._answer_s):
                text = await asyncio.to_thread(page, f"{url}/{path}", "application/json")
            return model.model_validate_json(text or "")
        except TimeoutError as error:
            raise away(url, f"It answers nothing in {self._answer_s:g} s.") from error
        except DependencyError as error:
            raise away(url, error.why) from error
        except (ValidationError, RecursionError) as error:
            what = f"The environment at {url} cannot be believed."
            raise EnvironmentFaultError(what, f"Its /{path}: {_first(error)}.") from error
