"""Pid 1 of a hardened container that serves many calls at once. It reads requests from standard input, has a fork
server clone one fresh sandbox process for each, and writes answers to standard output. It ends when its input ends
or a fork server dies."""

import asyncio
import json
import os
import socket
import sys
from typing import NoReturn

from . import asking, calling, fork_server, kernel
from .asking import ImageRoot, Message, NumberedRequest, closed, differing, forget
from .calling import SandboxProcess, SandboxProcessError

SERVERS = 4
"""Each of another root; one more takes the place of the one that was used least recently."""
_NULL = asyncio.subprocess.DEVNULL
START_S, SPAWN_S = 60.0, 20.0
_START = "import sys; sys.path.insert(0, '/opt'); from inside.broker import ancestor; ancestor({}, {!r})"


def main() -> NoReturn:
    """Serve requests from standard input until it closes, then exit."""
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # sandbox processes have the same user
    try:
        asyncio.run(_SandboxBroker().serve())
    finally:
        os._exit(0)


def ancestor(control_fd: int, root: ImageRoot) -> None:
    """Run a fork server whose sandbox processes see what ``root`` names and nothing else. The rest is covered in a
    mount namespace above theirs, where none of them can uncover it."""
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
    fork_server.main(control_fd, ",".join(root["preloaded"]))


class _ForkServer:
    """One fork server and its control socket; it clones one sandbox process at a time."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        self.process, self._control = process, control
        self._turn = asyncio.Lock()
        self.busy = 0

    @classmethod
    async def start(cls, root: ImageRoot) -> "_ForkServer":
        if why := differing(root["versions"]):
            raise SandboxProcessError(why)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            arguments = ["-sBPc", _START.format(theirs.fileno(), root)]
            process = await asyncio.create_subprocess_exec(
                sys.executable, *arguments, pass_fds=[theirs.fileno()], stdin=_NULL, stdout=_NULL
            )
        server = cls(process, ours)
        await calling.fork_answer(ours, START_S)  # it is there
        message, _ = await calling.fork_answer(ours, START_S)  # and has imported everything
        if not message.get("ready"):
            raise SandboxProcessError(f"the fork server misses {message.get('missed')}")
        return server

    async def child(self) -> SandboxProcess:
        async with self._turn:
            await asyncio.get_running_loop().sock_sendall(self._control, b"spawn")
            message, fds = await calling.fork_answer(self._control, SPAWN_S)
        if len(fds) != 4:
            raise SandboxProcessError(str(message.get("error", "malformed answer")))
        sock = socket.socket(fileno=fds[1])
        sock.setblocking(False)
        return SandboxProcess(fds[0], sock, fds[2], fds[3])

    async def close(self) -> None:
        self._control.close()
        self.process.kill()
        await self.process.wait()


class _SandboxBroker:
    def __init__(self) -> None:
        self._servers: dict[str, asyncio.Task[_ForkServer]] = {}
        self._calls: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        self._answers = os.dup(1)
        os.dup2(2, 1)

    async def serve(self) -> None:
        """Until the input ends."""
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=1 << 20)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(0), "rb"))
        await self._say(asking.greeting())
        while True:
            header, blobs = await calling.receive(reader)
            task = asyncio.create_task(self._serve(asking.call(header, blobs)))
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)

    async def _serve(self, call: NumberedRequest) -> None:
        try:
            server = await self._server(call.root)
        except (SandboxProcessError, OSError) as error:
            await self._say(asking.failed(call.id, f"{type(error).__name__}: {error}"))
            return
        server.busy += 1
        try:
            child = await server.child()
            try:
                message = asking.answered(call.id, await calling.run(child, call.request))
            finally:
                child.release()
        except SandboxProcessError as error:
            message = asking.failed(call.id, str(error))
        finally:
            server.busy -= 1
        await self._say(message)

    async def _server(self, root: ImageRoot) -> _ForkServer:
        key = json.dumps(root)
        task = self._servers.pop(key, None)
        if task is None:
            await self._make_room()
            task = asyncio.create_task(_ForkServer.start(root))
        self._servers[key] = task  # last: used most recently
        return await asyncio.shield(task)

    async def _make_room(self) -> None:
        for key, task in list(self._servers.items())[: max(0, len(self._servers) + 1 - SERVERS)]:
            if task.done() and not task.exception() and not task.result().busy:
                del self._servers[key]
                await task.result().close()

    async def _say(self, message: Message) -> None:
        """Whole messages, one after the other, however slowly the other end reads."""
        async with self._turn:
            await asyncio.to_thread(asking.say, self._answers, *message)
