"""Moves events from the log into the tables, each exactly once: rows and position change in one transaction."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from agent0.errors import EarlierLogError, LogError, OperationError
from agent0.events.base import EarlierVersionError, Recorded, decode, require_subject, sha256
from agent0.projections.base import Row, Table, as_json

BATCH = 500
FOLLOW_S = 0.2
"""Seconds by which tables may lag: a transaction costs as much for one event as for some dozens."""
REBUILD = "`agent0 projections rebuild` makes new tables from the log; the old ones stay until those are verified."

_UNFIT = (
    OverflowError, ValueError, TypeError, LookupError, AttributeError,
    sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError, sqlite3.DataError,
)  # fmt: skip
"""What one event that fits no class or no column makes of it; a full disk or a damaged file is none of these."""

Stored = tuple[int, bytes] | tuple[int, bytes, str]
"""Sequence and body, as the log gives them out, and the subject where it is known."""
Read = Callable[[int], AsyncIterator[Sequence[Stored]]]
"""Chunks of everything after a sequence, in order."""
Connect = Callable[[Path], sqlite3.Connection]
Decode = Callable[[int, bytes], Recorded]
"""From a sequence and a stored body to the event; ValueError where there is none."""
Pending = dict[str, dict[Any, Row]]


class OtherVersionError(OperationError):
    """Another version of Agent0 made the tables: theirs are other columns."""


class StoppedError(LogError):
    """One event does not fit the tables: they hold everything before it and stay there."""

    def __init__(self, seq: int, body: bytes, error: Exception) -> None:
        self.seq = seq
        super().__init__(
            f"Event {seq} of the log cannot be read into the tables.",
            f"{_title(body)} does not fit: {type(error).__name__}: {str(error)[:500]}",
            "The log is whole and the tables hold everything before it. Use the Agent0 version that wrote it, or a "
            f"newer one, and run `agent0 projections rebuild`. Where no Agent0 wrote it: agent0 events set-aside {seq}",
        )


@dataclass(frozen=True)
class Position:
    """How far the tables have come: the stream's identity, a sequence and the id of the event there."""

    stream: str
    seq: int = 0
    event: str = ""
    tables: str = ""


class Projector:
    """The one writer of a database. Several at once are safe (each reads the position inside its transaction).

    ``path`` may be the link to the live database: when a rebuild swaps it, reading goes on from the new one's position.
    """

    def __init__(self, path: Path, connect: Connect, tables: dict[str, Table], stream: str, first_seq: int = 1) -> None:
        self._path, self._connect, self._tables = path, connect, tables
        self._stream, self._first = stream, first_seq
        self._statements: dict[tuple[str, tuple[str, ...]], str] = {}
        self.decode: Decode = lambda seq, body: decode(body, seq)
        everything = [t for t in tables.values() if not t.events]
        handled = {kind.__name__ for t in tables.values() for kind in t.events}
        self._any = everything
        self._readers = {
            kind: everything + [t for t in tables.values() if kind in {c.__name__ for c in t.events}]
            for kind in handled
        }
        self._open()

    def _open(self) -> None:
        self._file = self._path.resolve()
        self._db = self._connect(self._file)
        _create(self._db, self._tables, Position(self._stream, self._first - 1))
        current = position(self._db)
        if current.tables != fingerprint(self._tables):
            raise OtherVersionError("The tables were made by another version of Agent0.", fix=REBUILD)
        if current.stream != self._stream:
            raise LogError(f"The tables belong to stream {current.stream!r}, not {self._stream!r}.", fix=REBUILD)

    @property
    def position(self) -> Position:
        """How far the tables have come."""
        return position(self._db)

    def check(self, last_seq: int, id_at_position: str | None, position: Position | None = None) -> None:
        """Compare with the stream: its last sequence, and the id of its event at ``position.seq``. ``position`` is that
        for which these were read (None: the present one): another process may carry the tables on meanwhile.

        Raises:
            LogError: the log's history is not the one the tables were made from.
        """
        position = position or self.position
        if last_seq < position.seq:
            why = f"The tables have seen event {position.seq}, the log ends at {last_seq}."
            raise LogError("The log lost its end or was replaced.", why, REBUILD)
        if position.event and id_at_position != position.event:
            why = f"At {position.seq} the tables have seen {position.event}, the log holds {id_at_position}."
            raise LogError("The log's history changed.", why, REBUILD)

    def apply(self, batch: Iterable[Stored]) -> int:
        """Apply events in order; those already seen are skipped. Returns the new sequence.

        Raises:
            LogError: a sequence is missing; nothing of the batch is applied.
            StoppedError: an event does not fit the tables; those before it are applied.
        """
        events = list(batch)
        try:
            return self._apply(events)
        except _UNFIT:  # rows are merged over a batch, so only one by one can tell which it was
            for stored in events:
                self._apply_one(stored)
            return self.position.seq

    def _apply_one(self, stored: Stored) -> None:
        try:
            self._apply([stored])
        except EarlierVersionError as error:
            raise EarlierLogError.of() from error
        except _UNFIT as error:
            raise StoppedError(stored[0], stored[1], error) from error

    def _apply(self, batch: Iterable[Stored]) -> int:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        try:
            before = position(db)
            seq, event, pending = self._gather(before, batch)
            if seq != before.seq:
                for name, rows in pending.items():
                    self._write(self._tables[name], rows)
                db.execute("UPDATE position SET seq = ?, event = ?", (seq, event))
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # a full disk ends one by itself
                db.rollback()
            raise
        return seq

    def _gather(self, before: Position, batch: Iterable[Stored]) -> tuple[int, str, Pending]:
        """Merge the rows of a batch by table and key."""
        at, event = before.seq, before.event
        pending: Pending = {name: {} for name in self._tables}
        for seq, body, *subject in batch:
            if seq <= at:
                continue
            if seq != at + 1:
                raise LogError(
                    f"The log has a gap: event {seq} follows {at}.",
                    "The stream refuses deletion, so something outside Agent0 altered or damaged it.",
                    "Restore its data folder from a copy; `agent0 doctor` names what is missing.",
                )
            recorded = self.decode(seq, body)
            require_subject(recorded.subject, *subject)
            for table in self._readers.get(recorded.type, self._any):
                rows, merge = pending[table.name], table.merge
                for row in table.project(recorded, body.decode()) if table.with_body else table.project(recorded):
                    merged = rows.setdefault(table.key_of(row), row)
                    if merged is not row:
                        merge(merged, row)
            at, event = seq, recorded.id
        return at, event, pending

    def _write(self, table: Table, rows: dict[Any, Row]) -> None:
        groups: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
        if table.index_only:
            self._index(table, rows)
        for row in rows.values():
            groups.setdefault(tuple(row), []).append(tuple(row.values()))
        for columns, values in groups.items():
            key = (table.name, columns)
            if key not in self._statements:
                self._statements[key] = table.upsert(columns)
            self._db.executemany(self._statements[key], values)

    def _index(self, table: Table, rows: dict[Any, Row]) -> None:
        """Take texts that are not stored out of ``rows`` and into the index."""
        names, marks = ", ".join(table.search), ", ?" * len(table.search)
        texts = [(key, *(row.pop(name, None) for name in table.search)) for key, row in rows.items()]
        self._db.executemany(f"INSERT INTO {table.name}_fts (rowid, {names}) VALUES (?{marks})", texts)  # noqa: S608

    async def catch_up(self, read: Read) -> int:
        """Apply what ``read`` gives until it ends, in large batches. Returns the sequence reached."""
        return await self._run(read, BATCH)

    async def follow(self, read: Read, decode: Decode | None = None) -> int:
        """Apply what a reader without an end gives, all that came within ``FOLLOW_S`` at once. ``decode`` reads bodies
        where it is given: who executes a run has most of them decoded already."""
        self.decode = decode or self.decode
        return await self._run(read, 1, FOLLOW_S)

    async def _run(self, read: Read, size: int, rest_s: float = 0.0) -> int:
        while True:
            self._follow_link()
            async with aclosing(_batches(read(self.position.seq), size)) as batches:
                async for batch in batches:
                    if self._moved:
                        break
                    self.apply(batch)
                    # A transaction is short; between two the event loop serves others.
                    await asyncio.sleep(rest_s)
            if not self._moved:
                return self.position.seq

    @property
    def _moved(self) -> bool:
        return self._path.resolve() != self._file

    def _follow_link(self) -> None:
        if self._moved:
            self._db.close()
            self._open()

    def close(self) -> None:
        """Fold the write-ahead log into the file, where the disk has room for that, and let go of it."""
        with suppress(sqlite3.OperationalError):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()


def position(db: sqlite3.Connection) -> Position:
    """How far the tables of ``db`` have come."""
    row = db.execute("SELECT stream, seq, event, tables FROM position").fetchone()
    return Position(*row)


def _title(body: bytes) -> str:
    """Type and id of a stored body, as far as they can be read."""
    try:
        raw = from_json(body)
        return f"{str(raw['type'])[:80]} {str(raw['id'])[:80]}"
    except (ValueError, TypeError, LookupError):
        return "A body without type and id"


def fingerprint(tables: dict[str, Table]) -> str:
    """Changes whenever a declaration does: tables made by another one are not written to."""
    shape = {
        t.name: {
            "columns": {name: kind.__name__ for name, kind in t.columns.items()},
            "merge": [t.key, sorted(t.adds), sorted(t.first), sorted(t.most)],
            "made": [dict(t.computed), t.indexes, t.search],
        }
        for t in tables.values()
    }
    return sha256(as_json(shape))[:16]


def _create(db: sqlite3.Connection, tables: dict[str, Table], begin: Position) -> None:
    """Make all tables or none: another process may be at it too, or this one be killed at it."""
    if _has_tables(db):
        return
    db.execute("BEGIN IMMEDIATE")
    with db:
        if not _has_tables(db):
            _make(db, tables, begin)


def _has_tables(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'position'").fetchone() is not None


def _make(db: sqlite3.Connection, tables: dict[str, Table], begin: Position) -> None:
    import sqlite_utils  # noqa: PLC0415 - a fifth of a second, which commands that only read do not need

    database = sqlite_utils.Database(db)
    for table in tables.values():
        created = database.table(table.name)
        created.create(dict(table.columns), pk=table.key[0] if len(table.key) == 1 else table.key, strict=True)
        for name, expression in table.computed.items():
            db.execute(f"ALTER TABLE {table.name} ADD COLUMN {name} ANY GENERATED ALWAYS AS ({expression}) VIRTUAL")
        for columns in table.indexes:
            created.create_index(columns)
        if table.index_only:
            names = ", ".join(table.search)
            db.execute(f"CREATE VIRTUAL TABLE {table.name}_fts USING fts5({names}, content='')")
        elif table.search:
            created.enable_fts(table.search, create_triggers=True)
    database.table("position").create(
        {"stream": str, "seq": int, "event": str, "tables": str}, pk="stream", strict=True
    )
    db.execute("INSERT INTO position VALUES (?, ?, '', ?)", (begin.stream, begin.seq, fingerprint(tables)))


async def _batches(source: AsyncIterator[Sequence[Stored]], size: int) -> AsyncGenerator[list[Stored], None]:
    """Chunks gathered until they hold at least ``size``."""
    batch: list[Stored] = []
    try:
        async for chunk in source:
            batch += chunk
            if len(batch) >= size:
                yield batch
                batch = []
        if batch:
            yield batch
    finally:
        if isinstance(source, AsyncGenerator):
            await source.aclose()
