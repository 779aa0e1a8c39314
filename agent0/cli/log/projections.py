"""The read models: how far they are, queries, rebuilding."""

import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent0.cli import console
from agent0.errors import ConfigError, NotFoundError

if TYPE_CHECKING:
    from agent0.assembly.replay.stored_experiments import Progress


def list_(as_json: console.Json = False) -> None:
    """Every table with its key and number of rows."""
    from agent0.projections import tables

    with console.tables() as db:
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


def show(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="See agent0 projections list.")],
    limit: console.Limit = 20,
    as_json: console.Json = False,
) -> None:
    """The first rows of one table, in the order of its key."""
    from agent0.assembly.replay.tables_at import known_tables
    from agent0.projections import select

    definition = known_tables((table,))[table]
    with console.tables() as db:
        order = ", ".join(definition.key)
        sql = f"SELECT * FROM {table} ORDER BY {order} LIMIT ?"  # noqa: S608 - a declared name
        rows = console.limited(lambda n: select(db, sql, (n,)), limit)
    console.table(rows, as_json, stored=True)


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
    from agent0.assembly.runtime.read_models import live_path

    query = sys.stdin.read() if sql == "-" else sql
    if file is None:
        with console.tables():
            rows = _query_rows(live_path(console.settings()), query, limit, timeout)
    elif file.is_file():
        rows = _query_rows(file, query, limit, timeout)
    else:
        raise NotFoundError(f"There is no file {file}.", fix=f"Make it: agent0 projections build --into {file}")
    console.table(rows, as_json, stored=True)


def _query_rows(path: Path, query: str, limit: int, timeout: float) -> list[dict[str, Any]]:
    """Rows of a query; a table that does not exist is answered with the nearest name that does."""
    from agent0.config.setting_entries import nearest
    from agent0.infra.storage.sqlite import guarded_query
    from agent0.projections import tables

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
    from agent0.assembly.runtime.read_models import reading, reading_log
    from agent0.projections import position

    settings = console.settings()

    async def last() -> int:
        async with reading_log(settings) as log:
            return await log.last_seq()

    end = console.run_async(last)
    with reading(settings) as db:
        at = position(db).seq
    console.record({"log": end, "tables": at, "lag": end - at}, as_json)


def run(profile: console.Profile = None, pairs: console.Set = None) -> None:
    """Keep the tables up to date until stopped; `agent0 run start` does so by itself."""
    from agent0.assembly.log.access import open_log
    from agent0.assembly.runtime.read_models import run_projector

    settings = console.settings(profile, pairs)

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
    from agent0.assembly.log.full_history import history
    from agent0.assembly.runtime.read_models import log_and_views

    settings = console.settings()

    async def work() -> dict[str, object]:
        async with log_and_views(settings) as (log, views):
            done = await views.rebuild(history(settings, log), check=verify)
            return {"path": str(done.path), "seq": done.seq, "verified": done.verified, "sha256": done.digests}

    console.record(console.run_async(work), as_json)


def build(
    into: Annotated[
        Path,
        typer.Option(
            metavar="FILE", callback=console.in_folder, help="The SQLite file to make; it may not be there yet."
        ),
    ],
    table: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this table; may be repeated.")] = None,
    until_seq: Annotated[int | None, typer.Option(metavar="N", min=1, help="As of this event.")] = None,
    until_time: Annotated[
        str, typer.Option(metavar="TIME", help="As of this moment: ISO 8601, UTC where it names no zone.")
    ] = "",
    source: Annotated[
        Path | None, typer.Option("--from", metavar="ARCHIVE", help="From an archive instead of the log.")
    ] = None,
    as_json: console.Json = False,
) -> None:
    """Make the tables as of any event or moment in a file of their own. Nothing else is written; ask them with
    `agent0 projections query --file FILE`."""
    from agent0.assembly.replay.tables_at import Build, moment
    from agent0.assembly.replay.tables_at import build as build_file

    if until_seq and until_time:
        raise ConfigError("--until-seq and --until-time exclude each other.", fix="Give one of them.")
    time = moment(until_time) if until_time else None
    request = Build(into, tuple(table or ()), until_seq or 0, time, source)
    settings = console.settings()
    console.record(console.run_async(lambda: build_file(settings, request, _RebuildReporter())), as_json)


class _RebuildReporter:
    """Says once a second how far the reading is."""

    def __init__(self) -> None:
        self._last = monotonic()

    def __call__(self, at: "Progress") -> None:
        if at.done < at.all and monotonic() < self._last + 1:
            return
        self._last = monotonic()
        rate = at.done / at.wall_s if at.wall_s else 0.0
        console.say(f"{at.done:,} of {at.all:,} events, {rate:,.0f} a second, {at.left_s:.0f} s left")


def rollback(as_json: console.Json = False) -> None:
    """Go back to the tables before the last rebuild; they catch up by themselves."""
    from agent0.assembly.runtime.read_models import log_and_views

    async def work() -> str:
        async with log_and_views(console.settings()) as (_, views):
            return str(views.rollback())

    console.record({"path": console.run_async(work)}, as_json)
