"""Choose the sandbox backend: each candidate, in order, is put to the whole self-test and the first that passes is
used. Where none passes there is no sandbox, and no setting changes that."""

import asyncio
import functools
import resource
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from agent0.errors import SandboxUnavailableError
from agent0.infra.sandbox import selftest
from agent0.infra.sandbox.backends.bubblewrap import Bubblewrap
from agent0.infra.sandbox.backends.cold import ColdBubblewrap
from agent0.infra.sandbox.backends.containers import COLD, WARM, ColdContainer, WarmContainer, open_broker
from agent0.infra.sandbox.backends.fork_server import ForkServer
from agent0.infra.sandbox.roots import EVERYTHING, RootError
from agent0.infra.sandbox.selftest import Executes, MissedProbeError, Probe
from agent0.ports.sandbox import Root, Sandbox
from agent0.settings import SandboxSettings

TRIES, PAUSE_S = 3, 1.0
"""At a backend that starts and misses a probe: on a busy machine the reason may be gone a moment later."""
OPEN_FILES = 128
"""Of a call inside, as ``inside/payload.py`` sets it."""


@dataclass(frozen=True)
class BackendCandidate:
    """One backend looked at: its ``probes`` as far as it got, whether calls would run on it, and ``why`` not."""

    name: str
    probes: tuple[Probe, ...]
    chosen: bool
    why: str = ""
    fix: str = ""


class BackendTrial(Executes, Protocol):
    """A started backend that the self-test can probe and that can be closed."""

    async def close(self) -> None:
        """End it."""
        ...


class Startable(Sandbox, Protocol):
    """A sandbox that has not been tested yet."""

    async def start(self) -> None:
        """Start and pass the whole self-test.

        Raises:
            SandboxUnavailableError: it did not.
        """
        ...


@dataclass(frozen=True)
class Backend:
    """How a backend is tried, and how it is made: from settings, label, number of workers and the root that calls are
    expected to name."""

    trial: Callable[[SandboxSettings], Awaitable[BackendTrial]]
    make: Callable[[SandboxSettings, str, int, Root], Startable]


def _cold(kind: Callable[[SandboxSettings], BackendTrial]) -> Callable[[SandboxSettings], Awaitable[BackendTrial]]:
    async def trial(settings: SandboxSettings) -> BackendTrial:
        return kind(settings)

    return trial


DEFAULTS = SandboxSettings()
BACKENDS: Mapping[str, Backend] = {
    "zygote-bwrap": Backend(
        lambda settings: ForkServer.start(calls=settings.calls, groups=settings.cgroup == "auto"),
        lambda settings, label, workers, root: Bubblewrap(
            settings.model_copy(update={"workers": workers}), label, root
        ),
    ),
    WARM: Backend(
        lambda settings: open_broker(settings, settings.calls), lambda *arguments: WarmContainer(*arguments[:3])
    ),
    "bwrap-cold": Backend(_cold(ColdBubblewrap), lambda *arguments: ColdBubblewrap(*arguments[:3])),
    COLD: Backend(_cold(ColdContainer), lambda *arguments: ColdContainer(*arguments[:3])),
}
"""In the order in which they are tried."""
TROUBLE = "docs/guide/troubleshooting.md, under The sandbox, says what each probe needs."


def named(settings: SandboxSettings) -> list[str]:
    """The backends that ``settings`` may use, best first."""
    return list(BACKENDS) if settings.backend == "auto" else [settings.backend]


async def open_sandbox(
    settings: SandboxSettings = DEFAULTS, *, workers: int = 1, label: str = "student", root: Root = EVERYTHING
) -> Sandbox:
    """The first backend that passes its whole self-test. ``root`` is what most calls will name: fork servers of it are
    kept. Where this machine lacks something of it they are of the packaged one, and calls that name it are refused.

    Raises:
        SandboxUnavailableError: none does; the reason names that of each.
    """
    _require_files()
    reasons: list[SandboxUnavailableError] = []
    for name in named(settings):
        opened = await _tried(functools.partial(BACKENDS[name].make, settings, label, workers), root)
        if not isinstance(opened, SandboxUnavailableError):
            return opened
        reasons.append(opened)
    raise _refusal(dict(zip(named(settings), reasons, strict=True)))


async def _tried(make: Callable[[Root], Startable], root: Root) -> Startable | SandboxUnavailableError:
    """A sandbox of ``root``, or of the packaged one, once it passed its self-test; else why the last one did not."""
    for left in reversed(range(TRIES)):
        opened = await _started(make(root))
        if isinstance(opened, SandboxUnavailableError) and isinstance(opened.__cause__, RootError):
            opened = await _started(make(EVERYTHING))
        if not left or not isinstance(opened, MissedProbeError):
            break
        await asyncio.sleep(PAUSE_S)
    return opened


async def _started(sandbox: Startable) -> Startable | SandboxUnavailableError:
    """``sandbox`` once it passed its self-test, or why it did not; it is closed then."""
    try:
        await sandbox.start()
    except SandboxUnavailableError as error:
        await sandbox.close()
        return error
    except BaseException:
        await sandbox.close()
        raise
    return sandbox


def _require_files() -> None:
    """A call's limit cannot be set above that of the process which starts it."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most != resource.RLIM_INFINITY and most < OPEN_FILES:
        why = f"A call may have {OPEN_FILES} files open, and this process may have {most}."
        raise SandboxUnavailableError("The sandbox", why, "Raise the limit: `ulimit -n 1024`.")


def _refusal(reasons: Mapping[str, SandboxUnavailableError]) -> SandboxUnavailableError:
    why = "; ".join(f"{name}: {error.why.rstrip('.')}" for name, error in reasons.items())
    fixes = dict.fromkeys(error.fix for error in reasons.values() if error.fix)
    return SandboxUnavailableError("The sandbox", f"{why}.", " Or: ".join(fixes))


async def survey(settings: SandboxSettings, *, until_chosen: bool = False) -> list[BackendCandidate]:
    """Every backend that ``settings`` may use, best first, each probed to the end whether or not one before it would
    do; with ``until_chosen`` none behind the chosen one. A backend that does not even start is one failed probe, never
    an exception."""
    out: list[BackendCandidate] = []
    for name in named(settings):
        probes, fix = await _probe(BACKENDS[name], settings)
        for _ in range(TRIES - 1):
            if fix != TROUBLE or all(probe.ok for probe in probes):
                break
            await asyncio.sleep(PAUSE_S)
            probes, fix = await _probe(BACKENDS[name], settings)
        missed = [f"{probe.name}: {probe.detail}" for probe in probes if not probe.ok]
        chosen = not missed and not any(candidate.chosen for candidate in out)
        out.append(BackendCandidate(name, tuple(probes), chosen, "; ".join(missed), fix if missed else ""))
        if chosen and until_chosen:
            break
    return out


async def _probe(backend: Backend, settings: SandboxSettings) -> tuple[list[Probe], str]:
    probes: list[Probe] = []
    try:
        trial = await backend.trial(settings)
        try:
            inspected = await selftest.inspect(trial)
            probes = [Probe("starts", True, "it does"), *inspected]
            probes += await selftest.limits(trial)
        finally:
            await trial.close()
    except MissedProbeError as error:
        return [*probes, Probe("limits" if probes else "starts", False, error.why)], TROUBLE
    except SandboxUnavailableError as error:
        return [*probes, Probe("limits" if probes else "starts", False, error.why)], error.fix
    except RootError as error:
        return [Probe("starts", False, str(error))], ""
    return probes, TROUBLE
