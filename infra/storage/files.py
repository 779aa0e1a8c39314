"""Files that others may have put there, opened without waiting and without reading more than was asked for."""

import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO

from agent0.errors import DependencyError

PART = 1 << 20
"""Bytes read at once."""
_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFDIR: "a folder"}


class IrregularError(OSError):
    """A pipe, a device or a folder stands where a regular file is needed."""


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file; a pipe or a device is refused, and neither is waited for.

    Raises:
        IrregularError: it is no regular file. OSError: it cannot be opened.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        kind = _KINDS.get(stat.S_IFMT(mode), "a special file")
        raise IrregularError(errno.EINVAL, f"it is {kind}, and a regular file is needed", str(path))
    return os.fdopen(handle, "rb")


def size_of(file: IO[bytes]) -> int:
    """Return the size in bytes of an open file."""
    return os.fstat(file.fileno()).st_size


def parts_of(file: IO[bytes], size: int) -> Iterator[bytes]:
    """The next ``size`` bytes of ``file``, fewer where it ends, in parts."""
    while size > 0 and (data := file.read(min(size, PART))):
        yield data
        size -= len(data)


def read_regular(path: Path, most: int) -> bytes:
    """The whole content of a regular file of at most ``most`` bytes.

    Raises:
        OSError: it is no regular file, is larger, or cannot be opened.
    """
    with open_regular(path) as file:
        if (size := size_of(file)) > most:
            raise OSError(errno.EFBIG, f"it has {size:,} bytes, and at most {most:,} are read", str(path))
        return b"".join(parts_of(file, size))


def file_digest(path: Path) -> str:
    """Return the sha256 of the file at ``path`` in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def known_digest(path: Path) -> str:
    """The sha256 of a file that may have gigabytes, in hex: read once while its size and its time of change stay."""
    status = path.stat()
    return _digest(path.absolute(), status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=64)
def _digest(path: Path, size: int, mtime_ns: int) -> str:
    return file_digest(path)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to; ``path`` is there once that is written, never half, and survives a power loss."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        yield fresh
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


RESERVE = 64 << 20
"""Bytes that work leaves free: the log records there that a run waits, fails or goes on."""
NAME = "disk space"


def require_room(home: Path) -> None:
    """Check that more than the reserve is free where ``home`` is.

    Raises:
        DependencyError: less is free.
    """
    if why := shortage(home):
        raise DependencyError(NAME, why, "Free some space, then it goes on: nothing is lost.")


def shortage(home: Path) -> str:
    """Say how full the disk of ``home`` is; empty where more than the reserve is free, or it cannot be seen."""
    try:
        free = shutil.disk_usage(home).free
    except OSError:
        return ""
    if free >= RESERVE:
        return ""
    return f"The disk is full: {free / (1 << 20):,.0f} MiB are free at {home}, and {RESERVE >> 20} are kept free."


def waits(home: Path) -> str:
    """Say that runs in ``home`` wait for space, which a disk without any room cannot record; empty where there is."""
    return f"{NAME}: {why}" if (why := shortage(home)) else ""


def writable(folder: Path) -> bool:
    """Whether this process may make and change files in ``folder``."""
    return os.access(folder, os.W_OK | os.X_OK)
