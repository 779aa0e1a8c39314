"""An environment of others in a process of its own, by lines of JSON: each connection to its socket is an episode, each
request is answered by one line. Nothing that comes is believed: a line is read into what it must be."""

import asyncio
import contextlib
import itertools
import json
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from agent0.errors import DependencyError
from agent0.infra.mcp.schema import SchemaRefused, harmless
from agent0.ports.environments import EnvironmentFaultError, StepOutcome
from agent0.ports.models import ToolSpec
from agent0.tools.untrusted import visible

START_S, ANSWER_S, STOP_S = 180.0, 120.0, 5.0
"""Seconds for a start, for the answer to a request, and for an end."""
LARGEST = 64 << 20
"""Bytes of an answer."""
SHOWN = 200
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR")
"""What of our environment the process sees: no key is among it."""
_FOR_PIP = (*_KEPT, "HOME", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_A = TypeVar("_A")


def pip_environment() -> dict[str, str]:
    """What of our environment pip sees: proxies, certificates and its own ``PIP_`` settings; no key of a provider."""
    return {name: value for name, value in os.environ.items() if name.upper() in _FOR_PIP or name.startswith("PIP_")}


class ProcessValue(BaseModel):
    """What comes from a process: read strictly, and refused where anything is more or other."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False, extra="forbid")


class _ProcessAnswer(ProcessValue):
    id: int
    answer: JsonValue = None
    error: str = ""


class ToolData(ProcessValue):
    """A tool of an episode, with the JSON schema of its arguments."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    description: str
    parameters: dict[str, JsonValue]


class OpenedData(ProcessValue):
    """How an episode begins: what it asks, and the tools that make its steps."""

    question: str
    tools: Annotated[list[ToolData], Field(min_length=1, max_length=64)]


class StepData(ProcessValue):
    """What a process says that came of a step, as ``StepOutcome``."""

    text: str
    reward: float | None
    done: bool
    refused: bool


class EpisodeConnection:
    """One episode of a process. Requests follow one another."""

    def __init__(
        self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer_s: float, last: "LastLine"
    ) -> None:
        self._name, self._reader, self._writer = name, reader, writer
        self._answer_s, self._last = answer_s, last
        self._numbers = itertools.count(1)

    async def ask(self, kind: type[_A], request: Mapping[str, JsonValue]) -> _A:
        """What ``request`` is answered, read as ``kind``.

        Raises:
            DependencyError: the process was lost. EnvironmentFaultError: it answers something else, or not in time.
        """
        number = next(self._numbers)
        try:
            async with asyncio.timeout(self._answer_s):
                self._writer.write(json.dumps({"id": number, **request}).encode() + b"\n")
                await self._writer.drain()
                line = await self._reader.readuntil(b"\n")
        except TimeoutError as error:
            raise self.fault(f"nothing to {request.get('kind')} in {self._answer_s:g} s") from error
        except asyncio.LimitOverrunError as error:
            raise self.fault(f"no line of at most {LARGEST:,} bytes") from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise away(self._name, f"It was lost. {self._last()}") from error
        try:
            frame = _ProcessAnswer.model_validate_json(line)
            if frame.id != number:
                raise self.fault("more than one answer to one request")
            if frame.error:
                raise self.fault(f"an error: {visible(frame.error)[:SHOWN]}")
            return TypeAdapter(kind).validate_python(frame.answer, strict=True)
        except (ValidationError, RecursionError) as error:
            raise self.fault(f"no answer to {request.get('kind')}: {_first(error)}") from error

    def fault(self, why: str) -> EnvironmentFaultError:
        """The error of an environment that gives ``why``."""
        return EnvironmentFaultError(f"The environment {self._name} cannot be believed.", f"It gives {why}.")


class ProcessEpisode:
    """An episode that a process has begun, as ``OpenEpisode``."""

    def __init__(self, connection: EpisodeConnection, opened: OpenedData, tools: tuple[ToolSpec, ...]) -> None:
        self._connection, self.question, self.tools = connection, opened.question, tools
        self._ended = False

    @classmethod
    async def begun(cls, connection: EpisodeConnection, task: int) -> "ProcessEpisode":
        """Begin ``task``, counted from 0. Errors as for ``EpisodeConnection.ask``."""
        opened = await connection.ask(OpenedData, {"kind": "open", "task": task})
        try:
            tools = tuple(
                ToolSpec(tool.name, visible(tool.description), harmless(tool.parameters)) for tool in opened.tools
            )
        except SchemaRefused as error:
            raise connection.fault(f"a tool that cannot be called: {error}") from error
        return cls(connection, opened, tools)

    async def step(self, tool: str, arguments: Mapping[str, JsonValue]) -> StepOutcome:
        """As ``OpenEpisode.step``."""
        if self._ended:
            raise self._connection.fault("an episode that has ended, and goes on")
        request: Mapping[str, JsonValue] = {"kind": "step", "tool": tool, "arguments": {**arguments}}
        outcome = await self._connection.ask(StepData, request)
        if outcome.reward is not None and not outcome.done:
            raise self._connection.fault("a reward before the end")
        self._ended = outcome.done
        return StepOutcome(outcome.text, outcome.reward, outcome.done, outcome.refused)


LastLine = Callable[[], str]
"""The last line that a process wrote to standard error."""


class EnvironmentProcess:
    """A process that serves episodes. It starts at the first connection, again where it ended, and ends with us.

    ``command`` is what starts it, before the address of its socket; once that is there, it prints a line. ``check`` is
    called in a thread before each start.
    """

    def __init__(
        self, name: str, command: Sequence[str], check: Callable[[], None] = lambda: None, answer_s: float = ANSWER_S
    ) -> None:
        self._name, self._command, self._check, self._answer_s = name, command, check, answer_s
        self._starting = asyncio.Lock()
        self._child: asyncio.subprocess.Process | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def pid(self) -> int | None:
        """The process, None where none runs."""
        return self._child.pid if self._child and self._child.returncode is None else None

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[EpisodeConnection]:
        """A connection of its own.

        Raises:
            DependencyError: the process does not start, or takes none.
        """
        async with self._starting:
            if self.pid is None:
                await self._start()
        try:
            async with asyncio.timeout(self._answer_s):
                reader, writer = await asyncio.open_unix_connection(self._address, limit=LARGEST)
        except (OSError, TimeoutError) as error:
            raise away(self._name, f"It takes no connection. {self._last_line()}") from error
        try:
            yield EpisodeConnection(self._name, reader, writer, self._answer_s, self._last_line)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def close(self) -> None:
        """End the process, and with it every episode."""
        child, self._child = self._child, None
        if child is not None and child.returncode is None:
            if child.stdin is not None:
                child.stdin.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(child.wait(), STOP_S)
            with contextlib.suppress(ProcessLookupError):  # what it started is in its group
                os.killpg(child.pid, signal.SIGKILL)
            await child.wait()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    @property
    def _address(self) -> str:
        return str(Path(self._folder.name if self._folder else "", "s"))

    def _last_line(self) -> str:
        if self._folder is None:
            return ""
        with contextlib.suppress(OSError), Path(self._folder.name, "errors").open("rb") as errors:
            errors.seek(max(errors.seek(0, os.SEEK_END) - 4096, 0))
            lines = errors.read().decode(errors="replace").split("\n")
            return next((visible(line)[:SHOWN] for line in reversed(lines) if line.strip()), "")
        return ""

    async def _start(self) -> None:
        await self.close()
        await asyncio.to_thread(self._check)
        self._folder = tempfile.TemporaryDirectory(prefix="a0-")
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment |= {"PYTHON_DOTENV_DISABLED": "1", "LOGURU_AUTOINIT": "False"}  # no file of keys, no log
        environment |= {"HOME": self._folder.name, "PYTHONHASHSEED": "0"}
        pipe = asyncio.subprocess.PIPE
        try:
            with Path(self._folder.name, "errors").open("wb") as errors:
                self._child = await asyncio.create_subprocess_exec(
                    *self._command,
                    self._address,
                    stdin=pipe,
                    stdout=pipe,
                    stderr=errors,
                    env=environment,
                    cwd=self._folder.name,
                    start_new_session=True,
                )
            assert self._child.stdout is not None  # noqa: S101 - a pipe
            async with asyncio.timeout(START_S):
                ready = await self._child.stdout.read(1)
        except (OSError, TimeoutError) as error:
            await self.close()
            raise away(self._name, f"It does not start: {type(error).__name__}.") from error
        if not ready:
            last = self._last_line()
            await self.close()
            raise away(self._name, f"It does not start. {last}")


def away(name: str, why: str) -> DependencyError:
    """The error of an environment that is not there."""
    return DependencyError(f"The environment {name}", why.strip(), "A run goes on by itself once it is there again.")


def _first(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:SHOWN]
