"""``agent0 tool serve`` as a person starts it, also as one who has no rights, and questions put to it."""

import asyncio
import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from tests.sandbox.attacks import Attack, Seen
from tests.sandbox.campaign import SECRET, VARIABLE

NOBODY = 64997
"""An account without a name, a home or a right."""
ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "agent0", "tool", "serve", "--json-lines", "--set", "sandbox.wall_s=10")
COMMAND += ("--set", "sandbox.workers=1")
NO_NAMESPACES = ("bwrap", "--unshare-user", "--disable-userns", "--dev-bind", "/", "/", "--")
"""What stands before a command whose user namespaces are forbidden, as on a hardened kernel."""


class Served:
    """A running server. Answers come in the order of the questions."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._ids = count()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            answer = json.loads(line)
            self._waiting.pop(answer.get("id", -1)).set_result(answer)
        for waiting in self._waiting.values():
            waiting.set_exception(EOFError("the server ended"))

    async def ask(self, **question: object) -> dict[str, Any]:
        """One line, one answer."""
        number = next(self._ids)
        return await self.say(json.dumps({"id": number, **question}).encode(), number)

    async def say(self, line: bytes, number: int = -1) -> dict[str, Any]:
        """Any line. ``number``: the id it has, -1 for none (then only one such line at a time)."""
        assert self._process.stdin is not None
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(line + b"\n")
        await self._process.stdin.drain()
        return await waiting

    async def attack(self, attack: Attack, after: Seen | None = None) -> Seen:
        """A ``campaign.Call``."""
        more = {"from": after.manifest} if after and after.manifest else {}
        asked = {"tool": attack.kind, "code": attack.code, "wall": attack.wall, "mem": attack.mem}
        told = await self.ask(**asked, keep=True, **more)
        files = dict.fromkeys(told["files"], b"")
        said = (told["state"], told.get("rc"), told.get("stdout", ""), told.get("stderr", ""), told["reason"])
        return Seen(*said, files, told["manifest"])

    async def close(self) -> str:
        """End it as its owner would, by ending its input. What it said on standard error."""
        assert self._process.stdin is not None and self._process.stderr is not None
        self._process.stdin.close()
        said = (await self._process.stderr.read()).decode(errors="replace")
        await self._reading
        assert await self._process.wait() == 0, said
        return said


def _as_nobody() -> list[str]:
    """What stands before a command that root runs as ``NOBODY``. An interpreter in a home that is closed to others is
    made visible to this command alone."""
    needed = [Path(sys.base_prefix).resolve(), Path(sys.prefix), ROOT]
    closed = [folder for path in needed for folder in path.parents if not folder.stat().st_mode & 0o001]
    words = ["bwrap", "--die-with-parent", "--dev-bind", "/", "/"]
    for folder in sorted({folder for folder in closed if not set(folder.parents) & set(closed)}):
        words += ["--perms", "0755", "--tmpfs", str(folder)]
        for path in (path for path in needed if folder in path.parents):
            between = [above for above in reversed(path.parents) if folder in above.parents]
            words += [word for above in between for word in ("--perms", "0755", "--dir", str(above))]
            words += ["--ro-bind", str(path), str(path)]
    who = [
        "setpriv",
        f"--reuid={NOBODY}",
        f"--regid={NOBODY}",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
    ]
    return [*words, "--", *who, "--"]


@asynccontextmanager
async def served(before: Sequence[str] = (), *, unprivileged: bool = True) -> AsyncIterator[Served]:
    """A server with a home of its own. ``unprivileged``: not as root, whoever runs the tests."""
    home = Path(tempfile.mkdtemp(prefix="agent0-served-", dir="/var/tmp"))
    first: list[str] = []
    if unprivileged and os.getuid() == 0:
        first = _as_nobody()
        os.chown(home, NOBODY, NOBODY)
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), "AGENT0_HOME": str(home / "data"), VARIABLE: SECRET}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *first, *before, *COMMAND, cwd=ROOT, env=variables, stdin=pipe, stdout=pipe, stderr=pipe, limit=1 << 26
    )
    server = Served(process)
    try:
        yield server
        await server.close()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        await asyncio.gather(server._reading, return_exceptions=True)
        shutil.rmtree(home, ignore_errors=True)
