"""Any moment of a run: its state then, a run that begins there, and whether today's code would decide the same."""

from typing import Annotated, Any

import typer

from agent0.assembly.log.access import open_log
from agent0.assembly.replay.forks import fork as forked
from agent0.assembly.replay.forks import pairs_of
from agent0.cli import console, flags, lookup
from agent0.cli.runs import positions
from agent0.cli.runs.foreground import follow_to_end, require
from agent0.settings import RunConfig

At = Annotated[str, typer.Option("--at", metavar="WHERE", help=f"{positions.HELP}; 0: the run's end.")]
Changes = Annotated[
    list[str] | None, typer.Option("--set", "-s", metavar="KEY=VALUE", help="A setting of the run that is another.")
]


def fork(
    run: console.Run = "LAST",
    at: At = "0",
    pairs: Changes = None,
    plugin: console.Plugin = None,
    name: Annotated[str, typer.Option(help="A name for people; its id is made from it.")] = "",
    detach: Annotated[bool, typer.Option("--detach", "--no-wait", help="Only begin it.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for what the run needs and this machine lacks.")] = False,
    as_json: console.Json = False,
) -> None:
    """Begin a run in the middle of another, under other settings. The past is shared, not copied; what was under way
    is asked for again. Another student model is scored first, and trains on nothing of the former."""
    settings = flags.settings(plugins=plugin)
    source, changes = lookup.run_id(run), pairs_of(pairs)
    seq = positions.sequence(source, at)

    async def work() -> Any:
        async with open_log(settings) as log:
            begin = await forked(settings, log, source, seq, changes, name)
            if detach:
                await log.append([begin])
            return begin

    begin = console.run_async(work)
    if detach:
        console.record({"run": begin.run, "parent": source, "parent_seq": begin.event.parent_seq}, as_json)
        return
    require(settings, RunConfig.recorded(begin.event.config, begin.event.servers), wait)
    news = f"Run {begin.run}: from {source} at event {begin.event.parent_seq}, data in {settings.home}"
    follow_to_end(settings, begin.run, begin, news, with_handlers=True, as_json=as_json, wait=wait)
