"""Part of the rim: looks at everything Agent0 leans on and says, for each, whether it holds and how to mend it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from agent0.assembly.log.access import check_log, open_log
from agent0.assembly.runtime.plugins import known_handlers
from agent0.assembly.runtime.read_models import catch_up, live_path
from agent0.assembly.validate.requirements import REQUIREMENTS, Look, check_actors, examine
from agent0.assembly.validate.room import Check, State
from agent0.assembly.validate.run_config import check_names
from agent0.config.catalogue import StoredModel, catalogue_model, serving_provider, stored_models
from agent0.errors import Agent0Error, DependencyError, LogError
from agent0.infra.log.nats_server import open_server
from agent0.infra.models.ollama.registry import OllamaModels, way_of
from agent0.infra.storage import sqlite
from agent0.settings import Settings

FULL = 0.8
"""Share of the stream's limit above which somebody should do something."""
ASK_S = 2.0
WAYS = {
    "none": "takes no trained model: older than 0.30",
    "adapter": "`agent0 model push` puts an adapter beside its base there",
    "merged": "`agent0 model push` sends base and adapter as one there: this version takes no adapters",
}
"""How an Ollama is given a trained model."""


async def _log(settings: Settings) -> list[Check]:
    """How the log stands; nothing where an external server fails, which a run's own look says."""
    if settings.nats.url and any([check.state == "fail" async for check in examine(settings, _SERVER)]):
        return []
    server = await open_server(settings.home, settings.nats)
    try:
        reached = [Check("log server", "ok", f"embedded, {server.name} answers")] if server.folder else []
        return [*reached, _fsync(server.folder), *await _provisioned(settings)]
    finally:
        await server.stop()


def _fsync(folder: Path | None) -> Check:
    name, fix = "log fsync", "Set `jetstream { sync_interval: always }` in the server's configuration."
    if folder is None:
        return Check(name, "warn", "an external server's setting cannot be seen from here", fix)
    always = "sync_interval: always" in (folder / "server.conf").read_text()
    return Check(name, "ok" if always else "fail", "always" if always else "not always: a power loss loses events", fix)


async def _provisioned(settings: Settings) -> list[Check]:
    try:
        async with open_log(settings, "app") as log:
            await check_log(settings, log, known_handlers().values())
            info = await log.info()
            shape = Check("log streams", "ok", f"{info.last_seq:,} events, {info.bytes / (1 << 20):.1f} MiB, no drift")
            return [shape, _room(info.bytes, info.max_bytes), await _denied(settings, log.client)]
    except LogError as error:
        if error.what == "There is no log yet.":
            return [Check("log streams", "warn", "not made yet; the first run makes them", "agent0 log init")]
        raise


def _room(used: int, most: int) -> Check:
    """Of the stream's limit: a full one refuses to store."""
    share = used / most if most > 0 else 0.0
    fix = "`agent0 events archive PATH` goes on in a fresh stream; or raise nats.max_bytes, then `agent0 log init`."
    state: State = "warn" if share >= FULL else "ok"
    return Check("log size", state, f"{share:.0%} of nats.max_bytes ({most / (1 << 20):,.0f} MiB)", fix)


async def _denied(settings: Settings, client: object) -> Check:
    """Asks to delete a stream that does not exist: whoever is told so might have deleted one that does."""
    name = "log permissions"
    try:
        await client.request("$JS.API.STREAM.DELETE.a0-no-such-stream", timeout=1)  # type: ignore[attr-defined]
    except Exception as error:
        if "timeout" not in type(error).__name__.lower() and "permission" not in str(error).lower():
            raise
        return Check(name, "ok", "this process cannot delete history")
    state: State = "warn" if settings.nats.url else "fail"
    fix = "Deny $JS.API.STREAM.DELETE.> to the application's user."
    return Check(name, state, "this process may delete streams", fix)


async def _tables(settings: Settings) -> list[Check]:
    """A file that is whole, and no event that stops it on the way to the log's end."""
    path = live_path(settings)
    if not path.exists():
        return []
    with sqlite.reading(path) as db:
        (result,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if result != "ok":
        return [Check("tables", "fail", f"{path} is damaged: {result}", "agent0 projections rebuild")]
    try:
        async with open_log(settings, "reader") as log:
            with sqlite.explained(path):
                reached = await catch_up(settings, log)
    except DependencyError as error:
        return [Check("tables", "warn", f"may be behind: {error.what} {error.why}", error.fix)]
    return [Check("tables", "ok", f"whole, up to event {reached:,}")]


async def _settings(settings: Settings) -> list[Check]:
    """What a start refuses on any machine."""
    check_names(settings.run)
    check_actors(settings)
    return [Check("settings", "ok", "all that they name exists and fits together")]


async def _stored_models(settings: Settings) -> list[Check]:
    """Each model of the catalogue that the data folder has: whether its file is as it was stored, and who computes
    it."""
    return [
        Check(f"stored {name}", "fail", stored.problem, f"agent0 model get {name}")
        if stored.problem
        else Check(f"stored {name}", "ok", _description(stored))
        for name, stored in stored_models(settings.home).items()
    ]


def _description(stored: StoredModel) -> str:
    entry = catalogue_model(stored.name)
    provider, why = serving_provider(entry is not None and entry.packed, stored.bytes)
    size = f"{stored.bytes / (1 << 20):,.0f} MiB"
    return f"{size}, {stored.licence}, {stored.source}; provider {provider}, since {why}"


async def _ollama(settings: Settings) -> list[Check]:
    """How an Ollama takes a trained model; nothing where none answers, which is no failure of a run without it."""
    server = OllamaModels(settings.models.ollama_url)
    try:
        async with asyncio.timeout(ASK_S):
            version = await server.version()
    except (Agent0Error, TimeoutError, KeyError):
        return []
    finally:
        await server.close()
    way = way_of(version)
    return [Check("ollama", "warn" if way == "none" else "ok", f"{version}: {WAYS[way]}", "Update Ollama.")]


_SERVER = {"log server": REQUIREMENTS["log server"]}
LOOKS: Mapping[str, Look] = {
    "settings": _settings,
    **REQUIREMENTS,
    "stored models": _stored_models,
    "ollama": _ollama,
    "log": _log,
    "tables": _tables,
}
"""What a run needs, then how this folder's log and tables stand."""
