"""Folders that a process needs while it lives: what a killed one left is removed by the next that asks for one."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class ScratchFolder:
    """A folder below ``parent`` with a lock that ends with this process, or with a child that is given ``lock``."""

    def __init__(self, parent: Path) -> None:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(parent):
            _sweep(parent)
            self.path = Path(tempfile.mkdtemp(dir=parent))
            self.lock = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(self.lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def sweep(parent: Path) -> None:
    """Remove the folders below ``parent`` that nobody holds; nothing, where there is no such folder."""
    with suppress(OSError), _locked(parent):
        _sweep(parent)


@contextmanager
def _locked(parent: Path) -> Iterator[None]:
    """Nobody else makes or removes a folder below ``parent`` meanwhile."""
    number = os.open(parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def _sweep(parent: Path) -> None:
    for folder in [path for path in parent.iterdir() if path.is_dir() and not path.is_symlink()]:
        number = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        with suppress(BlockingIOError):
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        os.close(number)
