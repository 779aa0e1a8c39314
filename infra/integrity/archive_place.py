"""Where an archive lies, a folder or a tar: each file of it is bounded before it is read, and nothing is unpacked.

An archive may be untrusted. What none that Agent0 wrote has (links, devices, pipes, holes, other names, a name
twice) is refused by name.
"""

import os
import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Protocol

from agent0.errors import ConfigError, LogError, NotFoundError
from agent0.infra.storage.files import IrregularError, open_regular, parts_of, size_of
from agent0.provenance.foreign_files import HEAD, require_own

MANIFEST = "manifest.json"
_NAME = re.compile(r"manifest\.json|segments/\d{12}-\d{12}\.jsonl\.zst|artifacts/[0-9a-f]{2}/[0-9a-f]{62}")
_BLOCK = tarfile.BLOCKSIZE
_LONGEST_NOTE = 64 << 10
"""Bytes of an extended header: times and owners, which are skipped."""
_REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE)
_OTHER = "is no file of an archive"
_REFUSED = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
    tarfile.GNUTYPE_SPARSE: "a file with holes",
}


class DamagedError(LogError):
    """An archive is not what it was, or is none that Agent0 writes. ``found`` has everything that is wrong, with its
    place."""

    def __init__(self, path: Path, problems: list[str]) -> None:
        self.found = tuple(problems)
        more = f" And {len(problems) - 1} more." if len(problems) > 1 else ""
        super().__init__(
            f"The archive {path} is damaged.", f"{problems[0]}.{more}", "Nothing was changed. Use a whole copy."
        )


class ArchivePlace(Protocol):
    """Where an archive is stored and read from: a folder or a tar file."""

    path: Path

    def parts(self, name: str, most: int) -> Iterator[bytes]:
        """One file of it, in parts.

        Raises:
            FileNotFoundError: there is none. DamagedError: it has more than ``most`` bytes, or is no regular file.
        """
        ...


def read(storage: ArchivePlace, name: str, most: int) -> bytes:
    """One file of ``storage``, whole; raises what ``parts`` does."""
    return b"".join(storage.parts(name, most))


class _ArchiveFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def parts(self, name: str, most: int) -> Iterator[bytes]:
        path = self.path / name
        with _readable(self.path, name):
            if os.path.realpath(path) != os.path.join(os.path.realpath(self.path), name):  # noqa: PTH118 - as text
                raise DamagedError(self.path, [f"{name} is behind a symbolic link"])
            with open_regular(path) as file:
                yield from parts_of(file, _bounded(self.path, name, size_of(file), most))


class _Tar:
    """Members are read where they are. Their places are found from the headers alone, none of which is long."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._members: dict[str, tuple[int, int]] = {}
        with _readable(path, "the file"), open_regular(path) as file:
            self._size = size_of(file)
            while (member := self._next(file)) is not None:
                self._add(file, member)

    def parts(self, name: str, most: int) -> Iterator[bytes]:
        if name not in self._members:
            raise FileNotFoundError(name)
        offset, size = self._members[name]
        _bounded(self.path, name, size, most)
        with _readable(self.path, name), open_regular(self.path) as file:
            file.seek(offset)
            yield from parts_of(file, size)

    def _next(self, file: IO[bytes]) -> tarfile.TarInfo | None:
        """The member whose header comes next; None at the end."""
        begin, block = file.tell(), file.read(_BLOCK)
        if not block.strip(b"\0"):
            if not begin:
                raise _foreign(self.path, "it holds no file")
            return None
        try:
            return tarfile.TarInfo.frombuf(block, tarfile.ENCODING, "surrogateescape")
        except (tarfile.TarError, ValueError) as error:
            if not begin:
                raise _foreign(self.path, "it cannot be read as a tar") from error
            raise DamagedError(self.path, [f"no member begins at byte {begin:,}"]) from error

    def _add(self, file: IO[bytes], member: tarfile.TarInfo) -> None:
        name, begin = member.name, file.tell()
        if wrong := _wrong(member) or ("stands in it twice" if name in self._members else ""):
            why = f"its member {name[:120]!a} {wrong}"
            raise _foreign(self.path, why) if wrong == _OTHER and not self._members else DamagedError(self.path, [why])
        if not 0 <= member.size <= self._size - begin:
            raise DamagedError(self.path, [f"{name[:120]!a} is cut off"])
        if member.type in _REGULAR:
            self._members[name] = begin, member.size
        if not member.isdir():
            file.seek(begin + -(-member.size // _BLOCK) * _BLOCK)


def _wrong(member: tarfile.TarInfo) -> str:
    """Why no archive has such a member; empty where it may."""
    if member.type == tarfile.XHDTYPE:
        return "" if member.size <= _LONGEST_NOTE else f"is an extended header of {member.size:,} bytes"
    if member.isdir():
        return ""
    if member.type not in _REGULAR:
        return f"is {_REFUSED.get(member.type, 'no regular file')}"
    return "" if _NAME.fullmatch(member.name) else _OTHER


def _foreign(path: Path, why: str) -> NotFoundError:
    """The error for a file that is of something else, as far as its beginning says."""
    return NotFoundError(f"{path} is no archive.", f"It does not begin as one: {why}.", "Name an archive.")


def _bounded(path: Path, name: str, size: int, most: int) -> int:
    """``size``; raises DamagedError where it is more than ``most``."""
    if size > most:
        raise DamagedError(path, [f"{name} has {size:,} bytes, and at most {most:,} are read"])
    return size


@contextmanager
def _readable(path: Path, name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except IrregularError as error:
        raise DamagedError(path, [f"{name} cannot be read: {error.strerror}"]) from error
    except OSError as error:
        fix = "Make it readable, or name another one."
        raise ConfigError(f"The archive {path} cannot be read.", f"{name}: {error.strerror}.", fix) from error


def open_archive(path: Path) -> ArchivePlace:
    """The archive at ``path``.

    Raises:
        NotFoundError: there is none, or the file is none. DamagedError: it has what no archive has.
        ConfigError: it cannot be opened, or is a file of another framework.
    """
    if path.is_dir():
        return _ArchiveFolder(path)
    if not path.exists():
        raise NotFoundError(f"There is no archive {path}.")
    try:
        return _Tar(path)
    except (DamagedError, NotFoundError):
        with suppress(OSError), open_regular(path) as file:
            require_own(file.read(HEAD).decode(errors="replace"), f"{path}")
        raise
