"""Part of the rim: writes the changes that a person accepted into their repository. What they changed meanwhile is not
written over, and no link is followed."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agent0.errors import DependencyError, OperationError
from agent0.tools.snapshots import Files, is_inside
from agent0.verification.repositories.source_tree import LARGEST
from agent0.verification.solutions.patches import changed_paths

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC


def write_back(folder: Path, before: Files, after: Files) -> list[str]:
    """Bring the files of ``folder`` from ``before`` to ``after``; returns the paths that were written: none where all
    were so already. All are looked at before the first is written.

    Raises:
        OperationError: one is neither as it was nor as it should be, or is reached through a link.
        DependencyError: one cannot be written; the same call goes on.
    """
    paths = changed_paths(before, after)
    present = {path: _present(folder, path) for path in paths}
    others = [path for path in paths if present[path] not in (before.get(path), after.get(path))]
    if others:
        why = f"Changed since: {', '.join(others[:5])}."
        raise OperationError(f"{folder} is no longer as it was copied.", why, "Put it back, or begin again.")
    written = [path for path in paths if present[path] != after.get(path)]
    for path in written:
        _put(folder, path, after.get(path))
    return written


def _present(folder: Path, path: str) -> bytes | None:
    try:
        with _folder_of(folder, path, make=False) as (at, name), open(_opened(at, name), "rb") as file:
            return file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OperationError(f"{folder / path} is no plain file.", f"{error.strerror}.", "Begin again.") from error


def _opened(at: int, name: str) -> int:
    return os.open(name, os.O_RDONLY | os.O_NONBLOCK | _FILE, dir_fd=at)


def _put(folder: Path, path: str, data: bytes | None) -> None:
    """Whole or not at all, with the mode of the file that was there."""
    try:
        with _folder_of(folder, path, make=True) as (at, name):
            if data is None:
                os.unlink(name, dir_fd=at)
                return
            fresh = f".{secrets.token_hex(8)}"
            try:
                mode = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode & 0o777
            except FileNotFoundError:
                mode = 0o644
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o600, dir_fd=at)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    os.fchmod(file.fileno(), mode)
                    os.fsync(file.fileno())
                os.replace(fresh, name, src_dir_fd=at, dst_dir_fd=at)
            except BaseException:
                os.unlink(fresh, dir_fd=at)
                raise
    except OSError as error:
        fix = "Make it writable; the same command goes on."
        raise DependencyError(f"The file {folder / path}", f"{error.strerror}.", fix) from error


@contextmanager
def _folder_of(folder: Path, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
    """The folder of a file, opened from folder to folder, and the file's name."""
    if not is_inside(path):
        raise OSError(0, "it leads out of the folder")
    *parents, name = path.split("/")
    opened = [os.open(folder, _FOLDER)]
    try:
        for part in parents:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=opened[-1])
            opened.append(os.open(part, _FOLDER, dir_fd=opened[-1]))
        yield opened[-1], name
    finally:
        for number in opened:
            os.close(number)
