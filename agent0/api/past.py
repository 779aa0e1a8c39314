"""Tables as they were behind any event: built from the bodies that the live tables hold, so that every page and every
query has a past without a second way of asking.

A few are kept in a folder of their own, and a later moment is built on from the nearest earlier one: to move forwards
through a run costs what happened in between.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock

from agent0.assembly.runtime.read_models import reading
from agent0.errors import NotFoundError, OperationError
from agent0.settings import Settings
from infra.storage import sqlite
from projections import Position, Projector, position, tables
from projections.events import extent
from projections.seals import bodies_between

KEPT = 4
CHUNK = 500
MOST = 200_000
"""Events that a page may wait for: about twenty seconds."""


class PastTables:
    """The tables of a data folder as of past events; ``close`` removes their files."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._lock = settings, Lock()
        self._folder: Path | None = None
        self._built: dict[int, Path] = {}
        self._stream = ""

    @contextmanager
    def reading(self, at: int) -> Iterator[sqlite3.Connection]:
        """A read-only connection to the tables as they were behind event ``at``.

        Raises:
            NotFoundError: there is no such event.
            OperationError: so many events before it that a page cannot wait.
        """
        with self._lock:
            db = sqlite.connect(self._built_at(at), read_only=True)
        with closing(db):
            yield db

    def close(self) -> None:
        """Remove all files."""
        with self._lock:
            if self._folder:
                shutil.rmtree(self._folder, ignore_errors=True)
            self._folder, self._built = None, {}

    def _built_at(self, at: int) -> Path:
        with reading(self._settings) as live:
            held, first = position(live), extent(live)[0]
            if not first <= at <= held.seq:
                raise NotFoundError(f"There is no event {at}.", f"There are {first} to {held.seq}.")
            if held.stream != self._stream:
                self._built, self._stream = {}, held.stream
            if at not in self._built:
                self._build(live, held, first, at)
        self._built[at] = self._built.pop(at)  # used last
        return self._built[at]

    def _build(self, live: sqlite3.Connection, held: Position, first: int, at: int) -> None:
        nearest = max((seq for seq in self._built if seq < at), default=first - 1)
        if at - nearest > MOST:
            why = f"{at - nearest:,} events would have to be read again, and a page waits for {MOST:,} at most."
            raise OperationError(f"The moment of event {at} is too far from the log's start.", why, f"{_BUILD} {at}")
        self._folder = self._folder or Path(tempfile.mkdtemp(prefix="agent0-past-"))
        path = self._folder / f"{at}.db"
        _remove(path)
        if nearest in self._built:
            shutil.copyfile(self._built[nearest], path)
        projector = Projector(path, sqlite.connect, tables(), held.stream, first)
        try:
            for start in range(nearest + 1, at + 1, CHUNK):
                projector.apply(sorted(bodies_between(live, start, min(start + CHUNK - 1, at)).items()))
        finally:
            projector.close()
        self._built[at] = path
        while len(self._built) > KEPT:
            _remove(self._built.pop(next(iter(self._built))))


_BUILD = "Build them into a file: agent0 projections build --into FILE --until-seq"


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
