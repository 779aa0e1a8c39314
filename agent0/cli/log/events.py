"""The events themselves: follow, look up, search, count, verify, export, import, archive."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.assembly.log.export import export as write
from agent0.assembly.log.export import look_into
from agent0.assembly.log.integrity import check_log
from agent0.assembly.log.restore import bring
from agent0.assembly.log.rollover import archive as put_away
from agent0.assembly.log.rollover import set_aside as note
from agent0.assembly.runtime.read_models import BEHIND, live_path, reading, reading_log, server_answers, tables_current
from agent0.cli import console, flags, lookup
from agent0.cli.layout import json_lines
from agent0.cli.runs import positions
from agent0.config.setting_entries import nearest
from agent0.errors import ConfigError
from agent0.events import event_types
from agent0.events.base import Recorded, decode
from agent0.projections.events import count_events, event_stats, grep_events, newest_events, show_event
from agent0.projections.runs import resolve
from agent0.projections.wording import describe
from agent0.provenance.hash_chain import LogMismatch
from agent0.settings import Settings

Of = Annotated[str, typer.Option("--run", help="One run only; LAST for the newest.")]
Type = Annotated[str, typer.Option("--type", "-t", help="One event type only, for example ToolCalled.")]
MOST = 100
"""Differences that people are told; programs are told all."""
SEEN = ("seq", "time", "type", "text", "task", "attempt", "run")


def tail(
    run: Of = "",
    type: Type = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Last events to begin with.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    as_json: console.Json = False,
) -> None:
    """The newest events, from the log itself; --json gives one object a line."""
    settings = flags.settings()
    name = _resolved(run)
    _require_type(type)

    if follow or not _on_disk(settings, name, type, limit, as_json):
        console.run_async(lambda: _read(settings, name, type, limit, follow, as_json))


def _on_disk(settings: Settings, run: str, type: str, limit: int, as_json: bool) -> bool:
    """Print what the tables have of the log, where they have all of it or its server does not answer."""
    current = tables_current(settings)
    if not current and (not live_path(settings).exists() or server_answers(settings)):
        return False
    if not current:
        console.say(BEHIND, "yellow")
    with reading(settings) as db:
        events = newest_events(db, run, type, limit)
        for seq, body in events:
            _print(decode(body, seq), as_json)
        if not as_json:
            _tell_left(len(events), count_events(db, run, type))
    return True


def _tell_left(shown: int, all_: int) -> None:
    if shown < all_:
        console.say(f"{shown:,} of {all_:,}; --limit shows more.")


async def _read(settings: Settings, run: str, type: str, limit: int, follow: bool, as_json: bool) -> None:
    async with reading_log(settings) as log:
        end = await log.last_seq()
        kinds = (type,) if type else ()
        before = [r async for r in log.read(run, kinds, until=end)] if limit and end else []
        for event in before[-limit:]:
            _print(event, as_json)
        if not as_json:
            _tell_left(min(limit, len(before)), len(before))
        if follow:
            async for event in log.tail(end, run, kinds):
                _print(event, as_json)


def show(
    event: Annotated[
        str, typer.Argument(metavar="EVENT", help=f"Its id, or {positions.HELP}: of the newest run, or of --run.")
    ],
    run: Of = "",
    as_json: console.Json = False,
) -> None:
    """One event with everything in it, and the events it caused."""
    if event.startswith(("+", "iteration:")):
        event = str(positions.sequence(lookup.run_id(run or "LAST"), event, "EVENT"))
    with lookup.tables() as db:
        row = show_event(db, event)
    if as_json:
        console.data(row)
        return
    effects = row.pop("effects")
    body: Any = row.pop("body")
    console.record(row, False)
    console.text("\n".join(json_lines(body, console.screen())))
    if effects:
        console.table(effects, False, ("seq", "type", "handler", "task", "attempt", "text"), title="caused")


def grep(
    words: Annotated[list[str], typer.Argument(help="Words that must all occur; a trailing * means any ending.")],
    run: Of = "",
    type: Type = "",
    limit: console.Limit = 100,
    as_json: console.Json = False,
) -> None:
    """Search the text of all events for words; the newest match first."""
    _require_type(type)
    with lookup.tables() as db:
        of = resolve(db, run) if run else ""
        rows = console.limited(lambda n: grep_events(db, " ".join(words), of, type, n), limit)
    console.table(rows, as_json, SEEN, keep=("text",))


def stats(run: Of = "", as_json: console.Json = False) -> None:
    """How many events of each type, and their size."""
    with lookup.tables() as db:
        rows = event_stats(db, resolve(db, run) if run else "")
    console.table(rows, as_json)


def verify(
    archive: Annotated[Path | None, typer.Argument(help="An archive; without it: the log.")] = None,
    as_json: console.Json = False,
) -> None:
    """Read the whole log, or an archive, and compare it with its seals. Says where it differs; then exit 1."""
    settings = flags.settings()

    async def work() -> tuple[dict[str, object], Sequence[LogMismatch | str]]:
        async with reading_log(settings) as log:
            return await check_log(settings, log)

    facts, wrong = look_into(archive) if archive else console.run_async(work)
    if as_json:
        rows = [each if isinstance(each, str) else {**vars(each), "where": each.where} for each in wrong]
        console.data({**facts, "differences": rows})
    else:
        console.record(facts, False)
        for each in wrong[:MOST]:
            console.say(str(each), "red")
    if wrong:
        raise typer.Exit(1)


def set_aside(
    seq: Annotated[int, typer.Argument(metavar="SEQUENCE", min=1, help="As `agent0 events verify` names it.")],
    reason: Annotated[str, typer.Option("--reason", help="Kept in the log.")] = "",
    as_json: console.Json = False,
) -> None:
    """Go on without a message of the log that is no event. It stays stored; a tombstone is read in its place."""
    settings = flags.settings()
    console.record(console.run_async(lambda: note(settings, seq, reason)), as_json)


def export(
    path: Annotated[
        Path, typer.Argument(callback=console.in_folder, help="A new folder, or a new file that ends in .tar.")
    ],
    run: Of = "",
    redact: Annotated[
        list[str] | None,
        typer.Option("--redact", metavar="TASK|PATTERN", help="Forget a task, or what a regular expression finds."),
    ] = None,
    as_json: console.Json = False,
) -> None:
    """Write the log, or one run, with the artifacts it names: compressed, with a digest of everything."""
    settings, name = flags.settings(), _resolved(run)
    console.record(console.run_async(lambda: write(settings, path, name, redact or ())), as_json)


def import_(
    path: Annotated[Path, typer.Argument(help="An archive, as `agent0 events export` writes it.")],
    as_json: console.Json = False,
) -> None:
    """Make the log of an empty data folder from an archive: all of it or nothing, under the same numbers."""
    settings = flags.settings()
    console.record(console.run_async(lambda: bring(settings, path)), as_json)


def archive(
    path: Annotated[
        Path, typer.Argument(callback=console.in_folder, help="A new folder, or a new file that ends in .tar.")
    ],
    as_json: console.Json = False,
) -> None:
    """Seal and export everything, then go on in a fresh stream whose numbers go on. Runs must be over."""
    settings = flags.settings()
    console.record(console.run_async(lambda: put_away(settings, path)), as_json)


def _resolved(run: str) -> str:
    """The run's id; what is none (an experiment, a benchmark run, `log`) as it is, where events carry it."""
    return lookup.of_newest(run) if run else ""


def _require_type(type: str) -> None:
    """Raises ConfigError for an event type there is not."""
    if type and type not in event_types():
        raise ConfigError(f"There is no event type {type[:80]!r}.", nearest(type, list(event_types())))


def _print(event: Recorded, as_json: bool) -> None:
    if as_json:
        console.line({"seq": event.seq, **json.loads(event.to_json())})
        return
    terminal = console.screen()
    where = event.attempt if event.attempt != "-" else event.task
    if terminal is None:
        moment = event.time.isoformat().replace("+00:00", "Z")
        console.text(
            "\t".join((str(event.seq), moment, event.run, event.type, where, console.one_line(describe(event), 1000)))
        )
        return
    head = f"{event.seq:>6} {event.time:%H:%M:%S} {event.type:<20} {where:<11}"
    console.text(f"{head} {console.one_line(describe(event), max(terminal.width - len(head) - 1, 12))}")
