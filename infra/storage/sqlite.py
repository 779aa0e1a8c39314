"""SQLite: open databases, and run an untrusted query without letting it write, wait or flood."""

import base64
import difflib
import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from agent0 import errors
from agent0.errors import Agent0Error, ConfigError, NotFoundError, OperationError
from agent0.infra.storage.files import shortage, writable

_MISSING = re.compile(r"no such (table|column): (.+)")
_KNOWN = {
    "table": "SELECT name FROM sqlite_master WHERE type = 'table'",
    "column": "SELECT DISTINCT c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'",
}
"""What is missing -> the names that there are."""
_REBUILD = "`agent0 projections rebuild` makes the tables anew from the log; nothing is lost."
_ROOT = Path(__file__).parents[3]
_READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
_FORBIDDEN_FUNCTIONS = {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "printf", "format"}
"""The last two count to any width in one call, which no limit interrupts; round() does for numbers."""
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 8 << 20,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
}
_LARGEST_RESULT = 64 << 20
_SLACK_S = 0.5
"""Beyond its time, for a query that SQLite itself interrupts."""


def connect(path: Path, read_only: bool = False) -> sqlite3.Connection:
    """Open a database: WAL, explicit transactions, one writer who waits up to 30 s for another.

    Raises:
        NotFoundError: ``read_only`` and there is none.
        OperationError: the file is damaged, or is no database.
    """
    if read_only and not path.exists():
        raise NotFoundError("There are no tables yet.", f"{path} does not exist.", "Start a run first.")
    with explained(path):
        if read_only and not writable(path.parent):
            return _opened(path, "ro&immutable=1")  # else SQLite makes a file beside it, even to read
        try:
            return _opened(path, "ro" if read_only else "rwc")
        except sqlite3.OperationalError:
            if not read_only or not shortage(path.parent):
                raise
            return _opened(path, "rw", alone=True)


def _opened(path: Path, mode: str, *, alone: bool = False) -> sqlite3.Connection:
    """A connection that can read. ``alone``: for reading where a full disk has no room for the file that connections
    share; nobody else has the database open then."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    db = sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None, check_same_thread=False)
    try:
        if alone:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("PRAGMA query_only = ON")
        if mode == "rwc":
            db.execute("PRAGMA journal_mode = WAL")
        # The log is the truth: what a power cut takes from the tables is read from it again.
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA cache_size = -65536")
        db.execute("PRAGMA wal_autocheckpoint = 8000")
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        db.close()
        raise
    return db


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's complaints about a damaged or full file into words for people."""
    try:
        yield
    except sqlite3.OperationalError as error:
        fixes = {"full": "Free some space.", "no such table": "Make them: agent0 projections rebuild"}
        fix = next((fix for pattern, fix in fixes.items() if pattern in str(error)), "Check the folder's permissions.")
        raise OperationError(f"The tables at {path} cannot be used.", f"SQLite says: {error}.", fix) from error
    except sqlite3.DatabaseError as error:
        raise _damaged(path, error) from error


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the database at ``path`` read-only, for query functions."""
    with explained(path), closing(connect(path, read_only=True)) as db:
        yield db


def guarded_query(path: Path, sql: str, *, max_rows: int = 1000, timeout_s: float = 5.0) -> list[dict[str, object]]:
    """Run one reading statement that a person or program typed, in a process of its own: one call of instr, replace or
    LIKE on long text can take hours, and nothing inside SQLite looks at a clock meanwhile.

    It can only read: the file is opened read-only and every action but reading is refused before it runs.

    Raises:
        NotFoundError: there is no such file.
        ConfigError: it is no single reading statement.
        OperationError: too slow, too large, or the file is damaged.
    """
    task = json.dumps([str(path), sql, max_rows, timeout_s])
    command = [sys.executable, "-sPBc", "from agent0.infra.storage.sqlite import answer_query; answer_query()"]
    around = {"PYTHONPATH": str(_ROOT), "LC_ALL": "C.UTF-8"}
    process = subprocess.run(command, input=task.encode(), stdout=subprocess.PIPE, env=around, check=False)  # noqa: S603
    if process.returncode == -signal.SIGALRM:
        raise _slow(timeout_s)
    if process.returncode:
        why = f"Its process ended with status {process.returncode}."
        raise OperationError("The query was not answered.", why, "Ask for fewer columns or rows.")
    answer = json.loads(process.stdout)
    if "error" in answer:
        raise getattr(errors, answer["error"])(*answer["words"])
    return [
        {name: base64.b64decode(cell["base64"]) if isinstance(cell, dict) else cell for name, cell in row}
        for row in answer["rows"]
    ]


def answer_query() -> None:
    """The process of one query: reads it from standard input, writes rows or the error, and is killed by the kernel
    where it takes longer than it may."""
    path, sql, max_rows, timeout_s = json.load(sys.stdin)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, timeout_s + _SLACK_S)
    answer: dict[str, object]
    try:
        answer = {"rows": [[*row.items()] for row in _query(Path(path), sql, max_rows, timeout_s)]}
    except Agent0Error as error:
        answer = {"error": type(error).__name__, "words": (error.what, error.why, error.fix)}
    signal.setitimer(signal.ITIMER_REAL, 0)
    json.dump(answer, sys.stdout, default=lambda blob: {"base64": base64.b64encode(blob).decode()})


def _slow(timeout_s: float) -> OperationError:
    return OperationError(f"The query took longer than {timeout_s:g} s.", fix="Narrow it down.")


def _query(path: Path, sql: str, max_rows: int, timeout_s: float) -> list[dict[str, object]]:
    with closing(connect(path, read_only=True)) as db:
        _guard(db, time.monotonic() + timeout_s)
        try:
            cursor = db.execute(sql)
            if cursor.description is None:
                raise ConfigError("That is no query.", fix="Give one SELECT.")
            return list(_limited(cursor, max_rows))
        except sqlite3.OperationalError as error:
            if "interrupted" in str(error):
                raise _slow(timeout_s) from error
            raise ConfigError("The query cannot be run.", f"SQLite says: {error}.", _nearest(db, error)) from error
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise _damaged(path, error) from error
            raise _refused(error) from error
        except (sqlite3.Warning, ValueError) as error:
            raise _refused(error) from error


def _nearest(db: sqlite3.Connection, error: Exception) -> str:
    """Which table or column was meant, where one has a similar name."""
    match = _MISSING.search(str(error))
    if match is None:
        return ""
    kind, name = match[1], match[2].rpartition(".")[2]
    db.set_authorizer(None)  # of the query, which is over
    names = {row[0] for row in db.execute(_KNOWN[kind])} - {name}  # another table may have a column of this name
    near = difflib.get_close_matches(name, sorted(names), 1)
    hint = f"Did you mean {near[0]}? " if near else ""
    return hint + ("See: agent0 projections list" if kind == "table" else "See: agent0 projections show TABLE")


def _damaged(path: Path, error: Exception) -> OperationError:
    return OperationError(f"The tables at {path} are damaged.", f"SQLite says: {error}.", _REBUILD)


def _refused(error: Exception) -> ConfigError:
    return ConfigError("The query is refused.", f"SQLite says: {error}.", "Give one SELECT; it may only read.")


def _guard(db: sqlite3.Connection, deadline: float) -> None:
    db.execute("PRAGMA query_only = ON")
    # Virtual tables connect at first use, which the authorizer would refuse: these do it before.
    tables = db.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'").fetchall()
    for name in ["json_each", "json_tree", *(row[0] for row in tables)]:
        db.execute(f'SELECT 1 FROM "{name}" LIMIT 0')  # noqa: S608 - from the schema
    for limit, value in _LIMITS.items():
        db.setlimit(limit, value)
    db.set_progress_handler(lambda: time.monotonic() > deadline, 1000)
    db.set_authorizer(_authorize)


def _authorize(action: int, first: str | None, second: str | None, _database: str | None, _inner: str | None) -> int:
    if action in _READS:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and second not in _FORBIDDEN_FUNCTIONS:
        return sqlite3.SQLITE_OK
    # Full-text search asks for this one by itself; it only reads a counter.
    if action == sqlite3.SQLITE_PRAGMA and first == "data_version" and second is None:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _limited(cursor: sqlite3.Cursor, max_rows: int) -> Iterator[dict[str, object]]:
    names, size = [column[0] for column in cursor.description], 0
    for number, values in enumerate(cursor):
        size += sum(len(value) for value in values if isinstance(value, str | bytes))
        if number == max_rows:
            raise OperationError(f"The query gives more than {max_rows} rows.", fix="Add LIMIT, or raise the limit.")
        if size > _LARGEST_RESULT:
            raise OperationError("The query gives more than 64 MiB.", fix="Ask for fewer columns or rows.")
        yield dict(zip(names, values, strict=True))
