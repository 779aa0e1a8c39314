"""The role of the sandbox: one call, one result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agent0.events.values import ToolState
from agent0.settings import PolicyConfig


@dataclass(frozen=True)
class Root:
    """The file system of a call beside interpreter and standard library: shell executables and packages.

    What is not listed here can be neither run nor imported, whatever the code does. ``trusted`` are packages of Agent0
    by their dotted names, which calls import by the last part. A fork server imports them before any call, outside of
    all confinement, so they are never code that anybody but us has written; it makes guests ahead of calls, too.
    """

    executables: tuple[str, ...] = PolicyConfig().executables
    modules: tuple[str, ...] = PolicyConfig().modules
    trusted: tuple[str, ...] = ()


@dataclass(frozen=True)
class SandboxCall:
    """One execution in a fresh sandbox. ``files`` are written into the empty work folder first (relative paths).

    ``guest`` is the code of a second Python process beside a Python call, empty for none. Standard input of each is a
    socket to the other. Limits and the work folder are those of both, the outputs those of the call alone; the guest
    can read neither memory nor descriptors of the call, and begins before these exist.
    """

    kind: Literal["python", "shell"]
    code: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    wall_s: float = 5.0
    mem_mib: int = 512
    root: Root = Root()
    guest: str = ""


@dataclass(frozen=True)
class SandboxResult:
    """The outcome of a sandbox call.

    ``files`` is the work folder afterwards; ``tier`` says how memory was limited (cgroup, watchdog); ``output_bytes``
    counts both outputs before they were truncated.
    """

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
    """Runs untrusted code. Fails closed: without a backend that passed its self-test every call is refused."""

    async def call(self, call: SandboxCall) -> SandboxResult:
        """Run ``call`` once in fresh namespaces. Failing or hostile code is a result, never an exception.

        Raises:
            SandboxUnavailableError: no backend passed its self-test.
        """
        ...

    async def close(self) -> None:
        """End every process of the sandbox."""
        ...
