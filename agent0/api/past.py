"""Tables as they were behind any event: built from the bodies that the live tables hold, so that every page and every
query has a past without a second way of asking.

A few are kept in a folder of their own, and a later moment is built on from the nearest earlier one: to move forwards
through a run costs what happened in between. A moment far from all of them is built beside, and asked for again.
"""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock

from agent0.api.problems import PendingError
from agent0.assembly.replay.past_tables import make_past
from agent0.assembly.runtime.read_models import live_path, reading
from agent0.errors import Agent0Error, NotFoundError, OperationError
from agent0.infra.engine.worker_process import environment_of
from agent0.infra.storage import sqlite
from agent0.infra.storage.scratch import ScratchFolder, sweep
from agent0.projections import Position, position
from agent0.projections.events import extent
from agent0.settings import Settings

KEPT = 4
MOST = 200_000
"""Events that a page may wait for, about twenty seconds; more are read by a process of its own."""
PROGRAM = "agent0.assembly.replay.past_tables"


class PastTables:
    """The tables of a data folder as of past events; ``close`` removes their files."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._lock = settings, Lock()
        self._parent = settings.home / "cache" / "past"
        sweep(self._parent)
        self._folder: ScratchFolder | None = None
        self._built: dict[int, Path] = {}
        self._stream = ""
        self._beside: tuple[int, subprocess.Popen[bytes]] | None = None
        """The event up to which a process reads, and the process."""

    @contextmanager
    def reading(self, at: int) -> Iterator[sqlite3.Connection]:
        """A read-only connection to the tables as they were behind event ``at``.

        Raises:
            NotFoundError: there is no such event.
            PendingError: it is being built beside. OperationError: that failed.
        """
        with self._lock:
            db = sqlite.connect(self._built_at(at), read_only=True)
        with closing(db):
            yield db

    def close(self) -> None:
        """End what is being built and remove all files."""
        with self._lock:
            if self._beside:
                self._beside[1].kill()
                self._beside[1].wait()
                self._beside = None
            if self._folder:
                self._folder.close()
            self._folder, self._built = None, {}

    def _built_at(self, at: int) -> Path:
        with reading(self._settings) as live:
            current, first = position(live), extent(live)[0]
            if not first <= at <= current.seq:
                raise NotFoundError(f"There is no event {at}.", f"There are {first} to {current.seq}.")
            if current.stream != self._stream:
                self._built, self._stream = {}, current.stream
            if at not in self._built:
                self._build(live, current, first, at)
        self._built[at] = self._built.pop(at)  # used last
        return self._built[at]

    def _build(self, live: sqlite3.Connection, current: Position, first: int, at: int) -> None:
        nearest = max((seq for seq in self._built if seq < at), default=first - 1)
        self._folder = folder = self._folder or ScratchFolder(self._parent)
        path, base = folder.path / f"{at}.db", self._built.get(nearest)
        if at - nearest > MOST:
            self._finish(at, path, folder.lock, [str(base or ""), str(path), current.stream, str(first), str(at)])
        else:
            _remove(path)
            make_past(live, base, path, current.stream, first, at)
        self._built[at] = path
        while len(self._built) > KEPT:
            _remove(self._built.pop(next(iter(self._built))))

    def _finish(self, at: int, path: Path, lock: int, arguments: list[str]) -> None:
        """Have ``path`` built beside, one at a time.

        Raises:
            PendingError: it is not there yet. OperationError: it cannot be built.
        """
        if self._beside is None:
            _remove(path)
            live = str(live_path(self._settings).resolve())
            command = (sys.executable, "-m", PROGRAM, live, *arguments)
            process = subprocess.Popen(command, env=environment_of(1), pass_fds=(lock,))  # noqa: S603 - our own
            self._beside = at, process
        until, process = self._beside
        if (code := process.poll()) is None:
            done = _reached(path.with_name(f"{until}.db"))
            why = f"The tables of event {until:,} are being built, up to event {done:,} so far."
            raise PendingError(f"The moment of event {at:,} is not there yet.", why, "Look again in some seconds.")
        self._beside = None
        if code:
            raise OperationError(
                f"The moment of event {at} cannot be built.", "See the server's log.", f"{_BUILD} {at}"
            )
        if until != at:
            self._built[until] = path.with_name(f"{until}.db")
            self._finish(at, path, lock, arguments)


def _reached(path: Path) -> int:
    """Up to which event the tables at ``path`` are; 0 where there is nothing yet."""
    try:
        with closing(sqlite.connect(path, read_only=True)) as db:
            return position(db).seq
    except (sqlite3.Error, OSError, Agent0Error):
        return 0


_BUILD = "Build them into a file: agent0 projections build --into FILE --until-seq"


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
