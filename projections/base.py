"""The base of read models: a table is a declaration and one pure function from an event to rows.

A row names its key and only the columns it knows; rows of one key are merged, later over earlier. So applying events
once, in any split into batches, gives one result, and no table depends on when or in which order it was written.
"""

import inspect
import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from agent0.errors import NotFoundError
from agent0.events.base import Event, Recorded
from agent0.registry import Registry

Row = dict[str, Any]
Columns = Mapping[str, type]
Behind = tuple[str, Sequence[object]]
"""A condition with its parameters; no text: none."""


@dataclass(frozen=True)
class Table:
    """A declared table. ``events`` empty: it reads all of them.

    ``first`` columns keep the first value they get, ``adds`` columns sum up (whole numbers: a sum of others depends on
    its order), ``most`` columns keep the largest, all others keep the last. ``computed`` columns are SQL expressions
    over the others; ``search`` columns get a full-text index. Those that are not among ``columns`` are not stored, and
    the key is then a whole number.
    """

    name: str
    key: tuple[str, ...]
    columns: Columns
    events: tuple[type[Event], ...]
    project: Callable[..., Iterable[Row]]
    key_of: Callable[[Row], Any]
    with_body: bool
    first: frozenset[str]
    adds: frozenset[str]
    most: frozenset[str]
    computed: Mapping[str, str]
    indexes: tuple[tuple[str, ...], ...]
    search: tuple[str, ...]

    @property
    def index_only(self) -> bool:
        """Whether its full-text index is of texts that the table does not store."""
        return not self.columns.keys() >= set(self.search)

    def merge(self, existing: Row, row: Row) -> None:
        """Merge ``row`` into ``existing``, by the rule of each column."""
        if not (self.first or self.adds or self.most):
            existing.update(row)
            return
        for name, value in row.items():
            if name in self.adds:
                existing[name] = existing.get(name, 0) + value
            elif name in self.most:
                existing[name] = max(existing.get(name, value), value)
            elif not (name in self.first and existing.get(name) is not None):
                existing[name] = value

    def upsert(self, columns: Sequence[str]) -> str:
        """The SQL statement that merges rows with these columns into stored ones."""
        marks = ", ".join("?" * len(columns))
        changes = ", ".join(f"{c} = {self._merged(c)}" for c in columns if c not in self.key)
        action = f"UPDATE SET {changes}" if changes else "NOTHING"
        # Names come from declarations in code, never from data.
        return (
            f"INSERT INTO {self.name} ({', '.join(columns)}) VALUES ({marks}) "  # noqa: S608
            f"ON CONFLICT ({', '.join(self.key)}) DO {action}"
        )

    def _merged(self, column: str) -> str:
        if column in self.adds:
            return f"coalesce({self.name}.{column}, 0) + excluded.{column}"
        if column in self.most:
            return f"max(coalesce({self.name}.{column}, excluded.{column}), excluded.{column})"
        if column in self.first:
            return f"coalesce({self.name}.{column}, excluded.{column})"
        return f"excluded.{column}"


MOST_TERMS = 32
"""Words and phrases of a query that are looked for."""
_term = re.compile(r'"([^"]+)"|([^\s"]+)')


def match_of(query: str) -> str:
    """``query`` as an expression of FTS5 that no text makes fail: all its words and "quoted phrases", a trailing ``*``
    meaning any ending; empty where it has none. What is behind the first ``MOST_TERMS`` is left out."""
    terms = [phrase or word for phrase, word in _term.findall(query.replace("\0", " "))]
    return " ".join([_phrase(term) for term in terms if any(map(str.isalnum, term))][:MOST_TERMS])


def _phrase(term: str) -> str:
    bare = term.rstrip("*")
    return f'"{bare}"{"*" if bare != term else ""}'


TABLES = Registry[str, Table]("tables", "agent0.projections")


def projection(
    *,
    key: tuple[str, ...],
    columns: Columns,
    events: tuple[type[Event], ...] = (),
    first: Iterable[str] = (),
    adds: Iterable[str] = (),
    most: Iterable[str] = (),
    computed: Mapping[str, str] | None = None,
    indexes: tuple[tuple[str, ...], ...] = (),
    search: tuple[str, ...] = (),
) -> Callable[[Callable[..., Iterable[Row]]], Callable[..., Iterable[Row]]]:
    """Register ``fn(recorded) -> rows`` as the table of its name. A second parameter receives the stored
    body as text."""

    def register(fn: Callable[..., Iterable[Row]]) -> Callable[..., Iterable[Row]]:
        entry = Table(
            name=fn.__name__,
            key=key,
            columns=columns,
            events=events,
            project=fn,
            key_of=itemgetter(*key),
            with_body=len(inspect.signature(fn).parameters) > 1,
            first=frozenset(first),
            adds=frozenset(adds),
            most=frozenset(most),
            computed=computed or {},
            indexes=indexes,
            search=search,
        )
        TABLES.add(fn.__name__, entry)
        return fn

    return register


def stamp(time: datetime | Recorded) -> str:
    """Format a time as UTC text of fixed width with microseconds, so that text order is time order."""
    moment = time.time if isinstance(time, Recorded) else time
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def as_json(value: object) -> str:
    """Write ``value`` as canonical JSON text for a column."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def select(db: sqlite3.Connection, sql: str, params: Sequence[object] = (), parse: Sequence[str] = ()) -> list[Row]:
    """Run a query; returns all rows as dicts. Columns in ``parse`` are read from JSON."""
    return list(each(db, sql, params, parse))


def each(db: sqlite3.Connection, sql: str, params: Sequence[object] = (), parse: Sequence[str] = ()) -> Iterator[Row]:
    """Run a query; yields rows as dicts, one by one, with columns in ``parse`` read from JSON."""
    cursor = db.execute(sql, params)
    names = [column[0] for column in cursor.description]
    for values in cursor:
        row = dict(zip(names, values, strict=True))
        for name in parse:
            row[name] = json.loads(row[name]) if row[name] else None
        yield row


def find(
    db: sqlite3.Connection,
    query: str,
    filters: Mapping[str, object],
    order: str,
    limit: int = -1,
    parse: Sequence[str] = (),
    params: Sequence[object] = (),
    behind: Behind = ("", ()),
) -> list[Row]:
    """Run ``query`` with a WHERE clause: columns equal those values of ``filters`` that are neither None nor empty.

    ``params`` are those of ``query`` itself; ``limit`` -1 means all; ``behind`` is what ``behind_row`` gives.
    """
    conditions = {name: value for name, value in filters.items() if value not in (None, "")}
    parts = [*(f"{name} = ?" for name in conditions), *([behind[0]] if behind[0] else [])]
    clause = " WHERE " + " AND ".join(parts) if parts else ""
    return select(
        db, f"{query}{clause} ORDER BY {order} LIMIT ?", [*params, *conditions.values(), *behind[1], limit], parse
    )


def behind_row(db: sqlite3.Connection, table: str, key: Mapping[str, object], order: Sequence[str]) -> Behind:
    """The condition of rows that stand behind the row of ``key`` where ``table`` is ordered by ``order``: so a page
    goes on where the one before it ended, whatever was added meanwhile.

    Raises:
        NotFoundError: there is no such row.
    """
    names = ", ".join(order)
    rows = find(db, f"SELECT {names} FROM {table}", key, names, 1)  # noqa: S608 - names of our own
    if not rows:
        name = str([*key.values()][-1])[:80]
        raise NotFoundError(f"There is no {name!r} to go on from.", fix="Begin without a cursor.")
    return f"({names}) > ({', '.join('?' * len(order))})", tuple(rows[0].values())
