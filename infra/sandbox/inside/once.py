"""Pid 1 of a container that serves one call and ends: namespaces, mounts and limits of the container were made from
outside. It is the shim of its payload and the one who reads its outputs, for the payload can end any process but pid 1.
"""

import _thread
import asyncio
import contextlib
import os
import select
import signal
import socket
from typing import Any, NoReturn

from . import asking, calling, fork_server, frames, shim
from .asking import NumberedRequest, closed, differing, forget
from .calling import Ended, Request, SandboxProcess, SandboxProcessError

MAX_INODES = 2600
"""Of work folder and /tmp together: their size bounds what is in files, not how many there are."""
_TICK_S = 0.05


class _Own(SandboxProcess):
    """The sandbox process of this container, seen from its pid 1."""

    def kill(self) -> None:
        """Kill everything but this process."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)


def main(proc: str) -> NoReturn:
    """Serve one call with what is at ``proc`` to look at processes. Root becomes another user first, for each
    call another; anybody else stays who they are."""
    fork_server.drop_root(fork_server.unused_user(proc))
    requests, answers = os.dup(0), os.dup(1)
    for fd in (0, 1):
        os.dup2(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC), fd)
    asking.say(answers, *asking.greeting())
    call = asking.call(*frames.read(requests))
    if why := differing(call.root["versions"]):
        asking.say(answers, *asking.failed(call.id, why))
        os._exit(0)
    ours, theirs = socket.socketpair()
    out, out_end = os.pipe2(os.O_CLOEXEC)
    err, err_end = os.pipe2(os.O_CLOEXEC)
    child = _Own(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), ours, out, err)
    done = _thread.allocate_lock()
    done.acquire()
    _thread.start_new_thread(_relay, (child, call, (requests, answers), done))
    root, kind = call.root, call.request.kind
    del call  # the payload, a fork of this thread, needs nothing of it
    hidden = closed(root["executables"], root["modules"])
    forget(root["modules"])
    shim.adopt(theirs.fileno(), out_end, err_end, proc, (*hidden, *(["/opt"] if kind == "shell" else [])))
    theirs.close()
    done.acquire()
    os._exit(0)


def _relay(child: SandboxProcess, call: NumberedRequest, host: tuple[int, int], done: Any) -> None:
    """Speaks with the shim, which is the main thread. It holds no lock of the interpreter before the payload, which is
    a fork of that thread, is ready."""
    select.select([child.sock], [], [])
    try:
        message = asking.answered(call.id, asyncio.run(_run(child, call.request, host[0])))
    except SandboxProcessError as error:
        message = asking.failed(call.id, str(error))
    except BaseException:
        os._exit(1)
    asking.say(host[1], *message)
    done.release()


async def _run(child: SandboxProcess, request: Request, host: int) -> Ended:
    """``host``: where the request came from. Nothing more comes; what can be read there is its end."""
    asyncio.get_running_loop().add_reader(host, os._exit, 1)
    child.sock.setblocking(False)
    crowded: list[bool] = []
    watching = asyncio.create_task(_count(child, crowded))
    ended = await calling.run(child, request)
    watching.cancel()
    if crowded:
        ended.ended, ended.rc, ended.note = "memory", None, f"more than {MAX_INODES} files"
    return ended


async def _count(child: SandboxProcess, crowded: list[bool]) -> None:
    while not crowded:
        await asyncio.sleep(_TICK_S)
        used = [os.statvfs(path) for path in ("/box", "/tmp")]  # noqa: S108
        if sum(usage.f_files - usage.f_ffree for usage in used) > MAX_INODES:
            crowded.append(True)
            child.kill()
