"""The role of the sandbox: a call and its result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agent0.settings import PolicyConfig
from events.values import ToolState


@dataclass(frozen=True)
class Root:
    """What exists in a call's file system beside interpreter and standard library: executables of the shell, and
    packages. Nothing that is not named here can be run or imported, whatever the code is."""

    executables: tuple[str, ...] = PolicyConfig().executables
    modules: tuple[str, ...] = PolicyConfig().modules


@dataclass(frozen=True)
class SandboxCall:
    """One fresh execution. ``files`` are laid into the empty work folder first (relative paths)."""

    kind: Literal["python", "shell"]
    code: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    wall_s: float = 5.0
    mem_mib: int = 512
    root: Root = Root()


@dataclass(frozen=True)
class SandboxResult:
    """What happened. ``files`` is the work folder afterwards; ``tier``: how memory was limited (cgroup, watchdog);
    ``output_bytes`` counts both outputs before they were cut."""

    state: ToolState
    rc: int | None
    stdout: str
    stderr: str
    wall_s: float
    cpu_s: float
    peak_mem_mib: float
    tier: str
    backend: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    reason: str = ""
    output_bytes: int = 0


class Sandbox(Protocol):
    """Runs code nobody has read. Fails closed: without a backend that passed its self-test every call is refused."""

    async def call(self, call: SandboxCall) -> SandboxResult:
        """Run once in fresh namespaces. Hostile code is a result, never an exception.

        Raises:
            SandboxUnavailableError: no backend passed its self-test.
        """
        ...

    async def close(self) -> None:
        """End every process."""
        ...
