"""One bubblewrap a call, for machines on which its children may make no namespaces of their own. The same limits,
watch and harvest as in the warm one; what is missing is the interpreter that has imported everything."""

import asyncio
import os

from agent0.errors import SandboxUnavailableError
from agent0.events.values import ToolState
from agent0.infra.sandbox import execution, rootfs
from agent0.infra.sandbox.inside.calling import SandboxProcessError
from agent0.infra.sandbox.link import SandboxLink
from agent0.infra.sandbox.queueing import TIER, Queued
from agent0.infra.sandbox.roots import RootError
from agent0.ports.sandbox import Root, SandboxCall, SandboxResult

FIX = "Install bubblewrap 0.8 or newer (apt-get install bubblewrap), and allow it user namespaces; or run as root."
PROC = "/processes"
"""Where the watch sees processes. Landlock closes it to the payload, whose own /proc is empty."""
_WORK, _TEMPORARY = 64 << 20, 16 << 20
_START = "import sys; sys.path.insert(0, '/opt'); from inside.once import main; main({!r})"


class ColdBubblewrap(Queued):
    """The ``Sandbox`` port with one bubblewrap a call. Make one with ``open_sandbox``, which also tests it."""

    name = "bwrap-cold"
    _more: list[str] | None = None

    async def execute(self, call: SandboxCall) -> SandboxResult:
        """Run ``call`` in a bubblewrap of its own.

        Raises:
            WorldError: it ended without a word.
            SandboxUnavailableError: it did not start; the reason is what it said.
        """
        try:
            command = await self._command(call.root)
        except RootError as error:
            return execution.not_run(ToolState.REFUSED, str(error), self.name, TIER)
        try:
            link = await SandboxLink.open(command, {})
        except (SandboxProcessError, OSError) as error:
            raise SandboxUnavailableError("The sandbox", f"{error}.", FIX) from error
        try:
            ended = await link.ask(execution.request(call), call.root)
        finally:
            await link.close()
        return execution.result(ended, self.name, TIER)

    async def _command(self, root: Root) -> list[str]:
        if self._more is None:
            self._more = await _options()
        return [*await rootfs.command(root, self._more), *rootfs.python(_START.format(PROC))]


async def _options() -> list[str]:
    """File systems of one call. Where bubblewrap makes a user namespace, and knows how, it is the last one."""
    out = ["--proc", PROC, "--size", "4096", "--tmpfs", "/proc", "--remount-ro", "/proc"]
    out += ["--size", "4096", "--tmpfs", "/dev/shm", "--remount-ro", "/dev/shm"]  # noqa: S108
    for size, path in ((_WORK, "/box"), (_TEMPORARY, "/tmp")):  # noqa: S108
        out += ["--size", str(size), "--perms", "0777", "--tmpfs", path]
    return [*out, "--disable-userns"] if os.getuid() and "--disable-userns" in await _help() else out


async def _help() -> str:
    pipe = asyncio.subprocess.PIPE
    try:
        path = {"PATH": os.environ.get("PATH", os.defpath)}
        process = await asyncio.create_subprocess_exec("bwrap", "--help", env=path, stdout=pipe, stderr=pipe)
    except OSError as error:
        raise SandboxUnavailableError("The sandbox", f"bwrap: {error}.", "apt-get install bubblewrap") from error
    outputs = await process.communicate()
    return b"".join(outputs).decode(errors="replace")
