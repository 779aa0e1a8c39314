"""Owners of sandboxes that are ended, or stop wanting, while what they started is still starting: a program of its own,
which whatever they leave behind comes to.

    python -m tests.sandbox.orphans SEED TRIALS

Prints what was left, by trial, as JSON.
"""

import asyncio
import ctypes
import json
import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from agent0.infra.sandbox import rootfs
from agent0.infra.sandbox.backends.cold import ColdBubblewrap
from agent0.infra.sandbox.backends.fork_server import ForkServer
from agent0.ports.sandbox import SandboxCall
from agent0.settings import SandboxSettings
from tests.sandbox.opened import LEAN
from tests.sandbox.processes import descendants

PR_SET_CHILD_SUBREAPER = 36
PATIENCE_S = 20.0
LATEST_S = 0.06
"""A start takes about as long."""
CALL = SandboxCall("python", "print(1)", root=LEAN)


async def _server() -> None:
    server = await ForkServer.start(LEAN, 1)
    await server.close()


async def _cold() -> None:
    sandbox = ColdBubblewrap(SandboxSettings(), root=LEAN)
    try:
        await sandbox.execute(CALL)
    finally:
        await sandbox.close()


async def _start(said: int) -> None:
    """Again and again, several at a time."""
    await rootfs.command(LEAN)

    async def client(kind: object) -> None:
        while True:
            await (_server() if kind is _server else _cold())

    os.write(said, b"x")
    await asyncio.gather(*(client(kind) for kind in (_server, _server, _cold, _cold)))


async def _cancel(draw: random.Random) -> None:
    """Start several, and stop wanting each at another moment."""
    starting = [asyncio.create_task(kind()) for kind in (_server, _cold) * 4]
    for task in draw.sample(starting, len(starting)):
        await asyncio.sleep(draw.uniform(0, LATEST_S / 4))
        task.cancel()
    await asyncio.gather(*starting, return_exceptions=True)


def _owner(said: int, draw: random.Random, how: str) -> None:
    os.setpgid(0, 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # of what it complains while it is ended
    asyncio.run(_cancel(draw) if how == "cancelled" else _start(said))


def _end(pid: int, draw: random.Random, how: str) -> None:
    time.sleep(draw.uniform(0, LATEST_S))
    if how == "killed":
        os.kill(pid, signal.SIGKILL)
    else:
        os.killpg(pid, signal.SIGTERM)  # as ``timeout`` does, and the terminal with Ctrl-C


def _left() -> list[str]:
    """Whoever is still there after a while, and what it is; the owner, too."""
    deadline = time.monotonic() + PATIENCE_S
    while (pids := descendants(os.getpid())) and time.monotonic() < deadline:
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        time.sleep(0.002)
    out = []
    for pid in pids:
        with suppress(OSError):
            out.append(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")[:60])
            os.kill(pid, signal.SIGKILL)
    return out


def trial(draw: random.Random, how: str) -> list[str]:
    """What one owner leaves behind that is ended like this."""
    heard, said = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _owner(said, draw, how)
        finally:
            os._exit(0)
    os.close(said)
    if how != "cancelled":
        os.read(heard, 1)
        _end(pid, draw, how)
    os.close(heard)
    return _left()


def main() -> None:
    """All trials."""
    seed, trials = map(int, sys.argv[1:])
    draw = random.Random(seed)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    asyncio.run(rootfs.command(LEAN))  # what the loader says is known from now on
    ways = ("killed", "terminated", "cancelled")
    found = [trial(draw, ways[number % 3]) for number in range(trials)]
    sys.stdout.write(json.dumps([left for left in found if left]))


if __name__ == "__main__":
    main()
