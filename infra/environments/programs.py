"""Environments of others from packages of their own: gymnasium's, those of verifiers, and servers of OpenEnv. Each is
run in a process from the folder where it is installed, known by the digest of its driver and its packages.

The code runs as the user who added it: nothing keeps it from files or network.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue, ValidationError

from agent0.errors import DependencyError
from agent0.events.episodes import OPENENV, Episode
from agent0.infra.environments.process import (
    ANSWER_S,
    EnvironmentProcess,
    EpisodeConnection,
    ProcessEpisode,
    ProcessValue,
    StepData,
    away,
)
from agent0.infra.storage.files import read_regular
from agent0.infra.web.openenv import OpenEnvServers
from agent0.ports.environments import OpenEpisode, StepOutcome

PROGRAM, PACKAGES = "program.json", "packages"
"""In an environment's folder: what is run, and the packages that are installed for it."""
INSIDE = Path(__file__).parent / "inside"
LARGEST = 1 << 20


class EnvironmentProgram(ProcessValue):
    """What is run: the kind of its driver, the environment's name there, and options for it."""

    kind: Literal["gym", "openenv", "verifiers"]
    name: Annotated[str, Field(min_length=1, max_length=200)]
    options: dict[str, JsonValue] = Field(default_factory=dict)


class AboutProgram(ProcessValue):
    """What a process says of itself. ``tasks``: how many there are, None: any number is one. ``address``: where it
    serves a wire of its own."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    version: Annotated[str, Field(max_length=200)] = ""
    tasks: Annotated[int, Field(ge=1)] | None = None
    address: str = ""


def program_digest(folder: Path) -> str:
    """The digest of an environment's program: what is run, its driver, and the packages that are installed for it.

    Raises:
        DependencyError: it cannot be read.
    """
    digest = hashlib.sha256()
    try:
        driver = INSIDE / f"{_program(folder).kind}_episodes.py"
        records = sorted((folder / PACKAGES).glob("lib/python*/site-packages/*.dist-info/RECORD"))
        for path in (folder / PROGRAM, INSIDE / "wire.py", driver, *records):
            name = path.parent.name if path in records else path.name
            digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    except OSError as error:
        raise DependencyError(f"The environment in {folder}", f"{error.strerror}.", "Add it again.") from error
    return digest.hexdigest()


def _program(folder: Path) -> EnvironmentProgram:
    try:
        return EnvironmentProgram.model_validate_json(read_regular(folder / PROGRAM, LARGEST))
    except (OSError, ValidationError) as error:
        raise DependencyError(f"The environment in {folder}", f"No {PROGRAM} can be read.", "Add it again.") from error


class _ProgramEpisode:
    """An episode of a program: rewards may come at each step."""

    def __init__(self, connection: EpisodeConnection, begun: ProcessEpisode) -> None:
        self._connection, self.question, self.tools = connection, begun.question, begun.tools

    async def step(self, tool: str, arguments: Mapping[str, JsonValue]) -> StepOutcome:
        """As ``OpenEpisode.step``; what follows an answer unasked shows as one too many."""
        outcome = await self._connection.ask(StepData, {"kind": "step", "tool": tool, "arguments": {**arguments}})
        await self._connection.ask(AboutProgram, {"kind": "about"})
        return StepOutcome(outcome.text, outcome.reward, outcome.done, outcome.refused)


class Programs:
    """Reaches the programs in the folders of ``folder``, each in a process that its first episode starts. ``KIND:NAME``
    is the address of the one in the folder NAME."""

    def __init__(self, folder: Path, answer_s: float = ANSWER_S) -> None:
        self._folder, self._answer_s, self._servers = folder, answer_s, OpenEnvServers(answer_s)
        self._processes: dict[str, EnvironmentProcess] = {}

    @asynccontextmanager
    async def opened(self, episode: Episode) -> AsyncIterator[OpenEpisode]:
        """As ``Environments.opened``."""
        name = episode.url.partition(":")[2]
        if program_digest(self._folder / name) != episode.program:
            raise away(name, "Its program or its packages are others than when it was added.")
        if episode.kind == OPENENV:
            at = episode.model_copy(update={"url": (await self.about(name)).address})
            try:
                async with self._servers.opened(at) as served:
                    yield served
            except DependencyError as error:  # of the server, which has another address whenever it starts
                if at.url not in error.dependency:
                    raise
                raise away(name, error.why) from error
            return
        async with self._process(name).connection() as connection:
            yield _ProgramEpisode(connection, await ProcessEpisode.begun(connection, episode.seed))

    async def about(self, name: str) -> AboutProgram:
        """What the program in the folder ``name`` says of itself.

        Raises:
            DependencyError: it does not start. EnvironmentFaultError: it says nothing that can be read.
        """
        async with self._process(name).connection() as connection:
            return await connection.ask(AboutProgram, {"kind": "about"})

    def _process(self, name: str) -> EnvironmentProcess:
        if name not in self._processes:
            folder = self._folder / name
            program = _program(folder)
            driver = (str(INSIDE / f"{program.kind}_episodes.py"), program.name, json.dumps(program.options))
            python = str(folder / PACKAGES / "bin" / "python")
            self._processes[name] = EnvironmentProcess(name, (python, "-I", *driver), answer_s=self._answer_s)
        return self._processes[name]

    async def close(self) -> None:
        """End every process."""
        for process in self._processes.values():
            await process.close()
