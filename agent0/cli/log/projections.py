"""The read models: how far they are, queries, rebuilding."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.assembly.log.access import open_log
from agent0.assembly.log.full_history import history
from agent0.assembly.runtime.read_models import live_path, log_and_views, reading, reading_log, run_projector
from agent0.cli import console, flags, lookup
from agent0.config.setting_entries import nearest
from agent0.errors import ConfigError, NotFoundError
from agent0.infra.storage.sqlite import guarded_query
from agent0.projections import position, tables


def list_(as_json: console.Json = False) -> None:
    """Every table with its key and number of rows."""
    with lookup.tables() as db:
        rows = [
            {
                "table": table.name,
                "key": ", ".join(table.key),
                "rows": db.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0],  # noqa: S608 - declared names
                "reads": ", ".join(kind.__name__ for kind in table.events) or "all events",
            }
            for table in tables().values()
        ]
    console.table(rows, as_json)


def query(
    sql: Annotated[str, typer.Argument(help="One SELECT over the tables; '-' reads it from standard input.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1_000_000, help="Rows at most.")] = 1000,
    timeout: Annotated[float, typer.Option(min=0.01, max=3600, help="Seconds at most.")] = 5.0,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Tables of `agent0 projections build` instead of the live ones.")
    ] = None,
    as_json: console.Json = False,
) -> None:
    """Ask the tables anything. It can only read."""
    query = sys.stdin.read() if sql == "-" else sql
    if file is None:
        with lookup.tables():
            rows = _query_rows(live_path(flags.settings()), query, limit, timeout)
    elif file.is_file():
        rows = _query_rows(file, query, limit, timeout)
    else:
        raise NotFoundError(f"There is no file {file}.", fix=f"Make it: agent0 projections build --into {file}")
    console.table(rows, as_json, stored=True)


def _query_rows(path: Path, query: str, limit: int, timeout: float) -> list[dict[str, Any]]:
    """Rows of a query; a table that does not exist is answered with the nearest name that does."""
    try:
        return guarded_query(path, query, max_rows=limit, timeout_s=timeout)
    except ConfigError as error:
        missing = error.why.partition("no such table: ")[2].rstrip(".")
        if not missing:
            raise
        if missing in tables():
            fix = f"Make it: agent0 projections build --into FILE --table {missing}"
            raise NotFoundError(f"There is no table {missing} in {path}.", fix=fix) from error
        near = nearest(missing, list(tables()))
        raise NotFoundError(f"There is no table {missing[:80]!r}.", near, "See: agent0 projections list") from error


def lag(as_json: console.Json = False) -> None:
    """How far the tables are behind the log, without catching up."""
    settings = flags.settings()

    async def last() -> int:
        async with reading_log(settings) as log:
            return await log.last_seq()

    end = console.run_async(last)
    with reading(settings) as db:
        at = position(db).seq
    console.record({"log": end, "tables": at, "lag": end - at}, as_json)


def run(profile: console.Profile = None, pairs: console.Set = None) -> None:
    """Keep the tables up to date until stopped; `agent0 run start` does so by itself."""
    settings = flags.settings(profile, pairs)

    async def work() -> None:
        async with open_log(settings, "reader") as log:
            console.say("Keeping the tables up to date. Ctrl-C stops.")
            await run_projector(settings, log)

    console.run_async(work)


def rebuild(
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare with the live tables first; differing is exit 1.")
    ] = False,
    as_json: console.Json = False,
) -> None:
    """Make the tables anew from the log, beside the live ones, then swap."""
    settings = flags.settings()

    async def work() -> dict[str, object]:
        async with log_and_views(settings) as (log, views):
            done = await views.rebuild(history(settings, log), check=verify)
            return {"path": str(done.path), "seq": done.seq, "verified": done.verified, "sha256": done.digests}

    console.record(console.run_async(work), as_json)


def rollback(as_json: console.Json = False) -> None:
    """Go back to the tables before the last rebuild; they catch up by themselves."""

    async def work() -> str:
        async with log_and_views(flags.settings()) as (_, views):
            return str(views.rollback())

    console.record({"path": console.run_async(work)}, as_json)
