"""The log: make it, check it."""

from agent0.assembly.log.access import check_log, open_log, provision
from agent0.assembly.runtime.plugins import known_handlers
from agent0.cli import console, flags
from agent0.errors import bare_url
from agent0.settings import Settings


def init(profile: console.Profile = None, pairs: console.Set = None, as_json: console.Json = False) -> None:
    """Make streams and consumers, or apply changed limits. Doing it twice changes nothing."""
    settings = flags.settings(profile, pairs)

    async def work() -> dict[str, object]:
        await provision(settings)
        return await _info(settings)

    console.record(console.run_async(work), as_json)


def check(profile: console.Profile = None, pairs: console.Set = None, as_json: console.Json = False) -> None:
    """Compare the log with what it must look like; names the first field that drifted."""
    settings = flags.settings(profile, pairs)
    console.record(console.run_async(lambda: _info(settings)), as_json)


async def _info(settings: Settings) -> dict[str, object]:
    async with open_log(settings, "reader") as log:
        await check_log(settings, log, known_handlers().values())
        info = await log.info()
        return {
            "state": "ok",
            "server": bare_url(log.server.url),
            "embedded": log.server.folder is not None,
            "first_seq": info.first_seq,
            "last_seq": info.last_seq,
            "bytes": info.bytes,
            "created": info.created,
        }
