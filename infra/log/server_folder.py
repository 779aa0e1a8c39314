"""The embedded server's folder: private to its owner, with a lock for what only one process at a time may do."""

import asyncio
import contextlib
import fcntl
import hashlib
import json
import logging
import os
import secrets
import stat
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import IO

from agent0.errors import AuthError, OperationError

UNCLEAN = "unclean"
"""File that stands while nobody has looked whether the store survived a stop that was none."""


def prepare(folder: Path, roles: Iterable[str]) -> None:
    """Make the folder and a password for each of ``roles``.

    Raises:
        AuthError: other users may read what is there.
        OperationError: it cannot be written.
    """
    try:
        if not folder.exists():
            for directory in (folder.parent, folder):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_private(folder)
        with locked(folder):
            for path in (folder / f"{role}.password" for role in roles):
                if not path.exists():
                    write(path, secrets.token_urlsafe(32))
    except OSError as error:
        fix = "Point AGENT0_HOME at a folder you can write to."
        raise OperationError("The log's folder cannot be made.", f"{folder}: {error.strerror}.", fix) from error


def close_to_others(home: Path) -> None:
    """Take the right to write to the data folder from others, and say so: who has it can replace all that is in it.

    Raises:
        AuthError: the folder is another user's, or everybody's; or others have put something into it.
        OperationError: its mode cannot be changed.
    """
    if not home.is_dir() or not (mode := stat.S_IMODE(home.stat().st_mode)) & 0o022:
        return
    what, fix = "The data folder is open to other users.", "Point AGENT0_HOME at a folder of your own."
    mine = (os.getuid(), 0)
    if mode & stat.S_ISVTX or home.stat().st_uid not in mine:
        raise AuthError(what, f"{home} has mode {mode:04o}, and it is not yours alone.", fix)
    if strange := sorted(path.name for path in home.iterdir() if path.lstat().st_uid not in mine):
        raise AuthError(what, f"{home} has mode {mode:04o}, and others have put {', '.join(strange)} into it.", fix)
    try:
        home.chmod(mode & ~0o022)
    except OSError as error:
        raise OperationError("The data folder stays open to others.", f"{home}: {error.strerror}.", fix) from error
    logging.getLogger(__name__).warning("%s had mode %04o: others can no longer write to it", home, mode)


def _require_private(folder: Path) -> None:
    for path in (folder, *sorted(folder.glob("*.password")), folder / "server.conf"):
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
            why, fix = f"{path} is open to other users.", f"Run `chmod -R go-rwx {folder}`."
            raise AuthError("The log's credentials are not private.", why, fix)


def note_start(folder: Path) -> None:
    """The server is about to start. Where its last stop was not noted it had been killed, or the machine lost power:
    what it finds of its store may be less than what it had acknowledged, and it says nothing. Likewise where somebody
    touched the store since."""
    if (folder / "running").exists() or _touched(folder):
        write(folder / UNCLEAN, "")
    write(folder / "running", "")


def note_stop(folder: Path) -> None:
    """The server ended by itself, with everything on disk."""
    write(folder / "stopped.json", json.dumps(_store(folder)))
    (folder / "running").unlink(missing_ok=True)


def at_rest(folder: Path) -> str:
    """A digest of the store of a server that ended by itself and of nobody who touched it since: as long as this is the
    same, no event was added. Empty where a server runs, or its end was none."""
    if (folder / "running").exists() or (folder / UNCLEAN).exists() or _touched(folder):
        return ""
    try:
        return hashlib.sha256((folder / "stopped.json").read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""


def event_files(folder: Path) -> dict[str, list[int]]:
    """Size and time of change of the files that grow with every event."""
    return {name: status for name, status in _store(folder).items() if name.endswith(".blk")}


def _touched(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / "stopped.json").read_text()) != _store(folder))
    except FileNotFoundError:
        return False
    except ValueError:
        return True


def _store(folder: Path) -> dict[str, list[int]]:
    """Size and time of change of every file that holds events."""
    files = {str(path.relative_to(folder)): path.stat() for path in folder.glob("data/jetstream/*/streams/*/msgs/*")}
    return {name: [status.st_size, status.st_mtime_ns] for name, status in sorted(files.items())}


def life(folder: Path) -> IO[bytes] | None:
    """What a server on ``folder`` holds as long as it lives; None where one holds it. Whoever starts a server hands it
    over, so that a server is known from its first moment, even where its starter dies before it answers."""
    lock = (folder / "life.lock").open("ab")
    if _taken(lock.fileno()):
        return lock
    lock.close()
    return None


def lives(folder: Path) -> bool:
    """Whether a running server holds the lock of ``folder`` now."""
    lock = life(folder)
    if lock:
        lock.close()
    return lock is None


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Starting and stopping happen one at a time among all processes."""
    with (folder / "start.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.asynccontextmanager
async def provisioning(folder: Path | None, name: str = "provision.lock") -> AsyncIterator[None]:
    """Streams and durables of an embedded log are made by one process at a time. An external one has its own rules."""
    if folder is None:
        yield
        return
    with (folder / name).open("ab") as lock:
        while not _taken(lock.fileno()):
            await asyncio.sleep(0.02)
        yield


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write(path: Path, text: str) -> None:
    """Whole or not at all, readable by the owner only."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:  # noqa: PTH123 - 0600 from birth
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
