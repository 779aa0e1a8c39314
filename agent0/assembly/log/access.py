"""Part of the rim: opens the log, looks whether it is what it was, and seals what was written."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.log.integrity import look, seal, seal_file, topology
from agent0.assembly.log.rollover_recovery import finish
from agent0.assembly.runtime.plugins import known_handlers
from agent0.errors import EarlierLogError
from agent0.infra.log.artifacts.shared import SharedArtifacts
from agent0.infra.log.decoder import STARTS, is_earlier
from agent0.infra.log.event_log import Log, NoLogError
from agent0.infra.log.nats_server import Role, Server, open_server
from agent0.infra.log.streams import GoneError, check, init
from agent0.settings import Settings

if TYPE_CHECKING:
    from agent0.handlers import Handler


@asynccontextmanager
async def open_log(settings: Settings, role: Role = "app", *, make: bool = False) -> AsyncIterator[Log]:
    """A connection to the log; its embedded server is found or started. ``make``: streams and durables that an embedded
    log lacks are made (what exists is never changed). Who may write looks first whether the log is what it was, and
    seals what it wrote: what is done must not be lost unnoticed.

    Raises:
        DependencyError, AuthError, LogError: no server, no right, no log, a damaged one, or one written before 0.1.0.
    """
    server = await open_server(settings.home, settings.nats)
    try:
        if server.folder and seal_file(settings).read().left:
            await finish(settings, server)
        if make and not settings.nats.url:
            await _provision(server, settings, change=False)
        async with await Log.connect(server, role) as log:
            await _require_present(log)
            if role == "app":
                await look(settings, log)
            log.archived = seal_file(settings).read().runs
            store = artifact_store(settings)
            if isinstance(store, SharedArtifacts):
                log.before_append = store.share
            try:
                yield log
            finally:
                if log.wrote:
                    await seal(settings, log)
    except NoLogError as error:
        if seal_file(settings).read().stream:
            raise GoneError from error
        raise
    finally:
        await server.stop()


async def _require_present(log: Log) -> None:
    """Raises EarlierLogError where the first run of ``log`` was begun before 0.1.0."""
    seq, body = await log.next(STARTS, 0)
    if seq and is_earlier(body):
        raise EarlierLogError.of()


async def provision(settings: Settings) -> None:
    """Make streams and durables, or apply changed limits to those there are.

    Raises:
        LogError: what exists differs in a field that must not change.
    """
    server = await open_server(settings.home, settings.nats)
    try:
        await _provision(server, settings, change=True)
    finally:
        await server.stop()


async def _provision(server: Server, settings: Settings, *, change: bool) -> None:
    await init(server, topology(settings), known_handlers().values(), change=change)


async def check_log(settings: Settings, log: Log, handlers: Iterable["Handler"]) -> None:
    """Raises LogError where stream or durables are not what these settings and handlers want."""
    await check(log.client, topology(settings), handlers)
