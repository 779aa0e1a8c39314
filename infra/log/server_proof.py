"""Which process answers on the port of an embedded log: asked of the very connection, before anything is sent over it.

A name, a port and a greeting can be copied. The other end's socket can not: the kernel says which process holds it, and
the log's server is the one that also holds the folder's lock.
"""

import contextlib
import errno
import json
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Address = tuple[str, int]
_LISTENS = "0A"
_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _HEADER, _ANY = 4, 20, 16, 0xFFFFFFFF
"""Of linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h, which Python does not name."""
_CONNECTIONS = Path("/proc/net/tcp")


@dataclass(frozen=True)
class _Socket:
    """A line of the kernel's table of IPv4 connections. ``inode`` is 0 until a process has accepted it."""

    local: str
    remote: str
    state: str
    uid: int
    inode: int


def asked_name(folder: Path, port: int) -> str:
    """The name that the server of ``folder`` gives on ``port``; empty where nothing answers, or another program."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as link, link.makefile("rb") as lines:
            greeting = lines.readline(65536)
            if foreign_listener(folder, link.getsockname(), link.getpeername()):
                return ""
        return str(json.loads(greeting.removeprefix(b"INFO "))["server_name"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def greets(folder: Path) -> bool:
    """Whether the server of ``folder``, which is said to run, answers now: one that hangs or is starting does not."""
    try:
        port = int(json.loads((folder / "server.json").read_text())["port"])
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return bool(asked_name(folder, port))


def foreign_listener(folder: Path, ours: Address, theirs: Address) -> str:
    """Name the program at the other end of the connection from ``ours`` to ``theirs``; empty where it is the server
    of ``folder``. That end must have been accepted: call this after its greeting has come."""
    pid, peer = running_pid(folder), _connected(theirs, ours)
    if peer and pid and _is_server(pid, folder, peer.inode):
        return ""
    port = f":{theirs[1]:04X}"
    listeners = (entry for entry in _sockets(_LISTENS) if entry.state == _LISTENS and entry.local.endswith(port))
    return _holder(peer or next(listeners, None))


def running_pid(folder: Path) -> int:
    """The pid in the pid file if that process lives, else 0."""
    try:
        pid = int((folder / "server.pid").read_text())
    except (OSError, ValueError):
        return 0
    return pid if alive(pid) else 0


def alive(pid: int) -> bool:
    """Whether ``pid`` is a live nats-server (a number may be used again). A dead child of ours is reaped."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return False
    if rest.split()[0] != "Z":
        return name.startswith("nats-server")
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    return False


def _is_server(pid: int, folder: Path, inode: int) -> bool:
    """Whether ``pid`` holds both the socket and the lock that the server of ``folder`` gets from its starter."""
    lock = (folder / "life.lock").stat()
    open_files = list(_open_files(pid))
    return any(_is_socket(entry, inode) for entry in open_files) and any(
        os.path.samestat(lock, entry) for entry in open_files
    )


def _open_files(pid: int) -> Iterator[os.stat_result]:
    """What the process has open; nothing where that may not be seen."""
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                yield entry.stat()


def _is_socket(status: os.stat_result, inode: int) -> bool:
    return status.st_ino == inode and stat.S_ISSOCK(status.st_mode)


def _holder(peer: _Socket | None) -> str:
    if peer is None:
        return "a process that is gone"
    for process in Path("/proc").glob("[0-9]*"):
        if any(_is_socket(status, peer.inode) for status in _open_files(int(process.name))):
            with contextlib.suppress(OSError):
                return f"process {process.name} ({(process / 'comm').read_text().strip()[:40]})"
    return f"a process of the user with number {peer.uid}"


def _connected(local: Address, remote: Address) -> _Socket | None:
    """The accepted socket with these two ends. Asked of the kernel by its number where it can be: the table of all
    sockets takes it milliseconds, on every connection."""
    try:
        return _diagnosed(local, remote)
    except OSError:
        ends = (_coded(local), _coded(remote))
        return next((entry for entry in _sockets(ends[1]) if (entry.local, entry.remote) == ends and entry.inode), None)


def _diagnosed(local: Address, remote: Address) -> _Socket | None:
    """``_connected`` by the kernel's sock_diag(7). Raises OSError where this kernel has none for TCP."""
    ends = struct.pack("!HH16s16s", local[1], remote[1], *map(socket.inet_aton, (local[0], remote[0])))
    request = (
        struct.pack("=BBxxI", socket.AF_INET, socket.IPPROTO_TCP, _ANY) + ends + struct.pack("=III", 0, _ANY, _ANY)
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
        kernel.settimeout(1)
        kernel.send(struct.pack("=IHHII", _HEADER + len(request), _SOCK_DIAG_BY_FAMILY, 1, 1, 0) + request)
        answer = kernel.recv(8192)
    if struct.unpack_from("=H", answer, 4)[0] != _SOCK_DIAG_BY_FAMILY:
        error = -struct.unpack_from("=i", answer, _HEADER)[0]
        if error == errno.ENOENT:
            return None
        raise OSError(error, os.strerror(error))
    uid, inode = struct.unpack_from("=II", answer, _HEADER + 64)
    return _Socket(_coded(local), _coded(remote), "", uid, inode) if inode else None


def _sockets(mark: str) -> Iterator[_Socket]:
    """Those whose line holds ``mark``: a busy machine has thousands, and most are nobody's."""
    for line in _CONNECTIONS.read_text().splitlines()[1:]:
        if mark in line:
            _, local, remote, state, _, _, _, uid, _, inode, *_ = line.split()
            yield _Socket(local, remote, state, int(uid), int(inode))


def _coded(address: Address) -> str:
    """``address`` as the kernel writes it: the four bytes as one number of this machine."""
    number = int.from_bytes(socket.inet_aton(address[0]), sys.byteorder)
    return f"{number:08X}:{address[1]:04X}"
