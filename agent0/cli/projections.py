"""The read models: how far they are, queries, rebuilding."""

from typing import Annotated

import typer

from agent0.cli import terminal

app = typer.Typer(help="The tables (read models): list, query, rebuild.")


@app.command("list")
def list_(as_json: terminal.Json = False) -> None:
    """Every table with its key and number of rows."""
    from projections import tables

    with terminal.tables() as db:
        rows = [
            {
                "table": table.name,
                "key": ", ".join(table.key),
                "rows": db.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0],  # noqa: S608 - declared names
                "reads": ", ".join(kind.__name__ for kind in table.events) or "all events",
            }
            for table in tables().values()
        ]
    terminal.table(rows, as_json)


@app.command()
def show(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="See agent0 projections list.")],
    limit: terminal.Limit = 20,
    as_json: terminal.Json = False,
) -> None:
    """The first rows of one table, in the order of its key."""
    from agent0.configuration import nearest
    from agent0.errors import NotFoundError
    from projections import select, tables

    known = tables()
    if table not in known:
        raise NotFoundError(
            f"There is no table {table[:80]!r}.", nearest(table, list(known)), "See: agent0 projections list"
        )
    with terminal.tables() as db:
        order = ", ".join(known[table].key)
        rows = select(db, f"SELECT * FROM {table} ORDER BY {order} LIMIT ?", (limit,))  # noqa: S608 - a declared name
    terminal.table(rows, as_json)


@app.command()
def query(
    sql: Annotated[str, typer.Argument(help="One SELECT over the tables; '-' reads it from standard input.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1_000_000, help="Rows at most.")] = 1000,
    timeout: Annotated[float, typer.Option(min=0.01, max=3600, help="Seconds at most.")] = 5.0,
    as_json: terminal.Json = False,
) -> None:
    """Ask the tables anything. It can only read."""
    import sys

    from agent0.assembly_tables import live_path
    from infra.storage import guarded_query

    with terminal.tables():
        asked = sys.stdin.read() if sql == "-" else sql
        rows = guarded_query(live_path(terminal.settings()), asked, max_rows=limit, timeout_s=timeout)
    terminal.table(rows, as_json)


@app.command()
def lag(as_json: terminal.Json = False) -> None:
    """How far the tables are behind the log, without catching up."""
    from agent0.assembly_tables import reading, reading_log
    from projections import position

    held = terminal.settings()

    async def last() -> int:
        async with reading_log(held) as log:
            return await log.last_seq()

    end = terminal.run_async(last)
    with reading(held) as db:
        at = position(db).seq
    terminal.record({"log": end, "tables": at, "lag": end - at}, as_json)


@app.command()
def run(profile: terminal.Profile = None, pairs: terminal.Set = None) -> None:
    """Keep the tables up to date until stopped; `agent0 run start` does so by itself."""
    from agent0.assembly import open_log
    from agent0.assembly_tables import run_projector

    held = terminal.settings(profile, pairs)

    async def work() -> None:
        async with open_log(held, "reader") as log:
            terminal.say("Keeping the tables up to date. Ctrl-C stops.")
            await run_projector(held, log)

    terminal.run_async(work)


@app.command()
def rebuild(
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare with the live tables first; differing is exit 1.")
    ] = False,
    as_json: terminal.Json = False,
) -> None:
    """Make the tables anew from the log, beside the live ones, then swap."""
    from agent0.assembly_history import history
    from agent0.assembly_tables import log_and_views

    held = terminal.settings()

    async def work() -> dict[str, object]:
        async with log_and_views(held) as (log, views):
            done = await views.rebuild(history(held, log), check=verify)
            return {"path": str(done.path), "seq": done.seq, "verified": done.verified, "sha256": done.digests}

    terminal.record(terminal.run_async(work), as_json)


@app.command()
def rollback(as_json: terminal.Json = False) -> None:
    """Go back to the tables before the last rebuild; they catch up by themselves."""
    from agent0.assembly_tables import log_and_views

    async def work() -> str:
        async with log_and_views(terminal.settings()) as (_, views):
            return str(views.rollback())

    terminal.record({"path": terminal.run_async(work)}, as_json)
