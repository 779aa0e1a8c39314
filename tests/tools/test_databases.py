"""SQL on databases of the work folder: rows as a small table, all of a call or nothing of it, and no other file."""

import sqlite3
from pathlib import Path

import pytest

from agent0.events.values import ToolCall, ToolResult, ToolState
from agent0.infra.sandbox import Bubblewrap
from agent0.settings import PolicyConfig
from agent0.tools.calling import call_tool
from agent0.tools.workspace import Workspace

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def query(work: Workspace, sql: str, database: str = "shop.db") -> ToolResult:
    return await call_tool(ToolCall(name="sqlite_query", arguments={"database": database, "sql": sql}), work)


async def test_tables_are_made_changed_and_read(sandbox: Bubblewrap, tmp_path: Path) -> None:
    work = Workspace(sandbox, ["sqlite_query"])
    made = await query(
        work, "-- a shop\nCREATE TABLE t(name TEXT, price REAL); INSERT INTO t VALUES ('tea; ''hot''', 3.5)"
    )
    assert (made.state, made.output) == (ToolState.OK, "done\n1 row changed")
    await query(work, "INSERT INTO t VALUES (NULL, 1), (x'00ff', 2); /* no more */")
    shown = await query(work, "SELECT * FROM t ORDER BY price; SELECT count(*) AS n FROM t;")
    assert shown.output == "name | price\nNULL | 1.0\n<2 bytes> | 2.0\ntea; 'hot' | 3.5\n(3 rows)\nn\n3\n(1 row)"
    (tmp_path / "copy.db").write_bytes(work.files["shop.db"])
    with sqlite3.connect(tmp_path / "copy.db") as db:
        assert db.execute("SELECT sum(price) FROM t").fetchone() == (6.5,)
    db.close()


async def test_a_database_that_is_there_is_read_and_reading_changes_nothing(
    sandbox: Bubblewrap, tmp_path: Path
) -> None:
    with sqlite3.connect(tmp_path / "a.db") as db:
        db.execute(
            "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 99) SELECT i FROM n"
        )
    db.close()
    data = (tmp_path / "a.db").read_bytes()
    work = Workspace(sandbox, ["sqlite_query"], files={"data/a.db": data, "b": b"untouched"})
    result = await query(work, "SELECT i FROM t", "./data/a.db")
    assert len(result.output.splitlines()) == 52
    assert result.output.endswith("(more than 50 rows)")
    wide = await query(work, "SELECT printf('%0200d', 1) AS n", "data/a.db")
    assert wide.output == f"n\n{'0' * 80}...\n(1 row)"
    assert work.files == {"data/a.db": data, "b": b"untouched"}


async def test_a_call_that_fails_leaves_the_database_as_it_was(sandbox: Bubblewrap) -> None:
    work = Workspace(sandbox, ["sqlite_query"])
    await query(work, "CREATE TABLE t(n)")
    before = work.files
    failed = await query(work, "INSERT INTO t VALUES (1); INSERT INTO missing VALUES (1)")
    assert failed.state is ToolState.ERROR
    assert failed.output.endswith("SQLite says: no such table: missing. Nothing was kept of this call.")
    assert work.files == before
    nothing = await query(work, "SELECT 1", "new.db")
    assert (nothing.state, work.files) == (ToolState.OK, before)


@pytest.mark.parametrize(
    "sql", ["DROP TABLE t", "drop table t", " /* ; */ Drop table t", "SELECT 1; -- x\nDROP TABLE t"]
)
async def test_the_policy_says_how_statements_begin(sandbox: Bubblewrap, sql: str) -> None:
    policy = PolicyConfig(sql=("CREATE", "SELECT"))
    work = Workspace(sandbox, ["sqlite_query"], policy)
    await query(work, "CREATE TABLE t(n)")
    result = await query(work, sql)
    assert result.state is ToolState.ERROR
    assert result.output == "sql: DROP is not allowed here. Statements begin with one of: CREATE, SELECT"
    assert (await query(work, "SELECT * FROM t")).state is ToolState.OK


async def test_no_other_file_of_the_work_folder_is_there(sandbox: Bubblewrap) -> None:
    """Even where a person allowed ATTACH: what it makes is nowhere."""
    policy = PolicyConfig(sql=("ATTACH", "CREATE", "SELECT"))
    work = Workspace(sandbox, ["sqlite_query"], policy)
    await query(work, "CREATE TABLE t AS SELECT 'secret' AS s", "other.db")
    before = work.files
    result = await query(work, "ATTACH 'other.db' AS o; SELECT * FROM o.t", "mine.db")
    assert "no such table: o.t" in result.output
    assert (await query(work, "ATTACH 'third.db' AS o; CREATE TABLE o.t(n)", "mine.db")).state is ToolState.OK
    assert work.files == before
