"""Read the work folder back when everything else in a sandbox process has ended."""

import contextlib
import os
import stat
from collections.abc import Iterator

from . import frames, payload

MAX_FILES, MAX_BYTES, LONGEST_NAME = 2048, 64 << 20, 1000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Harvest:
    """Regular files of the work folder. Nothing else lives here any more, and no link is followed. What cannot be given
    back is counted: ``lost``."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.contents: list[bytes] = []
        self.lost = 0
        self._room = MAX_BYTES
        with contextlib.suppress(OSError):  # in a container of its own this process has no more rights than the code
            os.chmod(payload.WORK, 0o700)  # noqa: PTH101
        self._walk(os.open(payload.WORK, _FOLDER))

    def _walk(self, fd: int) -> None:
        """Depth first, with one descriptor and no recursion: a folder may be deeper than there are of either."""
        above: list[tuple[str, Iterator[str]]] = []
        prefix, names = "", iter(sorted(os.listdir(fd)))
        while True:
            name = next(names, None)
            if name is None and not above:
                os.close(fd)
                return
            if name is None:
                fd = _instead(fd, "..")
                prefix, names = above.pop()
                continue
            mode = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
            try:
                if stat.S_ISDIR(mode):
                    fd = _instead(fd, name)
                    above.append((prefix, names))
                    prefix, names = f"{prefix}{name}/", iter(sorted(os.listdir(fd)))  # noqa: PTH208 (a descriptor)
                else:
                    self.lost += not (stat.S_ISREG(mode) and self._file(fd, name, prefix))
            except OSError:  # the code may have taken its own right to read
                self.lost += 1

    def _file(self, fd: int, name: str, prefix: str) -> bool:
        """Whether it is given back."""
        whole = prefix + name
        if len(self.names) >= MAX_FILES or len(whole) >= LONGEST_NAME:
            return False
        path = os.fsencode(whole).decode(errors="backslashreplace")  # may be longer
        data = _content(fd, name, self._room) if len(path) < LONGEST_NAME else None
        if data is None:
            return False
        self._room -= len(data)
        self.names.append(path)
        self.contents.append(data)
        return True


def _instead(fd: int, name: str) -> int:
    """Folder ``name`` of folder ``fd``, in the place of that. Raises OSError where it may not be read."""
    folder = os.open(name, _FOLDER, dir_fd=fd)
    os.close(fd)
    return folder


def _content(folder: int, name: str, room: int) -> bytes | None:
    """All of it, None where that is more than ``room`` bytes: sparse files are longer than what holds them."""
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        size = os.fstat(fd).st_size
        return frames.read_exactly(fd, size) if size <= room else None
    finally:
        os.close(fd)
