"""All attacks through one entry point, several at a time: canaries first, then what each attack came to, whether the
next call was served, and what was reached, left running or changed on the host."""

import asyncio
import base64
import contextlib
import hashlib
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from agent0.infra.sandbox import rootfs
from agent0.ports.sandbox import Sandbox, SandboxCall
from agent0.tools.snapshots import kept
from tests.sandbox.attacks import Attack, Seen, faults
from tests.sandbox.processes import descendants

SECRET = "canary-3f1c9d"
VARIABLE = "CANARY_AGENT0_SECRET"
"""Of the environment; not one that settings are read from."""
PLANTED = "X01-plant-state"
WIDTH = 4


class Call(Protocol):
    """An entry point."""

    async def __call__(self, attack: Attack, after: Seen | None = None) -> Seen:
        """Run it, on the files that ``after`` left behind."""
        ...


HARMLESS = Attack("harmless", "python", "print(6 * 7)", frozenset({"ok"}), "42", 10.0, 512, 0, False, ())


def through_engine(sandbox: Sandbox) -> Call:
    """The port itself."""

    async def call(attack: Attack, after: Seen | None = None) -> Seen:
        files = kept(after.files)[0] if after else {}
        found = await sandbox.call(SandboxCall(attack.kind, attack.code, files, attack.wall, attack.mem))
        return Seen(found.state.value, found.rc, found.stdout, found.stderr, found.reason, found.files)

    return call


@dataclass
class Canaries:
    """A secret file that anybody may read, and listeners on TCP, on a path and on an abstract name."""

    folder: Path
    sockets: list[socket.socket]
    name: str

    @property
    def port(self) -> int:
        return int(self.sockets[0].getsockname()[1])

    def fill(self, code: str) -> str:
        """``code`` with the names of these canaries in it."""
        read = base64.b64encode(f"cat {self.folder}/secret.txt".encode()).decode()
        words = {"{FOLDER}": str(self.folder), "{PORT}": str(self.port), "{NAME}": self.name, "{READ64}": read}
        for word, text in words.items():
            code = code.replace(word, text)
        return code

    def hits(self) -> list[str]:
        """Listeners that were reached."""
        out = []
        for listener in self.sockets:
            with contextlib.suppress(BlockingIOError):
                listener.accept()[0].close()
                out.append(str(listener.getsockname()))
        return out


@contextmanager
def canaries() -> Iterator[Canaries]:
    """Planted where no sandbox covers them by chance (not in /tmp), open to every account; gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="agent0-canary-", dir="/var/tmp"))
    folder.chmod(0o755)
    folder.joinpath("secret.txt").write_text(SECRET)
    name = f"agent0-canary-{os.getpid()}"
    families = [(socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_UNIX, f"{folder}/listen.sock")]
    sockets: list[socket.socket] = []
    try:
        for family, address in [*families, (socket.AF_UNIX, f"\0{name}")]:
            sockets.append(socket.socket(family))
            sockets[-1].bind(address)
            sockets[-1].listen()
            sockets[-1].setblocking(False)
        folder.joinpath("listen.sock").chmod(0o777)
        yield Canaries(folder, sockets, name)
    finally:
        for listener in sockets:
            listener.close()
        shutil.rmtree(folder)


@dataclass(repr=False)
class Campaign:
    """What came of all attacks. ``hits`` are connections that reached a listener of the host. It has no text of its
    own: ``asyncio.run`` makes that of what it returns, and this would take it half a minute."""

    seen: dict[str, Seen] = field(default_factory=dict)
    next: dict[str, Seen] = field(default_factory=dict)
    hits: list[str] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)

    def faults(self, attack: Attack) -> list[str]:
        """What went wrong with ``attack``, in words."""
        served = (self.next[attack.id].state, self.next[attack.id].stdout)
        more = [] if served == ("ok", "42\n") else [f"the next call came to {self.next[attack.id]}"]
        return faults(attack, self.seen[attack.id], SECRET) + more

    @property
    def wounds(self) -> list[str]:
        """What was done to the host, in words."""
        out = [f"{hit} was reached" for hit in self.hits] + [f"{path} changed" for path in self.changed]
        return [*out, f"{len(self.left)} processes survived"] if self.left else out


async def run(
    call: Call, attacks: Sequence[Attack], canaries: Canaries, others: frozenset[int] = frozenset(), width: int = WIDTH
) -> Campaign:
    """Every attack by ``call``, ``width`` at once, each followed by a harmless call on the files it left behind.

    ``others``: processes below this one that have nothing to do with it.
    """
    campaign, before = Campaign(), digests()
    room = asyncio.Semaphore(width)

    async def one(attack: Attack) -> None:
        async with room:
            start = time.monotonic()
            seen = await call(replace(attack, code=canaries.fill(attack.code)))
            campaign.seen[attack.id] = replace(seen, took=time.monotonic() - start)
            campaign.next[attack.id] = await call(HARMLESS, seen)

    for planter in (a for a in attacks if a.id == PLANTED):  # the one that looks for it comes among the others
        await asyncio.gather(*(one(planter) for _ in range(width)))
    await asyncio.gather(*(one(a) for a in attacks if a.id != PLANTED))
    campaign.left = await _left(others, 2 * width)
    campaign.hits = canaries.hits()
    campaign.changed = [path for path, digest in digests().items() if before[path] != digest]
    return campaign


def digests() -> dict[str, str]:
    """Of the interpreter and of all that the sandbox is made of."""
    files = [path for path in rootfs.INSIDE.parent.rglob("*.py") if "__pycache__" not in path.parts]
    files += [Path(os.path.realpath(Path(sys.executable)))]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


async def _left(others: frozenset[int], children: int) -> list[int]:
    """Survivors below this process, without ``others``. At most ``sandbox processes`` sandbox processes may wait for a
    call, each with its two processes."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + 10
    while (found := _crowded(others, children)) and loop.time() < deadline:
        await asyncio.sleep(0.05)
    return found


def _crowded(others: frozenset[int], children: int) -> list[int]:
    ours = len(_namespaces(os.getpid()))
    groups: dict[str, list[int]] = {}
    for pid in descendants(os.getpid(), others):
        with contextlib.suppress(OSError):
            if len(_namespaces(pid)) >= ours + 2:  # bubblewrap has one of its own, each sandbox process one in that
                groups.setdefault(str(Path(f"/proc/{pid}/ns/pid").readlink()), []).append(pid)
    sizes = sorted(groups.values(), key=len)
    return [pid for group in sizes if len(group) > 2 for pid in group] + [
        pid for group in sizes[children:] for pid in group
    ]


def _namespaces(pid: int) -> list[str]:
    """Its numbers, outermost first."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1:] for line in lines if line.startswith("NSpid:"))
