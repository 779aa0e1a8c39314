"""The events themselves: follow, look up, search, count, verify."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent0.cli import terminal

if TYPE_CHECKING:
    from events.base import Recorded
    from infra.seals import Verified

app = typer.Typer(help="The events of the log: follow, look up, search, count, verify.")
Of = Annotated[str, typer.Option("--run", help="One run only; LAST for the newest.")]
Type = Annotated[str, typer.Option("--type", "-t", help="One event type only, for example ToolCalled.")]
MOST = 100
"""Differences that people are told; programs are told all."""
SEEN = ("seq", "time", "type", "run", "task", "attempt", "text")


@app.command()
def tail(
    run: Of = "",
    type: Type = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Last events to begin with.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    as_json: terminal.Json = False,
) -> None:
    """The newest events, from the log itself; --json gives one object a line."""
    held = terminal.settings()
    name = _resolved(run)
    _known(type)

    async def work() -> None:
        from agent0.assembly_tables import reading_log

        async with reading_log(held) as log:
            end = await log.last_seq()
            kinds = (type,) if type else ()
            before = [r async for r in log.read(name, kinds, until=end)][-limit:] if limit and end else []
            for one in before:
                _print(one, as_json)
            if follow:
                async for one in log.tail(end, name, kinds):
                    _print(one, as_json)

    terminal.run_async(work)


@app.command()
def show(
    event: Annotated[str, typer.Argument(metavar="EVENT", help="Sequence number or id.")],
    as_json: terminal.Json = False,
) -> None:
    """One event with everything in it, and the events it caused."""
    from projections.events import show_event

    with terminal.tables() as db:
        found = show_event(db, event)
    if as_json:
        terminal.data(found)
        return
    import json

    effects = found.pop("effects")
    body: Any = found.pop("body")
    terminal.record(found, False)
    terminal.text(json.dumps(body, indent=2, ensure_ascii=False))
    if effects:
        terminal.table(effects, False, ("seq", "type", "handler", "task", "attempt", "text"), title="caused")


@app.command()
def grep(
    words: Annotated[list[str], typer.Argument(help="Words that must all occur; a trailing * means any ending.")],
    run: Of = "",
    type: Type = "",
    limit: terminal.Limit = 100,
    as_json: terminal.Json = False,
) -> None:
    """Search the text of all events."""
    from projections.events import grep_events
    from projections.runs import resolve

    _known(type)
    with terminal.tables() as db:
        rows = grep_events(db, " ".join(words), resolve(db, run) if run else "", type, limit)
    terminal.table(rows, as_json, SEEN)


@app.command()
def stats(run: Of = "", as_json: terminal.Json = False) -> None:
    """How many events of each type, and their size."""
    from projections.events import event_stats
    from projections.runs import resolve

    with terminal.tables() as db:
        rows = event_stats(db, resolve(db, run) if run else "")
    terminal.table(rows, as_json)


@app.command()
def verify(as_json: terminal.Json = False) -> None:
    """Read the whole log and compare it with its seals, in it and outside it. Says where it differs; then exit 1."""
    from agent0.assembly_seals import verify as compare
    from agent0.assembly_tables import reading_log

    held = terminal.settings()

    async def work() -> "Verified":
        async with reading_log(held) as log:
            return await compare(held, log)

    found = terminal.run_async(work)
    seen = ("first", "last", "created", "seals", "sealed", "redacted")
    told = {"state": "broken" if found.differences else "whole", **{name: getattr(found, name) for name in seen}}
    if as_json:
        terminal.data({**told, "differences": [vars(one) for one in found.differences]})
    else:
        terminal.record(told, False)
        for one in found.differences[:MOST]:
            terminal.say(f"{one}.", "red")
    if found.differences:
        raise typer.Exit(1)


def _resolved(run: str) -> str:
    if run != "LAST":
        return run
    from projections.runs import resolve

    with terminal.tables() as db:
        return resolve(db, run)


def _known(type: str) -> None:
    """Raises ConfigError for an event type there is not."""
    from agent0.configuration import nearest
    from agent0.errors import ConfigError
    from events import event_types

    if type and type not in event_types():
        raise ConfigError(f"There is no event type {type[:80]!r}.", nearest(type, list(event_types())))


def _print(one: "Recorded", as_json: bool) -> None:
    import json

    if as_json:
        terminal.line({"seq": one.seq, **json.loads(one.to_json())})
        return
    from projections.wording import describe

    where = one.attempt if one.attempt != "-" else one.task
    terminal.text(
        f"{one.seq:>8} {one.time:%H:%M:%S} {one.run} {one.type:<20} {where:<12} {terminal.one_line(describe(one), 120)}"
    )
