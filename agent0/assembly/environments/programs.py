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
from agent0.infra.environments.programs import (
    PACKAGES,
    PROGRAM,
    AboutProgram,
    EnvironmentProgram,
    Programs,
    program_digest,
)
from agent0.infra.web.openenv import OpenEnvServers
from agent0.ports.environments import OpenEpisode, ResetOptions
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
    resets: ResetOptions | None = None,
) -> tuple[Path, list[TriedTask]]:
    """Install ``packages`` for ``program`` with ``python``, and add its episodes of the numbers below ``count`` as the
    environment ``called``, ``like`` this one, ``resets`` its options. Returns where they are and all that were tried;
    nothing is kept where none is a task.

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
        task = await _task(about, episode)
        opened, most = partial(_opened, programs, f"{program.kind}:{adding.name}"), min(count, about.tasks or count)
        return path, await add_episodes(path, most, opened, task, resets or {}, adding)
    except OSError as error:
        raise DependencyError(f"The folder {path}", f"{error.strerror}.", "Free some space.") from error
    finally:
        await programs.close()
        shutil.rmtree(adding, ignore_errors=True)


async def _task(about: AboutProgram, episode: Episode) -> EpisodeTask:
    """What all tasks of a program are like; an episode of one step has the field that answers."""
    if episode.kind == OPENENV and not episode.tools:
        episode = episode.model_copy(update={"action": await OpenEnvServers().action(about.address)})
    return EpisodeTask(id="", environment=about.name, version=about.version, statement="", episode=episode)


@asynccontextmanager
async def _opened(programs: Programs, url: str, episode: Episode) -> AsyncIterator[OpenEpisode]:
    async with programs.opened(episode.model_copy(update={"url": url})) as begun:
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
