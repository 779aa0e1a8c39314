"""The log: make it, check it."""

from typing import TYPE_CHECKING

import typer

from agent0.cli import console

if TYPE_CHECKING:
    from agent0.settings import Settings

app = typer.Typer(help="The event log: make or check streams and consumers.")


@app.command()
def init(profile: console.Profile = None, pairs: console.Set = None, as_json: console.Json = False) -> None:
    """Make streams and consumers, or apply changed limits. Doing it twice changes nothing."""
    from agent0.assembly.log.access import provision

    held = console.settings(profile, pairs)

    async def work() -> dict[str, object]:
        await provision(held)
        return await _info(held)

    console.record(console.run_async(work), as_json)


@app.command()
def check(profile: console.Profile = None, pairs: console.Set = None, as_json: console.Json = False) -> None:
    """Compare the log with what it must look like; names the first field that drifted."""
    held = console.settings(profile, pairs)
    console.record(console.run_async(lambda: _info(held)), as_json)


async def _info(held: "Settings") -> dict[str, object]:
    from agent0.assembly.log.access import check_log, open_log
    from agent0.assembly.runtime.plugins import known_handlers
    from agent0.errors import bare_url

    async with open_log(held, "reader") as log:
        await check_log(held, log, known_handlers().values())
        found = await log.info()
        return {
            "state": "ok",
            "server": bare_url(log.server.url),
            "embedded": log.server.folder is not None,
            "first_seq": found.first_seq,
            "last_seq": found.last_seq,
            "bytes": found.bytes,
            "created": found.created,
        }
