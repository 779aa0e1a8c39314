"""The fork server: an interpreter that has imported every package, never runs a caller's code, and clones one fresh
sandbox process per request. It holds no secret and no descriptor of an earlier call."""

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
from collections.abc import Sequence

from . import kernel, seccomp, shim

PATIENCE_S = 5.0
"""How long the end of a sandbox process may take once it was asked to end."""
_SYMPY = (
    "import sympy as s; from sympy.parsing.sympy_parser import parse_expr; x = s.Symbol('x');"
    "e = parse_expr('sin(x)*x**2 + 1/3'); s.simplify(s.integrate(e, x) + s.diff(e, x));"
    "s.solve(s.Eq(x**2 - 3*x, 4), x); s.factor(s.expand((x + 1)**3)); str(s.latex(e)); s.N(s.sqrt(2))"
)
_NUMPY = "import numpy as n; n.linalg.inv(n.random.default_rng(0).random((50, 50)))"
_PYTEST = (
    "from importlib import import_module; from _pytest.config import default_plugins;"
    "[import_module('_pytest.' + name) for name in default_plugins]"
)
_WARM = {"sympy": _SYMPY, "numpy.random": _NUMPY, "pytest": _PYTEST}
"""What is done once after the import of a module."""


_UID = 64999
"""What root becomes for the fork server: no account has this number."""
_FIRST, _BITS = 0x70000000, 24
"""What it becomes for calls: one number of so many, for what the kernel counts by user would tell calls of another."""


def unused_user(proc: str = "/proc") -> int:
    """Return the number of a user that nobody else is; always the same one where this machine, or its container, has
    too few numbers."""
    with open(f"{proc}/self/uid_map", encoding="ascii") as file:  # noqa: PTH123
        ranges = [(int(first), int(count)) for first, _, count in map(str.split, file)]
    if any(first <= _FIRST and first + count >= _FIRST + (1 << _BITS) for first, count in ranges):
        return _FIRST + int.from_bytes(os.urandom(4), "little") % (1 << _BITS)
    return _UID


def drop_root(uid: int, *, saved: int | None = None) -> None:
    """Become an ordinary user, for good unless root is ``saved``, and one that ends with its parent. The kernel takes
    back the mark that lets /proc/self be written, and the tie to the parent, where the user changes."""
    if 0 in os.getresuid():
        os.setresuid(0, 0, 0)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid if saved is None else saved)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)


def main(control_fd: int, modules: str, *, guests: bool = False) -> None:
    """Serve until the host closes the control socket. The first word, before anything is imported: from now on this
    ends with its parent. ``guests``: most calls will have one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    control = socket.socket(fileno=control_fd)
    drop_root(_UID, saved=0)  # spawners have numbers of their own
    control.send(b"{}")
    gc.disable()  # what is imported stays: nobody needs to look it through meanwhile
    missed = _import(modules)
    seccomp.prepare()
    shim.has_own_proc()
    gc.collect()
    gc.freeze()
    control.send(json.dumps({"ready": not missed, "missed": missed}).encode())
    serve(control, guests=guests)


def _import(modules: str) -> dict[str, str]:
    """Module -> why it could not be imported."""
    missed = {}
    for name in filter(None, modules.split(",")):
        try:
            importlib.import_module(name)
            exec(_WARM.get(name, ""), {})  # noqa: S102 (our own constants: first use is what costs)
        except ImportError as error:
            missed[name] = str(error)
    return missed


def serve(control: socket.socket, *, guests: bool = False) -> None:
    """Answer ``nursery`` (fork a spawner, with a control socket of its own), ``group`` (descriptors of the control
    group it was put in) and ``spawn`` (clone a sandbox process) until the host closes. A spawner serves one call at a
    time, and all calls of it have one user."""
    group: list[int] = []
    server, last = os.getpid(), -1
    while True:
        request, fds, _, _ = socket.recv_fds(control, 16, 4)
        if request == b"spawn":
            if last >= 0 and os.getpid() != server:
                select.select([last], [], [], PATIENCE_S)  # what is counted next is one call's alone
            last = _spawn(control, group, last, guests=guests)
        elif request == b"group":
            group = fds
        elif request == b"nursery":
            control = _spawner(control)
        else:
            return


def _spawner(control: socket.socket) -> socket.socket:
    """The control socket to go on with: in the child, that of the spawner it now is."""
    host, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        drop_root(unused_user())
        for side in (control, host):
            side.close()
        return inner
    pidfd = os.pidfd_open(pid)
    socket.send_fds(control, [json.dumps({"pid": pid}).encode()], [pidfd, host.fileno()])
    for side in (host, inner):
        side.close()
    os.close(pidfd)
    return control


def _spawn(control: socket.socket, group: Sequence[int], last: int, *, guests: bool) -> int:
    """Clone one sandbox process; hand its descriptors to the host: pidfd, socket, standard output, standard error.
    Returns the pidfd."""
    ours = socket.socketpair()
    pipes = [*os.pipe2(os.O_CLOEXEC), *os.pipe2(os.O_CLOEXEC)]
    uid, gid = os.getuid(), os.getgid()
    host, inner = (side.detach() for side in ours)
    pidfd = -1
    try:
        pid, pidfd = kernel.clone_fresh()
        if pid == 0:
            for fd in (control.detach(), host, pipes[0], pipes[2], *([last] if last >= 0 else [])):
                os.close(fd)
            shim.run(inner, pipes[1], pipes[3], uid, gid, group=group, guests=guests)
        socket.send_fds(control, [json.dumps({"pid": pid}).encode()], [pidfd, host, pipes[0], pipes[2]])
    except OSError as error:
        control.send(json.dumps({"error": str(error)}).encode())
    finally:
        for fd in (host, inner, last, *pipes):
            with contextlib.suppress(OSError):
                os.close(fd)
    return pidfd
