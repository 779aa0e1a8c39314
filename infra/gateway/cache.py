"""The cache of answers that cost money: exact, in SQLite, bounded in age and size.

The key is everything that an answer depends on: provider, model, every turn, tool and schema, all of sampling with its
seed (the index of the sample), and the digest of an adapter. Similar requests are different requests.
"""

import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent0.events.base import sha256
from agent0.infra.gateway.records import answer_json, read_answer, request_json
from agent0.ports.models import GenerateRequest, Generation

_TABLE = """CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, provider TEXT, model TEXT, cost INTEGER, body TEXT, bytes INTEGER, made REAL, used REAL,
    hits INTEGER DEFAULT 0) WITHOUT ROWID"""
_DAY_S = 86_400.0
PATIENCE_S = 1.0
"""How long another process may hold the file; then the cache is done without."""


@dataclass(frozen=True)
class Cached:
    """An answer that is kept, and what it cost in nano-dollars; None: unknown."""

    answer: Generation
    cost: int | None


@dataclass(frozen=True)
class CachedModel:
    """What is kept of a model: answers, bytes, hits, and what they saved in nano-dollars."""

    provider: str
    model: str
    answers: int
    bytes: int
    hits: int
    saved: int


class AnswerCache:
    """Keeps answers at ``path`` for ``days``, at most ``mib`` of them: those that were used longest ago go first. A
    damaged file is begun anew."""

    def __init__(self, path: Path, days: float, mib: float) -> None:
        self._path, self._days, self._most = path, days, int(mib * (1 << 20))
        self._db: sqlite3.Connection | None = None

    def get(self, provider: str, model: str, request: GenerateRequest, at: float) -> Cached | None:
        """The answer to exactly this request; None where there is none that is young enough at ``at`` (Unix time)."""
        key, oldest = _key(provider, model, request), at - self._days * _DAY_S
        with suppress(sqlite3.Error, ValueError, TypeError, KeyError):  # it can be asked for again
            db = self._opened()
            row = db.execute("SELECT body, cost FROM answers WHERE key = ? AND made >= ?", (key, oldest)).fetchone()
            if row is None:
                return None
            cached = Cached(read_answer(row[0]), row[1])
            db.execute("UPDATE answers SET used = ?, hits = hits + 1 WHERE key = ?", (at, key))
            return cached
        return None

    def put(
        self, provider: str, model: str, request: GenerateRequest, answer: Generation, cost: int | None, at: float
    ) -> None:
        """Keep an answer, and drop what is too old or too much."""
        body = answer_json(answer)
        row = (_key(provider, model, request), provider, model, cost, body, len(body.encode()), at, at)
        with suppress(sqlite3.Error), self._opened() as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)", row)
            db.execute("DELETE FROM answers WHERE made < ?", (at - self._days * _DAY_S,))
            self._shrink(db)

    def models(self) -> list[CachedModel]:
        """What is kept of each model."""
        rows = self._opened().execute(
            "SELECT provider, model, count(*), sum(bytes), sum(hits), sum(hits * coalesce(cost, 0)) FROM answers "
            "GROUP BY provider, model ORDER BY provider, model"
        )
        return [CachedModel(*row) for row in rows]

    def clear(self) -> int:
        """Drop everything; how many answers that were."""
        with self._opened() as db:
            return db.execute("DELETE FROM answers").rowcount

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _shrink(self, db: sqlite3.Connection) -> None:
        """Drop what was used longest ago, as far as the rest fits."""
        [total] = db.execute("SELECT coalesce(sum(bytes), 0) FROM answers").fetchone()
        if total <= self._most:
            return
        oldest = db.execute("SELECT key, bytes FROM answers ORDER BY used, key").fetchall()
        for key, size in oldest:
            if total <= self._most:
                return
            db.execute("DELETE FROM answers WHERE key = ?", (key,))
            total -= size

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                self._db = self._connect()
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:  # no database, or a damaged one: what was kept can be paid for again
                self._path.unlink()
                self._db = self._connect()
        return self._db

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, timeout=PATIENCE_S, check_same_thread=False, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute(_TABLE)
        except sqlite3.Error:
            db.close()
            raise
        return db


def _key(provider: str, model: str, request: GenerateRequest) -> str:
    return sha256(f"{provider}\n{model}\n{request_json(request)}")
