"""Pid 1 of a hardened container that serves many calls at once: it reads requests from standard input, has a zygote
clone one fresh world for each, and writes answers to standard output. It ends when its input does, or a zygote."""

import asyncio
import json
import os
import socket
import sys
from typing import Any, NoReturn

from . import asking, calling, kernel, zygote
from .calling import World, WorldError
from .masking import closed, forget, inventory

ZYGOTES = 4
"""Each of another root; one more takes the place of the one that was used least recently."""
_NULL = asyncio.subprocess.DEVNULL
START_S, SPAWN_S = 60.0, 20.0
_START = "import sys; sys.path.insert(0, '/opt'); from inside.broker import ancestor; ancestor({}, {!r})"


def main() -> NoReturn:
    """Serve until standard input closes."""
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # worlds have the same user
    try:
        asyncio.run(_Broker().serve())
    finally:
        os._exit(0)


def ancestor(control_fd: int, root: dict[str, list[str]]) -> None:
    """A zygote whose worlds see what ``root`` names and nothing else: the rest is covered in a mount namespace above
    theirs, where none of them can uncover it."""
    uid, gid = os.getuid(), os.getgid()
    kernel.unshare(kernel.NEW_USER | kernel.NEW_MOUNT)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
            file.write(text)
    kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    for path in closed(root["executables"], root["modules"]):
        kernel.hide(path)
    kernel.drop_capabilities()
    forget(root["modules"])
    zygote.main(control_fd, uid, ",".join(root["preloaded"]))


class _Zygote:
    """One zygote and its control socket; it clones one world at a time."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        self.process, self._control = process, control
        self._turn = asyncio.Lock()
        self.busy = 0

    @classmethod
    async def start(cls, root: dict[str, list[str]]) -> "_Zygote":
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            words = ["-sBPc", _START.format(theirs.fileno(), root)]
            process = await asyncio.create_subprocess_exec(
                sys.executable, *words, pass_fds=[theirs.fileno()], stdin=_NULL, stdout=_NULL
            )
        made = cls(process, ours)
        await made._receive(START_S)  # it is there
        said, _ = await made._receive(START_S)  # and has imported everything
        if not said.get("ready"):
            raise WorldError(f"the zygote misses {said.get('missed')}")
        return made

    async def world(self) -> World:
        async with self._turn:
            await asyncio.get_running_loop().sock_sendall(self._control, b"spawn")
            said, fds = await self._receive(SPAWN_S)
        if len(fds) != 4:
            raise WorldError(str(said.get("error", "malformed answer")))
        sock = socket.socket(fileno=fds[1])
        sock.setblocking(False)
        return World(fds[0], sock, fds[2], fds[3])

    async def _receive(self, timeout: float) -> tuple[dict[str, Any], list[int]]:
        async with asyncio.timeout(timeout):
            await calling.readable(self._control.fileno())
        data, fds, _, _ = socket.recv_fds(self._control, 4096, 4)
        if not data:
            raise WorldError("the zygote is gone")
        for fd in fds:
            os.set_inheritable(fd, False)
        said: dict[str, Any] = json.loads(data)
        return said, list(fds)

    async def close(self) -> None:
        self._control.close()
        self.process.kill()
        await self.process.wait()


class _Broker:
    def __init__(self) -> None:
        self._zygotes: dict[str, asyncio.Task[_Zygote]] = {}
        self._calls: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        self._answers = os.dup(1)
        os.dup2(2, 1)

    async def serve(self) -> None:
        """Until the input ends."""
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=1 << 20)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(0), "rb"))
        await self._say({"ready": True, "version": asking.version(), **inventory()}, [])
        while True:
            header, blobs = await calling.receive(reader)
            call = asyncio.create_task(self._serve(header, blobs))
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)

    async def _serve(self, header: dict[str, Any], blobs: list[bytes]) -> None:
        request = asking.request(header, blobs)
        try:
            zygote = await self._zygote(header["root"])
        except (WorldError, OSError) as error:
            await self._say(*asking.failed(header["id"], f"{type(error).__name__}: {error}"))
            return
        zygote.busy += 1
        try:
            world = await zygote.world()
            try:
                message = asking.answered(header["id"], await calling.run(world, request))
            finally:
                world.release()
        except WorldError as error:
            message = asking.failed(header["id"], str(error))
        finally:
            zygote.busy -= 1
        await self._say(*message)

    async def _zygote(self, root: dict[str, list[str]]) -> _Zygote:
        key = json.dumps(root)
        task = self._zygotes.pop(key, None)
        if task is None:
            await self._make_room()
            task = asyncio.create_task(_Zygote.start(root))
        self._zygotes[key] = task  # last: used most recently
        return await asyncio.shield(task)

    async def _make_room(self) -> None:
        for key, task in list(self._zygotes.items())[: max(0, len(self._zygotes) + 1 - ZYGOTES)]:
            if task.done() and not task.exception() and not task.result().busy:
                del self._zygotes[key]
                await task.result().close()

    async def _say(self, header: dict[str, Any], blobs: list[bytes]) -> None:
        """Whole messages, one after the other, however slowly the other end reads."""
        async with self._turn:
            await asyncio.to_thread(asking.say, self._answers, header, blobs)
