"""Landlock, where the kernel has it: the file tree is readable, three places are writable, TCP and signals are shut.

Never the only layer: mounts, namespaces and seccomp hold the same ground on kernels without it. Where nothing can be
mounted it is the one thing that closes paths, and a kernel without it is then refused.
"""

import errno
import os
import struct
from collections.abc import Iterator

from . import kernel

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE, _READ, _READ_DIR = 1, 2, 4, 8
_FIRST_ABI = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_MAKE_DEVICE = 1 << 6 | 1 << 11
_READ_ONLY = _EXECUTE | _READ | _READ_DIR
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")


def abi() -> int:
    """Version of the kernel's Landlock, 0 without one."""
    try:
        return kernel.syscall("ask for Landlock", _CREATE, None, 0, 1)
    except OSError:
        return 0


def _handled(version: int) -> int:
    later = ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV))
    return _FIRST_ABI | sum(bit for since, bit in later if version >= since)


def _allow(ruleset: int, path: str, access: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        kernel.syscall(f"Landlock rule for {path}", _ADD, ruleset, 1, struct.pack("=Qi", access, fd), 0)
    finally:
        os.close(fd)


def readable(path: str, closed: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """(path, rights) of the rules that open the tree below ``path`` without what is ``closed``: rules only ever add.

    A folder with something closed below it can be listed, where that opens nothing else.
    """
    if path in closed:
        return
    if not any(hidden.startswith(path.rstrip("/") + "/") for hidden in closed):
        yield path, _READ_ONLY if os.path.isdir(path) else _EXECUTE | _READ  # noqa: PTH112
        return
    if any(os.path.dirname(hidden) == path for hidden in closed) and path != "/":  # noqa: PTH120
        yield path, _READ_DIR
    for entry in os.scandir(path):
        if not entry.is_symlink():  # what it leads to has a rule of its own
            yield from readable(entry.path, closed)


def restrict(writable: tuple[str, ...], closed: tuple[str, ...] = ()) -> int:
    """Confine this process to reading what is not ``closed``, and to writing below ``writable``. Returns the version
    used, 0 for none.

    Raises:
        OSError: Landlock refused, or something is to be closed and there is none.
    """
    version = abi()
    if not version:
        if closed:
            raise OSError(errno.ENOSYS, "this kernel has no Landlock, which alone could close paths here")
        return 0
    handled = _handled(version)
    sizes = struct.pack("QQQ", handled, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    used = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = kernel.syscall("create Landlock rules", _CREATE, sizes[:used], used, 0)
    try:
        for path, rights in readable("/", closed):
            _allow(ruleset, path, rights)
        for path in writable:
            _allow(ruleset, path, handled & ~(_IOCTL_DEV | _MAKE_DEVICE))
        for path in _DEVICES:
            _allow(ruleset, path, handled & (_READ | _WRITE | _TRUNCATE))
        kernel.syscall("apply Landlock rules", _RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)
    return version
