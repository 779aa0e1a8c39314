"""Tables in the order of their keys, and as of any event or moment."""

from pathlib import Path
from time import monotonic
from typing import Annotated

import typer

from agent0.assembly.replay.stored_experiments import Progress
from agent0.assembly.replay.tables_at import Build, known_tables, moment
from agent0.assembly.replay.tables_at import build as build_file
from agent0.cli import console, flags, lookup
from agent0.errors import ConfigError
from agent0.projections import select


def show(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="See agent0 projections list.")],
    limit: console.Limit = 20,
    as_json: console.Json = False,
) -> None:
    """The first rows of one table, in the order of its key."""
    definition = known_tables((table,))[table]
    with lookup.tables() as db:
        order = ", ".join(definition.key)
        sql = f"SELECT * FROM {table} ORDER BY {order} LIMIT ?"  # noqa: S608 - a declared name
        rows = console.limited(lambda n: select(db, sql, (n,)), limit)
    console.table(rows, as_json, stored=True)


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
    if until_seq and until_time:
        raise ConfigError("--until-seq and --until-time exclude each other.", fix="Give one of them.")
    time = moment(until_time) if until_time else None
    request = Build(into, tuple(table or ()), until_seq or 0, time, source)
    settings = flags.settings()
    console.record(console.run_async(lambda: build_file(settings, request, _RebuildReporter())), as_json)


class _RebuildReporter:
    """Says once a second how far the reading is."""

    def __init__(self) -> None:
        self._last = monotonic()

    def __call__(self, at: Progress) -> None:
        if at.done < at.all and monotonic() < self._last + 1:
            return
        self._last = monotonic()
        rate = at.done / at.wall_s if at.wall_s else 0.0
        console.say(f"{at.done:,} of {at.all:,} events, {rate:,.0f} a second, {at.left_s:.0f} s left")
