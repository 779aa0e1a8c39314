"""The system calls Python has no name for. Each raises OSError with what was being done."""

import ctypes
import os
import socket
import struct

_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 1 << 14, 1 << 18
_MS_NOEXEC, _MS_NOATIME, _MS_NODIRATIME, _MS_RELATIME = 8, 1 << 10, 1 << 11, 1 << 21
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 38, 47
NEW_MOUNT, NEW_USER = 0x20000, 0x10000000
FRESH = 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000
"""CLONE_NEW of mnt, cgroup, uts, ipc, user, pid and net."""
_CLONE_PIDFD, _SIGCHLD, _SYS_CLONE, _SYS_CAPSET = 0x1000, 17, 56, 126
_SYS_UNSHARE = 272
_CAPABILITY_VERSION_3 = 0x20080522


def syscall(doing: str, number: int, *args: object) -> int:
    """Raw system call.

    Raises:
        OSError: it returned -1; ``doing`` is in the message.
    """
    result = int(_libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args]))
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{doing}: {os.strerror(code)}")
    return result


def send_descriptor(sock: int, message: bytes, fd: int) -> None:
    """``message`` on a socket, with ``fd`` where it is one, which is closed here."""
    channel = socket.socket(fileno=sock)
    try:
        socket.send_fds(channel, [message], [fd] if fd >= 0 else [])
    finally:
        channel.detach()
        if fd >= 0:
            os.close(fd)


def prctl(option: int, *args: int) -> None:
    """Call prctl(2) with unused arguments zero.

    Raises:
        OSError: the kernel refused.
    """
    if _libc.prctl(option, *(*args, 0, 0, 0, 0)[:4]) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl {option}: {os.strerror(code)}")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Call mount(2) with the given source, target, type, flags and data.

    Raises:
        OSError: the kernel refused.
    """
    texts = [None if t is None else t.encode() for t in (source, target, kind, data)]
    if _libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mount {kind or source} on {target}: {os.strerror(code)}")


def keep_times(path: str) -> None:
    """Mount the device at ``path`` over itself, read-only: it can be used as before, and its times cannot be set."""
    mount(path, path, None, MS_BIND)
    flags = os.statvfs(path).f_flag
    locked = flags & (MS_NOSUID | _MS_NOEXEC | _MS_NOATIME | _MS_NODIRATIME) | (_MS_RELATIME if flags & 4096 else 0)
    mount(None, path, None, MS_REMOUNT | MS_BIND | MS_RDONLY | locked)


def hide(path: str) -> None:
    """Nothing is at ``path`` any more: an empty folder, or a file that is none."""
    if os.path.isdir(path):  # noqa: PTH112
        mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "size=4k,mode=0755")
    elif os.path.exists(path):  # noqa: PTH110
        mount("/dev/null", path, None, MS_BIND)


def unshare(flags: int) -> None:
    """Call unshare(2): move this process into new namespaces named by ``flags``.

    Raises:
        OSError: the kernel refused.
    """
    syscall("unshare", _SYS_UNSHARE, flags)


def clone_fresh() -> tuple[int, int]:
    """Fork into fresh namespaces of every kind. Returns (pid, pidfd); pid is 0 in the child, which is its pid 1.

    The interpreter's own fork hooks run around the raw call, so ``os.fork`` works in the child. The caller must be
    single-threaded.
    """
    pidfd = ctypes.c_int(-1)
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = int(
        _libc.syscall(
            ctypes.c_long(_SYS_CLONE),
            ctypes.c_ulong(FRESH | _CLONE_PIDFD | _SIGCHLD),
            ctypes.c_void_p(0),
            ctypes.byref(pidfd),
            ctypes.c_void_p(0),
            ctypes.c_ulong(0),
        )
    )
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return 0, -1
    code = ctypes.get_errno()
    ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(code, f"clone into fresh namespaces: {os.strerror(code)}")
    return pid, pidfd.value


def drop_capabilities() -> None:
    """Empty every capability set, the bounding and ambient ones too."""
    prctl(PR_CAP_AMBIENT, 4)
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            break  # the kernel knows no capability of this number
    header, empty = struct.pack("Ii", _CAPABILITY_VERSION_3, 0), bytes(24)
    syscall("drop capabilities", _SYS_CAPSET, header, empty)
