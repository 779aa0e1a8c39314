"""The untrusted side: confines itself, says so, then reads code that nobody has read and runs it as its whole life."""

import _signal  # type: ignore[import-not-found]
import atexit
import builtins
import fcntl
import gc
import linecache
import os
import resource
import signal
import socket
import sys
import traceback
import types
from typing import NoReturn

from . import frames, kernel, landlock, seccomp

WORK = "/box"
CODE_FD, READY_FD = 3, 4
NAME = "main.py"
MIB = 1 << 20
ENVIRONMENT = {
    "HOME": WORK,
    "LANG": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",
    "PATH": "/usr/bin",
    "TMPDIR": "/tmp",  # noqa: S108 (a file system of this call alone)
}
PYTHON_ENVIRONMENT = {
    "LD_LIBRARY_PATH": "/opt/python/lib",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONHOME": "/opt/python",
    "PYTHONPATH": "/opt/site",
}
_LIMITS = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_FSIZE: 64 * MIB,
    resource.RLIMIT_NOFILE: 128,
    resource.RLIMIT_NPROC: 32,
    resource.RLIMIT_STACK: 8 * MIB,
    resource.RLIMIT_MEMLOCK: 0,
    resource.RLIMIT_MSGQUEUE: 0,
    resource.RLIMIT_SIGPENDING: 128,
}
_SIGNALS = sorted(
    int(number) for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP} if number < signal.SIGRTMIN
)
"""What is set back in each process, by number: as members of an enumeration they would lie on pages all over."""
_STAYS_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)


def confine(ready: int, closed: tuple[str, ...] = (), *, asks: bool = True) -> None:
    """Limits, no new privileges, no capabilities, Landlock, seccomp: in this order, for good. The listener of the
    filter that ``asks`` is sent to ``ready`` while anything can be. Where paths are ``closed`` nothing could be
    mounted, devices of the host neither: their times stay."""
    for kind, value in _LIMITS.items():
        resource.setrlimit(kind, (value, value))
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.drop_capabilities()
    landlock.restrict((WORK, "/tmp"), closed)  # noqa: S108
    listener = seccomp.listen() if asks else -1
    if listener >= 0:
        kernel.send_descriptor(ready, b"L", listener)
    seccomp.install(asks=listener >= 0, times=not closed)


def run(
    proc: int,
    stdin: int,
    stdout: int,
    stderr: int,
    code: int,
    ready: int,
    closed: tuple[str, ...] = (),
    *,
    asks: bool = True,
    anew: bool = False,
) -> NoReturn:
    """Never returns: exits as the code does. ``ready`` is a socket: silence on it means that confinement failed.
    ``proc`` is a descriptor of a /proc that can be written. ``asks``: somebody answers for its filter. ``anew``: the
    code runs in an interpreter that holds nothing of this one's memory."""
    os.setsid()
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # the shim may then measure it; its own kind may not trace it: seccomp
    with open(os.open("self/oom_score_adj", os.O_WRONLY, dir_fd=proc), "w") as score:  # noqa: PTH123
        score.write("1000")  # the first to go where memory is short
    for number in _SIGNALS:
        _signal.signal(number, _signal.SIG_DFL)
    code, ready = (fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in (code, ready))  # out of the way of what comes next
    for source, target in ((stdin, 0), (stdout, 1), (stderr, 2), (code, CODE_FD), (ready, READY_FD)):
        os.dup2(source, target)
    os.closerange(READY_FD + 1, os.sysconf("SC_OPEN_MAX"))
    os.chdir(WORK)
    try:
        confine(READY_FD, closed, asks=asks)
        os.write(READY_FD, b"R")
    except BaseException as error:
        os.write(READY_FD, f"{type(error).__name__}: {error}".encode()[:400])
        os._exit(1)
    os.close(READY_FD)
    if anew:
        arguments = ["-sBPc", "import sys; sys.path.insert(0, '/opt'); from inside.payload import obey; obey()"]
        os.execve(sys.executable, [sys.executable, *arguments], os.environ)  # noqa: S606
    obey()


def obey() -> NoReturn:
    """Read code, and perhaps what becomes standard input, from ``CODE_FD``; exit as the code does."""
    with socket.socket(fileno=CODE_FD) as source:
        _, fds, _, _ = socket.recv_fds(source, 1, 1)
        header, blobs = frames.read(CODE_FD)
    for fd in fds:
        os.dup2(fd, 0)
        os.close(fd)
    text = blobs[0]
    if header["kind"] == "shell":
        os.execve("/usr/bin/bash", ["bash", "--noprofile", "--norc", "-c", os.fsdecode(text)], ENVIRONMENT)  # noqa: S606
    os._exit(_run_python(text.decode(errors="replace")))


def _run_python(text: str) -> int:
    """The code as ``__main__`` of a fresh module, ended the way the interpreter ends a script."""
    os.environ.clear()
    os.environ.update({**ENVIRONMENT, **PYTHON_ENVIRONMENT})
    for number in _STAYS_IGNORED:
        _signal.signal(number, _signal.SIG_IGN)
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv, sys.path[:] = [NAME], [WORK, *(p for p in sys.path if p != "/opt")]
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=NAME, __builtins__=builtins)
    sys.modules["__main__"] = main
    _draw_anew()
    linecache.cache[NAME] = (len(text), None, [line + "\n" for line in text.splitlines()], NAME)
    gc.enable()
    return _finish(_execute(text, main))


def _draw_anew() -> None:
    """Every call has random numbers of its own, not the fork server's once more. ``random`` saw to that when it was
    forked; the hash seed stays what it is for every call (0), so that the order of a set is the same in each."""
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed(int.from_bytes(os.urandom(4), "little"))


def _execute(text: str, main: types.ModuleType) -> int:
    try:
        exec(compile(text, NAME, "exec", dont_inherit=True), main.__dict__)  # noqa: S102 (the purpose of this room)
    except SystemExit as stop:
        if isinstance(stop.code, int):
            return stop.code & 0xFF
        if stop.code is not None:
            print(stop.code, file=sys.stderr)  # noqa: T201
        return 0 if stop.code is None else 1
    except BaseException as error:
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # not our own frame
        traceback.print_exception(error)
        return 1
    return 0


def _finish(status: int) -> int:
    """Wait for threads, run exit functions, flush: what Py_Finalize does, without tearing a shared image down."""
    try:
        if "threading" in sys.modules:  # not imported ahead: all that fork would tidy up after it
            sys.modules["threading"]._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return status or 1
    return status
