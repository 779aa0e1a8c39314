"""The warm ancestor: an interpreter that has imported everything, never runs anybody's code, and clones one fresh
world per request. It holds no secret, and no descriptor of an earlier call."""

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys

from . import kernel, shim

_WARM = (
    "import sympy as s; from sympy.parsing.sympy_parser import parse_expr; x = s.Symbol('x');"
    "e = parse_expr('sin(x)*x**2 + 1/3'); s.simplify(s.integrate(e, x) + s.diff(e, x));"
    "s.solve(s.Eq(x**2 - 3*x, 4), x); s.factor(s.expand((x + 1)**3)); str(s.latex(e)); s.N(s.sqrt(2));"
    "import numpy as n; n.linalg.inv(n.random.default_rng(0).random((50, 50)))"
)


def drop_root(uid: int) -> None:
    """Become an ordinary user for good. The kernel then takes back the mark that lets /proc/self be written."""
    if os.getuid() != 0:
        return
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)


def main(control_fd: int, uid: int, modules: str) -> None:
    """Serve until the host closes the control socket."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    control = socket.socket(fileno=control_fd)
    drop_root(uid)
    for name in filter(None, modules.split(",")):
        importlib.import_module(name)
    if "sympy" in sys.modules and "numpy" in sys.modules:
        exec(_WARM, {})  # noqa: S102 (our own constant: first use of sympy is what costs)
    gc.collect()
    gc.disable()
    gc.freeze()
    control.send(json.dumps({"ready": True}).encode())
    while control.recv(16):
        _spawn(control)


def _spawn(control: socket.socket) -> None:
    """Clone one world; hand its descriptors to the host: pidfd, socket, standard output, standard error."""
    ours = socket.socketpair()
    pipes = [*os.pipe2(os.O_CLOEXEC), *os.pipe2(os.O_CLOEXEC)]
    uid, gid = os.getuid(), os.getgid()
    host, inner = (side.detach() for side in ours)
    pidfd = -1
    try:
        pid, pidfd = kernel.clone_fresh()
        if pid == 0:
            for fd in (control.detach(), host, pipes[0], pipes[2]):
                os.close(fd)
            shim.run(inner, pipes[1], pipes[3], uid, gid)
        socket.send_fds(control, [json.dumps({"pid": pid}).encode()], [pidfd, host, pipes[0], pipes[2]])
    except OSError as error:
        control.send(json.dumps({"error": str(error)}).encode())
    finally:
        for fd in (host, inner, pidfd, *pipes):
            with contextlib.suppress(OSError):
                os.close(fd)
