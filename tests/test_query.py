"""A stranger's query can read and nothing else, for a bounded time, with a bounded answer."""

import hashlib
from pathlib import Path

import pytest

from agent0.errors import Agent0Error, ConfigError, NotFoundError, OperationError
from agent0.infra.storage.sqlite import connect, guarded_query, reading
from agent0.projections import Views, tables
from tests.story import bodies, whole_run

ENDLESS = "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n)"
LONG = "replace(hex(zeroblob(2000000)), '0', 'a')"

HOSTILE = {
    "attach": "ATTACH DATABASE '{other}' AS other",
    "attach memory": "ATTACH ':memory:' AS other",
    "detach": "DETACH main",
    "vacuum into": "VACUUM INTO '{other}'",
    "vacuum": "VACUUM",
    "pragma": "PRAGMA query_only = OFF",
    "pragma reading": "PRAGMA table_info(runs)",
    "pragma function": "SELECT * FROM pragma_table_info('runs')",
    "pragma writable": "PRAGMA writable_schema = ON",
    "data version set": "PRAGMA data_version = 3",
    "extension": "SELECT load_extension('{other}')",
    "insert": "INSERT INTO runs (run) VALUES ('x')",
    "insert returning": "INSERT INTO runs (run) VALUES ('x') RETURNING run",
    "update": "UPDATE runs SET status = 'finished'",
    "upsert in a with": "WITH x AS (SELECT 1) DELETE FROM runs",
    "delete": "DELETE FROM runs",
    "replace": "REPLACE INTO runs (run) VALUES ('x')",
    "create": "CREATE TABLE mine (x)",
    "create temp": "CREATE TEMP TABLE mine (x)",
    "create view": "CREATE TEMP VIEW mine AS SELECT 1",
    "create trigger": "CREATE TEMP TRIGGER mine AFTER INSERT ON runs BEGIN SELECT 1; END",
    "virtual": "CREATE VIRTUAL TABLE mine USING fts5(x)",
    "drop": "DROP TABLE runs",
    "alter": "ALTER TABLE runs RENAME TO gone",
    "reindex": "REINDEX",
    "analyze": "ANALYZE",
    "schema": "UPDATE sqlite_master SET sql = ''",
    "begin": "BEGIN EXCLUSIVE",
    "savepoint": "SAVEPOINT mine",
    "search command": "INSERT INTO events_fts (events_fts) VALUES ('delete-all')",
    "two statements": "SELECT 1; DELETE FROM runs",
    "two selects": "SELECT 1; SELECT 2",
    "nothing": "",
    "comment": "-- nothing",
    "no sql": "show me everything",
    "no table": "SELECT * FROM nowhere",
    "null byte": "SELECT 1\x00",
    "parameter": "SELECT ?",
    "endless": ENDLESS + " SELECT sum(x) FROM n",
    "cross join": "SELECT count(*) FROM events a, events b, events c, events d, events e",
    "sort": ENDLESS + " SELECT x FROM n ORDER BY x DESC",
    "too many rows": ENDLESS + " SELECT x FROM n",
    "huge value": "SELECT zeroblob(1000000000)",
    "huge text": "SELECT hex(zeroblob(8000000))",
    "wide answer": ENDLESS + " SELECT replace(hex(zeroblob(4000000)), '00', 'xx') FROM n LIMIT 90",
    "endless format": "SELECT printf('%.*c', 900000000, 'x')",
    "endless format, second name": "SELECT format('%.*c', 900000000, 'x')",
    "endless instr": f"SELECT instr({LONG}, substr({LONG}, 1, 2000000) || 'b')",
    "endless replace": f"SELECT length(replace({LONG}, substr({LONG}, 1, 2000000) || 'b', ''))",
    "deep expression": "SELECT " + "(" * 5000 + "1" + ")" * 5000,
    "long pattern": "SELECT 'a' LIKE '" + "%a" * 5000 + "'",
}


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Path:
    views = Views(tmp_path_factory.mktemp("views"), connect, tables(), "stream")
    projector = views.projector()
    projector.apply(bodies(whole_run(iterations=1, tasks=3, attempts=2)))
    projector.close()
    return views.live


def fingerprint(view: Path) -> str:
    return hashlib.sha256(view.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_queries_are_refused(view: Path, tmp_path: Path, name: str) -> None:
    before, other = fingerprint(view), tmp_path / "other"
    with pytest.raises((ConfigError, OperationError)):
        guarded_query(view, HOSTILE[name].format(other=other), max_rows=50, timeout_s=0.1)
    assert fingerprint(view) == before
    assert not other.exists()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT run, status FROM runs", [{"run": "r1", "status": "finished"}]),
        ("SELECT count(*) AS n FROM tasks JOIN attempts USING (run, task)", [{"n": 6}]),
        ("VALUES (1)", [{"column1": 1}]),
        ("SELECT value FROM json_each('[7]')", [{"value": 7}]),
        ("SELECT count(*) AS n FROM events_fts WHERE events_fts MATCH 'refused'", [{"n": 1}]),
        (ENDLESS + " SELECT max(x) AS top FROM (SELECT x FROM n LIMIT 50)", [{"top": 50}]),
        ("SELECT json_extract(body, '$.data.profile') AS p FROM events WHERE type = 'RunStarted'", [{"p": "tiny"}]),
        ("SELECT 1 AS x WHERE 0", []),
    ],
)
def test_honest_queries_are_answered(view: Path, sql: str, expected: list[dict[str, object]]) -> None:
    assert guarded_query(view, sql, max_rows=50, timeout_s=5) == expected


@pytest.mark.parametrize(
    ("sql", "near"),
    [
        ("SELECT statu FROM runs", "Did you mean status?"),
        ("SELECT r.statu FROM runs r", "Did you mean status?"),
        ("SELECT 1 FROM attempt", "Did you mean attempts?"),
        ("SELECT xyzzyx FROM runs", "no such column: xyzzyx. See:"),
    ],
)
def test_what_a_query_may_have_meant_is_named(view: Path, sql: str, near: str) -> None:
    with pytest.raises(ConfigError) as refused:
        guarded_query(view, sql, max_rows=50, timeout_s=5)
    assert near in str(refused.value)


def test_a_column_of_another_table_is_not_offered_for_itself(view: Path) -> None:
    with pytest.raises(ConfigError, match="no such column: kind") as refused:
        guarded_query(view, "SELECT kind FROM runs")
    assert "mean kind?" not in str(refused.value)


def test_a_query_names_its_limits(view: Path) -> None:
    assert len(guarded_query(view, "SELECT seq FROM events LIMIT 50", max_rows=50)) == 50
    with pytest.raises(OperationError, match="more than 50 rows"):
        guarded_query(view, "SELECT seq FROM events", max_rows=50)
    with pytest.raises(OperationError, match=r"longer than 0\.1 s"):
        guarded_query(view, HOSTILE["endless"], timeout_s=0.1)
    with pytest.raises(ConfigError, match=r"refused.*only read"):
        guarded_query(view, "DELETE FROM runs")


def test_a_damaged_file_says_rebuild(view: Path, tmp_path: Path) -> None:
    torn = tmp_path / "torn.db"
    body = bytearray(view.read_bytes())
    body[4096:] = b"\x5a" * (len(body) - 4096)
    torn.write_bytes(body)
    noise = tmp_path / "noise.db"
    noise.write_bytes(b"this is no database" * 1000)
    for path in (torn, noise):
        with pytest.raises(OperationError, match="projections rebuild"):
            guarded_query(path, "SELECT * FROM runs")
        with pytest.raises(OperationError, match="projections rebuild"), reading(path) as db:
            db.execute("SELECT * FROM runs").fetchall()


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no tables yet"):
        guarded_query(tmp_path / "view.db", "SELECT 1")
    with pytest.raises(Agent0Error, match="cannot be used"):
        connect(tmp_path / "nowhere" / "view.db")


def test_a_reader_cannot_write(view: Path) -> None:
    with pytest.raises(OperationError, match="readonly"), reading(view) as db:
        db.execute("DELETE FROM runs")
