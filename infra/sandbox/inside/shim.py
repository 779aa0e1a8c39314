"""Pid 1 of one call: trusted code between the host and the payload. It builds the call's sandbox process, watches it,
and reports on it when everything else in it is dead. Its own end takes the namespaces with it."""

import contextlib
import errno
import functools
import os
import resource
import select
import signal
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from . import frames, kernel, landlock, payload
from .harvest import Harvest
from .locking import Locks
from .memory import ControlGroup, Watchdog

TICK_S = 0.025
GRACE_S = 0.2
ID = 65534
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx")
_HIDDEN = kernel.MS_NOSUID | kernel.MS_NODEV
_OOM_SCORE = "500"
"""Where memory is short, the payload goes first (it says 1000), then who watches over it, and the fork server last."""


@dataclass
class PayloadEnd:
    """How the payload ended. ``status`` is a wait status, ``ended`` why the shim ended it (empty: on its own)."""

    status: int = 0
    ended: str = ""
    wall_s: float = 0.0


@dataclass(frozen=True)
class CallLimits:
    """The kind of a call, the seconds and the MiB that it may take."""

    kind: str
    wall_s: float
    mem_mib: int


def run(
    sock: int, stdout: int, stderr: int, uid: int, gid: int, group: Sequence[int] = (), *, guests: bool = False
) -> NoReturn:
    """Serve one call as its pid 1; never returns. Any error during set-up is reported to the host, which then
    refuses the call. ``group``: descriptors of the control group that this process and its call have to themselves,
    empty where there is none. ``guests``: the call will most likely have one, so its process is made ahead, too."""
    _work(sock, stdout, stderr, (), group, lambda: _build(uid, gid), guests=guests)
    os._exit(0)


def adopt(sock: int, stdout: int, stderr: int, proc: str, hidden: tuple[str, ...]) -> None:
    """``run`` for a pid 1 whose namespaces and mounts were made from outside, with a ``proc`` for this call alone.
    Nothing can be mounted here, so it is Landlock that closes the paths ``hidden``. Returns after the report."""
    _work(sock, stdout, stderr, (proc, *hidden), (), lambda: _settle(proc))


def _work(
    sock: int,
    stdout: int,
    stderr: int,
    closed: tuple[str, ...],
    group: Sequence[int],
    build: Callable[[], int],
    *,
    guests: bool = False,
) -> None:
    try:
        proc = build()
        child, code, listener = _fork_payload(proc, stdout, stderr, closed)
        locks = Locks(listener, proc, (payload.WORK, "/tmp")) if listener >= 0 else None  # noqa: S108
        for fd in (stdout, stderr):
            os.close(fd)
        ahead = _fork_guest(proc, closed) if guests else None
    except BaseException as error:
        frames.write(sock, frames.pack({"error": f"{type(error).__name__}: {error}"}))
        return
    frames.write(sock, frames.pack({"ready": True}))
    with contextlib.suppress(EOFError, OSError):
        header, (guest,) = frames.read(sock)
        limits = CallLimits(header["kind"], header["wall_s"], header["mem_mib"])
        try:
            peer = _start_guest(ahead or _fork_guest(proc, closed), limits, guest) if guest else _no_guest(ahead)
            text = _receive(sock, limits, may_mount=not closed)
        except (OSError, ValueError, RuntimeError) as error:  # what an earlier call left behind may not fit here
            frames.write(sock, frames.pack({"refused": f"it cannot be set up: {error}"[:400]}))
            return
        memory = _bound(limits.mem_mib << 20, proc, group)
        _serve(sock, limits, text, (memory, locks), child, code, peer)


def _bound(limit: int, proc: int, group: Sequence[int]) -> ControlGroup | Watchdog:
    if group:
        return ControlGroup(group, limit)
    return Watchdog(proc, int(os.readlink("self", dir_fd=proc)), limit >> 10)


def _settle(path: str) -> int:
    """As little as there is left to do. Returns what ``_build`` does."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _write(f"{path}/self/oom_score_adj", _OOM_SCORE)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _build(uid: int, gid: int) -> int:
    """Identity and mounts. Returns a descriptor of the outer /proc, the one place that shows the payload's memory."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _identify(uid, gid)
    _write("/proc/self/oom_score_adj", _OOM_SCORE)
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", payload.WORK, "tmpfs", _HIDDEN, "size=64m,nr_inodes=2048,mode=0700")
    kernel.mount("tmpfs", "/tmp", "tmpfs", _HIDDEN, "size=16m,nr_inodes=512,mode=0700")  # noqa: S108
    if os.path.isdir("/dev/shm"):  # noqa: S108, PTH112
        _cover("/dev/shm")  # noqa: S108
    for name in DEVICES:
        if os.path.exists(f"/dev/{name}"):  # noqa: PTH110
            kernel.keep_times(f"/dev/{name}")
    if has_own_proc():
        _mount_proc()
    else:
        _cover("/proc")  # the kernel finds a new one too revealing here; none is as good
    return proc


def _identify(uid: int, gid: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{ID} {uid} 1"), ("gid_map", f"{ID} {gid} 1")):
        _write(f"/proc/self/{name}", text)


def _mount_proc() -> None:
    kernel.mount("proc", "/proc", "proc", _HIDDEN | kernel.MS_RDONLY, "subset=pid,hidepid=invisible")


@functools.cache
def has_own_proc() -> bool:
    """Return whether sandbox processes may mount a /proc of their own, which one of them finds out for all: each that
    tries in vain has a line in the kernel's log. False where there are no such processes."""
    out, into = os.pipe()
    try:
        pid, pidfd = kernel.clone_fresh()
    except OSError:
        pid = pidfd = -1
    if pid == 0:
        try:
            _identify(os.geteuid(), os.getegid())
            _mount_proc()
            os.write(into, b"1")
        finally:
            os._exit(0)
    os.close(into)
    may = os.read(out, 1) == b"1"
    for fd in (out, *([pidfd] if pidfd >= 0 else [])):
        os.close(fd)
    return may


def _cover(path: str) -> None:
    """An empty read-only file system over ``path``."""
    kernel.mount("tmpfs", path, "tmpfs", _HIDDEN | kernel.MS_RDONLY, "size=4k,mode=0755")


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _fork_payload(proc: int, stdout: int, stderr: int, closed: tuple[str, ...], **how: bool) -> tuple[int, int, int]:
    """(pid, socket to write the code to, listener of its filter or -1) of a payload that is confined and waits for
    code."""
    code_out, code_in, ready_out, ready_in = (side.detach() for _ in range(2) for side in socket.socketpair())
    pid = os.fork()
    if pid == 0:
        try:
            stdin = os.open("/dev/null", os.O_RDONLY)
            payload.run(proc, stdin, stdout, stderr, code_out, ready_in, closed, **how)
        finally:
            os._exit(1)
    os.close(code_out)
    os.close(ready_in)
    with socket.socket(fileno=ready_out) as ready:
        greeting, fds, _, _ = socket.recv_fds(ready, 512, 1)
        greeting = ready.recv(512) if fds else greeting
    if greeting != b"R":
        raise RuntimeError(f"the payload could not confine itself: {greeting.decode(errors='replace')}")
    return pid, code_in, fds[0] if fds else -1


def _fork_guest(proc: int, closed: tuple[str, ...]) -> tuple[int, int]:
    """(pid, socket to write the code to) of a guest that waits. It is made before the call's own code is read, for a
    fork has all memory there is. Landlock then keeps it from what the call will hold."""
    if not landlock.abi():
        raise OSError(errno.ENOSYS, "this kernel has no Landlock, which keeps a guest from the memory of others")
    null = os.open("/dev/null", os.O_WRONLY)
    child, channel, _ = _fork_payload(proc, null, null, closed, asks=False, anew=bool(closed))
    os.close(null)
    return child, channel


def _start_guest(guest: tuple[int, int], limits: CallLimits, code: bytes) -> int:
    """Give the guest its code. Returns the call's end of the socket between both."""
    child, channel = guest
    ours, theirs = (side.detach() for side in socket.socketpair())
    _limit(child, limits)
    _send_code(channel, limits.kind, code, theirs)
    os.close(channel)
    return ours


def _no_guest(ahead: tuple[int, int] | None) -> int:
    """End a guest that was made ahead of a call which has none."""
    if ahead is not None:
        os.kill(ahead[0], signal.SIGKILL)
        os.waitpid(ahead[0], 0)
        os.close(ahead[1])
    return -1


def _limit(child: int, limits: CallLimits) -> None:
    resource.prlimit(child, resource.RLIMIT_AS, ((limits.mem_mib << 20) + (1 << 30),) * 2)
    resource.prlimit(child, resource.RLIMIT_CPU, (int(limits.wall_s) + 2,) * 2)


def _send_code(channel: int, kind: str, code: bytes, stdin: int) -> None:
    """Send a payload its ``code``, and ``stdin``, which is closed here, unless it is -1."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may be dead already
        kernel.send_descriptor(channel, b"S", stdin)
        frames.write(channel, frames.pack({"kind": kind}, [code]))


def _receive(sock: int, limits: CallLimits, *, may_mount: bool) -> bytes:
    """The code of the call, its files laid out. Nothing of them is kept here: that would be the call's memory."""
    header, blobs = frames.read(sock)
    if limits.kind == "shell" and may_mount:
        for path in ("/opt/python", "/opt/site"):
            _cover(path)  # the shell has the executables of the allowlist and no interpreter
    for name, data in zip(header["files"], blobs[1:], strict=True):
        _stage(name, data)
    return blobs[0]


def _serve(
    sock: int,
    limits: CallLimits,
    text: bytes,
    watch: tuple[ControlGroup | Watchdog, Locks | None],
    child: int,
    code: int,
    peer: int,
) -> None:
    memory, locks = watch
    _limit(child, limits)
    start = time.monotonic()
    _send_code(code, limits.kind, text, os.dup(peer) if peer >= 0 else -1)
    os.close(code)  # of the socket to a guest one end stays here: it has nothing to do any more when the call ends
    outcome = _watch(memory, child, start, limits.wall_s, sock, locks)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = {
        "ended": outcome.ended,
        "rc": os.waitstatus_to_exitcode(outcome.status),
        "wall_s": outcome.wall_s,
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_kib": memory.end(used.ru_maxrss),
        "tier": memory.tier,
    }
    harvest = Harvest()
    frames.write(sock, frames.pack({**report, "files": harvest.names, "lost": harvest.lost}, harvest.contents))


def _stage(name: str, data: bytes) -> None:
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{name!r} is no path inside the work folder")
    folder = "/".join([payload.WORK, *parts[:-1]])
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    fd = os.open(f"{folder}/{parts[-1]}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        frames.write(fd, data)
    finally:
        os.close(fd)


def _watch(
    memory: ControlGroup | Watchdog, child: int, start: float, wall_s: float, host: int, locks: Locks | None
) -> PayloadEnd:
    """Wait for the payload's end or bring it about; then end all it left behind. The ``host``, who reads its output,
    has one thing to say: that it is too much. Questions about ``locks`` are answered meanwhile."""
    outcome, deadline = PayloadEnd(), start + wall_s
    poll = select.poll()
    for fd in (os.pidfd_open(child), host):
        poll.register(fd, select.POLLIN)
    if locks:
        poll.register(locks.listener, select.POLLIN)
    while not _reap(child, outcome):
        left = deadline - time.monotonic()
        events = _wait(poll, min(TICK_S, max(left, 0)), locks)
        if outcome.ended != "memory" and memory.broken():
            outcome.ended = "memory"
            _kill_all(signal.SIGKILL)
        elif host in events:
            poll.unregister(host)
            outcome.ended = outcome.ended or "output_flood"
            _kill_all(signal.SIGKILL)
        elif left <= 0:
            _kill_all(signal.SIGKILL if outcome.ended else signal.SIGTERM)
            outcome.ended, deadline = outcome.ended or "timeout", time.monotonic() + GRACE_S
    outcome.wall_s = time.monotonic() - start
    _end_everything()
    if memory.broke():
        outcome.ended = "memory"
    return outcome


def _wait(poll: select.poll, seconds: float, locks: Locks | None) -> dict[int, int]:
    """What happened within that time beside questions about ``locks``, which are answered; waits end before. Where no
    process is left there will be none."""
    if locks:
        locks.end_waits()
    end = time.monotonic() + seconds
    while True:
        events = dict(poll.poll(max(0, -int((time.monotonic() - end) * 1000 // 1))))  # whole milliseconds, rounded up
        question = events.pop(locks.listener, 0) if locks else 0
        if locks and question & select.POLLIN:
            locks.answer()
        elif locks and question:
            poll.unregister(locks.listener)
        if events or not question or time.monotonic() >= end:
            return events


def _reap(child: int, outcome: PayloadEnd) -> bool:
    """Collect what has ended. True once the payload itself has."""
    for _ in range(256):
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            return False
        if pid == child:
            outcome.status = status
            return True
    return False  # who makes orphans faster than they are collected gains nothing by it


def _kill_all(number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, number)


def _end_everything() -> None:
    """Pid 1's SIGKILL to all reaches whatever called setsid or forked twice; then wait for each."""
    while True:
        _kill_all(signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
