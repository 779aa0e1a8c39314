"""Rebuilds tables beside the live ones, compares, swaps and rolls back. Readers never see a half-built database.

``view.db`` is a link to the live ``view-<k>.db``: replacing a link is safe, replacing an open database is not.
"""

import hashlib
import os
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from uuid import uuid4

from agent0.errors import NotFoundError, OperationError
from agent0.projections.base import Table
from agent0.projections.projector import (
    REBUILD,
    Connect,
    OtherVersionError,
    Position,
    Projector,
    Read,
    Stored,
    position,
)

ReadUntil = Callable[[int, int], AsyncIterator[Sequence[Stored]]]
"""Chunks of everything after one sequence up to and with another (0: the log's present end)."""


@dataclass(frozen=True)
class RowDifference:
    """The first place where two databases differ; ``left`` or ``right`` None: the row is missing there."""

    table: str
    key: tuple[object, ...]
    column: str
    left: object
    right: object

    def __str__(self) -> str:
        key = ", ".join(map(str, self.key))
        return f"table {self.table}, key ({key}), column {self.column}: {self.left!r} against {self.right!r}"


@dataclass(frozen=True)
class Rebuilt:
    """What a rebuild did: the new file, how far it reaches, sha256 of every table's ordered dump."""

    path: Path
    seq: int
    digests: dict[str, str]
    verified: bool


class Views:
    """The databases of read models under one folder: the live one, and those before it."""

    def __init__(
        self, folder: Path, connect: Connect, tables: dict[str, Table], stream: str, first_seq: int = 1
    ) -> None:
        self._folder, self._connect, self._tables = folder, connect, tables
        self._stream, self._first = stream, first_seq
        self.live = folder / "view.db"
        """The path that readers open."""

    def projector(self) -> Projector:
        """The writer of the live tables; makes them where there are none.

        Raises:
            OtherVersionError: the tables were made by another version: rebuild.
            LogError: they belong to another stream: rebuild.
        """
        self._make_folder()
        if not self.live.exists():
            self._point(self._path(self._next()))
        return Projector(self.live, self._connect, self._tables, self._stream, self._first)

    async def update(self, read: ReadUntil) -> None:
        """Rebuild the live tables where another version made them."""
        try:
            self.projector().close()
        except OtherVersionError:
            await self.rebuild(read)

    async def rebuild(self, read: ReadUntil, check: bool = False) -> Rebuilt:
        """Make new tables from the whole log and put them in place of the live ones, which stay for a rollback.

        ``check`` compares first, at the live tables' position; where they differ nothing is swapped.

        Raises:
            OperationError: they differ; table and key are named.
        """
        self._make_folder()
        path = self._path(self._next())
        try:
            if check:
                await self._build_and_compare(path, read)
            reached = await self._build(path, lambda after: read(after, 0))
        except BaseException:
            _remove(path)
            raise
        before = self.live.resolve()
        self._point(path)
        self._forget_all_but(before, path)
        with closing(self._connect(path)) as db:
            return Rebuilt(path, reached.seq, digests(db, self._tables), check)

    async def _build_and_compare(self, path: Path, read: ReadUntil) -> None:
        if not self.live.exists():
            raise NotFoundError("There are no live tables to compare with.", fix="Rebuild without `--verify`.")
        try:
            difference = await self._compared(path, read)
        except sqlite3.DatabaseError as error:
            fix = "There is nothing to compare with: run `agent0 projections rebuild` without `--verify`."
            raise OperationError("The live tables are damaged.", f"SQLite says: {error}.", fix) from error
        if difference:
            raise OperationError(
                f"The live tables differ from the log: {difference}.", "(live against rebuilt)", REBUILD
            )

    async def _compared(self, path: Path, read: ReadUntil) -> RowDifference | None:
        with closing(self._connect(self.live.resolve())) as live:
            live.execute("BEGIN")
            until = position(live).seq
            await self._build(path, lambda after: read(after, until) if until else _nothing())
            with closing(self._connect(path)) as rebuilt:
                return verify(live, rebuilt, self._tables)

    async def _build(self, path: Path, read: Read) -> Position:
        projector = Projector(path, self._connect, self._tables, self._stream, self._first)
        try:
            await projector.catch_up(read)
            return projector.position
        finally:
            projector.close()

    def rollback(self) -> Path:
        """Put the tables before the live ones back; they catch up by themselves.

        Raises:
            NotFoundError: there are none.
        """
        current = self._number(self.live.resolve())
        earlier = [k for k in self._versions() if k < current]
        if not earlier:
            raise NotFoundError("There are no earlier tables to go back to.")
        self._point(self._path(earlier[-1]))
        return self._path(earlier[-1])

    def _make_folder(self) -> None:
        for folder in (self._folder.parent, self._folder):  # transcripts are private
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _path(self, number: int) -> Path:
        return self._folder / f"view-{number}.db"

    def _number(self, path: Path) -> int:
        match = re.fullmatch(r"view-(\d+)\.db", path.name)
        return int(match[1]) if match else 0

    def _versions(self) -> list[int]:
        return sorted(n for n in map(self._number, self._folder.glob("view-*.db")) if n)

    def _next(self) -> int:
        return max(self._versions(), default=0) + 1

    def _point(self, path: Path) -> None:
        link = self._folder / f".view-{uuid4().hex}"  # its own: other processes may be at it
        link.symlink_to(path.name)
        link.replace(self.live)

    def _forget_all_but(self, before: Path, current: Path) -> None:
        """Of the tables up to the live ones keep those and the ones before; a killed rebuild leaves some, too."""
        for path in map(self._path, self._versions()):
            if path not in (before, current) and self._number(path) < self._number(current):
                _remove(path)


async def build(path: Path, connect: Connect, tables: dict[str, Table], begin: Position, read: Read) -> Rebuilt:
    """Tables of what ``read`` gives from behind ``begin`` on, in one new file: it is whole, or it is not there."""
    beside = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        projector = Projector(beside, connect, tables, begin.stream, begin.seq + 1)
        try:
            reached = await projector.catch_up(read)
        finally:
            projector.close()
        with closing(connect(beside)) as db:
            db.execute("PRAGMA journal_mode = DELETE")  # readers need no file but this one
            built = Rebuilt(path, reached, digests(db, tables), False)
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.rename(path)
        return built
    finally:
        _remove(beside)


def digests(db: sqlite3.Connection, tables: dict[str, Table]) -> dict[str, str]:
    """sha256 of each table's dump, ordered by key."""
    by_table = {}
    for table in tables.values():
        sha = hashlib.sha256()
        for row in _dump(db, table):
            sha.update(repr(row).encode())
        by_table[table.name] = sha.hexdigest()
    return by_table


def verify(left: sqlite3.Connection, right: sqlite3.Connection, tables: dict[str, Table]) -> RowDifference | None:
    """The first difference of two databases, by table, key and column; None where all digests agree."""
    ours, theirs = digests(left, tables), digests(right, tables)
    for name, table in tables.items():
        if ours[name] != theirs[name]:
            return _first_difference(left, right, table)
    here, there = position(left), position(right)
    return None if here == there else RowDifference("position", (), "seq", here.seq, there.seq)


def _first_difference(left: sqlite3.Connection, right: sqlite3.Connection, table: Table) -> RowDifference | None:
    names = _names(table)
    keys = [names.index(part) for part in table.key]
    for first, other in zip_longest(_dump(left, table), _dump(right, table)):
        if first == other:
            continue
        at, to = (tuple(row[k] for k in keys) if row else None for row in (first, other))
        if first is None or other is None or at != to:
            ours = at is not None and (to is None or at < to)
            key = (at if ours else to) or ()
            return RowDifference(table.name, key, "(row)", "present" if ours else None, None if ours else "present")
        column = next(n for n, (a, b) in enumerate(zip(first, other, strict=True)) if a != b)
        return RowDifference(table.name, at or (), names[column], first[column], other[column])
    return None


def _names(table: Table) -> list[str]:
    return [*table.columns, *table.computed]


def _dump(db: sqlite3.Connection, table: Table) -> Iterator[tuple[object, ...]]:
    order = ", ".join(table.key)
    yield from db.execute(f"SELECT {', '.join(_names(table))} FROM {table.name} ORDER BY {order}")  # noqa: S608


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


async def _nothing() -> AsyncIterator[Sequence[Stored]]:
    return
    yield
