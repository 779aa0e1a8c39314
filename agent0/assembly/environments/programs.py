"""Part of the rim: environments from packages as sources of tasks. The packages are installed beside the tasks, in an
environment of their own, and run there as the user who adds them."""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from agent0.assembly.environments.added import TriedTask, free_folder
from agent0.assembly.environments.episodes import add_episodes
from agent0.errors import DependencyError
from agent0.events.episodes import OPENENV, Episode
from agent0.infra.environments.process import pip_environment
from agent0.infra.environments.programs import PACKAGES, PROGRAM, EnvironmentProgram, Programs, program_digest
from agent0.infra.web.openenv import OpenEnvServers
from agent0.ports.environments import OpenEpisode
from agent0.settings import Settings
from agent0.verification.repositories.mined_task import EpisodeTask

TRUST = "Its code runs as you, with your files and your network: add what you trust."


async def add_program(
    settings: Settings,
    program: EnvironmentProgram,
    called: str,
    count: int,
    like: Episode,
    packages: Sequence[str],
    report: Callable[[str], None],
    python: str = sys.executable,
) -> tuple[Path, list[TriedTask]]:
    """Install ``packages`` for ``program`` with ``python``, and add its episodes of the numbers below ``count`` as the
    environment ``called``, ``like`` this one. Returns where they are and all that were tried; nothing is kept where
    none is a task.

    Raises:
        ConfigError: the name is none, or what it asks cannot be asked.
        OperationError: there is one of this name, or what it answers is no begin of an episode.
        DependencyError: the packages cannot be installed, it does not start, or the disk cannot be written.
    """
    path = free_folder(settings, called)
    adding = path.with_name(f".{called}.program")
    shutil.rmtree(adding, ignore_errors=True)
    programs = Programs(adding.parent)
    try:
        report(TRUST)
        adding.mkdir(mode=0o700, parents=True)
        (adding / PROGRAM).write_text(program.model_dump_json(), encoding="utf-8")
        await _install(adding, packages, python)
        about = await programs.about(adding.name)
        episode = like.model_copy(update={"url": f"{program.kind}:{called}", "program": program_digest(adding)})
        task = EpisodeTask(id="", environment=about.name, version=about.version, statement="", episode=episode)
        opened = partial(_opened, programs, episode.model_copy(update={"url": f"{program.kind}:{adding.name}"}))
        if program.kind == OPENENV and not episode.tools:
            task = task.model_copy(update={"episode": await _answering(episode, about.address)})
        return path, await add_episodes(path, min(count, about.tasks or count), opened, task, adding)
    except OSError as error:
        raise DependencyError(f"The folder {path}", f"{error.strerror}.", "Free some space.") from error
    finally:
        await programs.close()
        shutil.rmtree(adding, ignore_errors=True)


async def _answering(episode: Episode, address: str) -> Episode:
    """The episode with the one field that answers."""
    return episode.model_copy(update={"action": await OpenEnvServers().action(address)})


@asynccontextmanager
async def _opened(programs: Programs, episode: Episode, seed: int) -> AsyncIterator[OpenEpisode]:
    async with programs.opened(episode.model_copy(update={"seed": seed})) as begun:
        yield begun


async def _install(folder: Path, packages: Sequence[str], python: str) -> None:
    """Install ``packages`` with all that they need into the environment of ``folder``."""
    inside = folder / PACKAGES
    await _run("Python's venv", python, "-m", "venv", str(inside))
    pip = (str(inside / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    await _run(f"pip install {' '.join(packages)}", *pip, *packages)


async def _run(what: str, *command: str) -> None:
    pipe, both = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
    process = await asyncio.create_subprocess_exec(*command, env=pip_environment(), stdout=pipe, stderr=both)
    output, _ = await process.communicate()
    if process.returncode:
        lines = output.decode(errors="replace").strip().splitlines() or ["it says nothing"]
        raise DependencyError(what, f"{lines[-1][:300]}.", "Name other packages: --package")
