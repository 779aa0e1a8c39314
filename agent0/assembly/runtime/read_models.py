"""Part of the rim: carries the log into the read models, once or for as long as a process lives."""

import asyncio
import json
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import urlsplit

from agent0.assembly.log.access import open_log
from agent0.assembly.log.full_history import history
from agent0.assembly.log.integrity import look, seal_file
from agent0.assembly.runtime import plugins
from agent0.errors import Agent0Error, DependencyError, LogError, NotFoundError, OperationError
from agent0.infra.integrity.sealer import extent, require
from agent0.infra.log import server_folder, server_proof
from agent0.infra.log.event_log import Log, NoLogError
from agent0.infra.log.streams import GoneError
from agent0.infra.storage import sqlite
from agent0.infra.storage.files import shortage, writable
from agent0.projections import Projector, StoppedError, Views, tables
from agent0.projections.projector import position
from agent0.settings import Settings

OLD = "The tables are as they were carried on last."
BEHIND = "The tables may be behind: the log's server does not answer. They are as they were carried on last."
FULL_S = AWAY_S = 1.0
"""Seconds between two tries to write tables where the disk is full, or to read a log that is away."""

PATIENCE_S = 1.0
"""Seconds in which an external server must take a connection, and then greet; else what is on disk is shown."""
NATS_PORT = 4222
_PROJECTIONS = Path(__file__).parents[2] / "projections"


class NothingError(NotFoundError):
    """No run was ever begun in this data folder."""

    def __init__(self, home: Path) -> None:
        fix = "Start a run: agent0 run start --profile scripted"
        super().__init__("There is nothing to show yet.", f"{home} holds no run.", fix)


async def open_views(settings: Settings, log: Log) -> Views:
    """The tables that belong to ``log``.

    Raises:
        LogError: it is another log than the one that this data folder knows.
    """
    plugins.load_plugins()
    recorded, info = seal_file(settings).read(), await log.info()
    require(extent(info, recorded, 0))
    identity = recorded.identity or info.created
    return Views(settings.home / "tables", sqlite.connect, tables(), identity, recorded.first)


def live_path(settings: Settings) -> Path:
    """Return the path of the database that readers open."""
    return settings.home / "tables" / "view.db"


async def run_projector(settings: Settings, log: Log, stands: Callable[[], None] = lambda: None) -> None:
    """Carry events into the tables as they come, until cancelled; goes on in new tables when a rebuild swaps them, and
    when a log that was away is back. ``stands`` is called whenever they hold everything that is stored."""
    while True:
        try:
            await look(settings, log)
            await _followed(settings, log, stands)
        except DependencyError:
            await asyncio.sleep(AWAY_S)
        except (sqlite3.OperationalError, OperationError):
            if not shortage(settings.home):
                raise
            await asyncio.sleep(FULL_S)


async def _followed(settings: Settings, log: Log, stands: Callable[[], None]) -> None:
    async with _caught_up(settings, log) as projector:
        stands()
        await projector.follow(lambda after: log.read_stored(after, follow=True), log.decode)


async def catch_up(settings: Settings, log: Log) -> int:
    """Bring the tables up to the log's present end; the sequence reached."""
    async with _caught_up(settings, log) as projector:
        return projector.position.seq


@asynccontextmanager
async def _caught_up(settings: Settings, log: Log) -> AsyncIterator[Projector]:
    """What carries events into the tables, once it has brought them up to the log's present end."""
    with closing((await open_views(settings, log)).projector()) as projector:
        everything = history(settings, log)
        await _check(settings, projector, log)
        await projector.catch_up(lambda after: everything(after, 0))
        yield projector


async def update_tables(settings: Settings, log: Log) -> None:
    """Rebuild the tables where another version of Agent0 made them: for folders that nobody else writes to."""
    await (await open_views(settings, log)).update(history(settings, log))


async def refresh(settings: Settings) -> str:
    """Catch the tables up where the log can be reached. Returns a warning for the reader, empty if all is well."""
    if tables_current(settings):
        return ""
    if not settings.nats.url and not (settings.home / "nats").is_dir():
        if seal_file(settings).read().stream:
            raise _gone()
        return ""
    if live_path(settings).exists() and not server_answers(settings):
        return BEHIND
    if live_path(settings).exists() and not writable(settings.home):
        return f"{settings.home} cannot be written to. {OLD}"
    try:
        return await _carried_on(settings)
    except (sqlite3.OperationalError, OperationError, DependencyError, OSError):
        if live_path(settings).exists() and (full := shortage(settings.home)):
            return f"{full} {OLD}"
        raise


async def _carried_on(settings: Settings) -> str:
    try:
        async with open_log(settings, "reader") as log:
            before = server_folder.event_files(settings.home / "nats")
            await catch_up(settings, log)
        note_current(settings, before)
    except NoLogError:
        if settings.nats.url:
            raise
        if live_path(settings).exists():
            raise _gone() from None
    except DependencyError as error:
        return f"The tables may be behind: {error}"
    except StoppedError as error:
        return f"The tables stopped at event {error.seq - 1}; this shows what there is until then. {error}"
    return ""


def tables_current(settings: Settings) -> bool:
    """Whether the tables held the whole log when its server ended, and neither was changed since."""
    if settings.nats.url:
        return False
    try:
        noted = json.loads(_note(settings).read_text())
    except (OSError, ValueError):
        return False
    return bool(noted) and noted == _standing(settings)


def note_current(settings: Settings, before: object) -> None:
    """Note that the tables hold the whole log. ``before``: ``event_files`` as they were when the tables were about to
    be carried on; where they grew since, or the server goes on, nothing is noted."""
    folder, path = settings.home / "nats", _note(settings)
    standing = {} if settings.nats.url else _standing(settings)
    if standing and before == server_folder.event_files(settings.home / "nats"):
        path.write_text(json.dumps(standing))
    elif path.exists() and not server_proof.running_pid(folder):
        path.unlink(missing_ok=True)


def server_answers(settings: Settings) -> bool:
    """Whether the log's server would answer soon: a dead one is started again, one that hangs is not waited for."""
    if settings.nats.url:
        greets = not settings.nats.tls_ca  # over TLS the first word may be ours
        return any(_reachable(url.strip(), greets) for url in settings.nats.url.split(","))
    folder = settings.home / "nats"
    return not server_proof.running_pid(folder) or server_proof.greets(folder)


def _reachable(url: str, greets: bool) -> bool:
    """Whether a server takes the connection, and greets as NATS does at once where it must speak first."""
    parts = urlsplit(url if "//" in url else f"//{url}")
    try:
        address = parts.hostname or "127.0.0.1", parts.port or NATS_PORT
        with socket.create_connection(address, PATIENCE_S) as link:
            return parts.scheme in ("tls", "ws", "wss") or not greets or link.recv(4) != b""
    except (OSError, ValueError):
        return False


def _note(settings: Settings) -> Path:
    return settings.home / "tables" / "current.json"


def _standing(settings: Settings) -> dict[str, object]:
    """The log's files, the tables and the code that makes them; empty where the log may be written to."""
    rest, view = server_folder.at_rest(settings.home / "nats"), live_path(settings)
    if not rest or not view.exists():
        return {}
    try:
        with sqlite.reading(view) as db:
            current = position(db)
    except Agent0Error:
        return {}
    sources = [[path.name, path.stat().st_mtime_ns] for path in sorted(_PROJECTIONS.glob("*.py"))]
    plugins = sorted(f"{plugin.name} {plugin.value}" for plugin in entry_points(group="agent0.plugins"))
    return {
        "log": rest,
        "view": str(view.resolve()),
        "seq": current.seq,
        "event": current.event,
        "code": sources,
        "plugins": plugins,
        "seals": _size(settings.home / "seals.jsonl"),
    }


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _gone() -> LogError:
    return GoneError()


@contextmanager
def reading(settings: Settings) -> Iterator[sqlite3.Connection]:
    """A read-only connection to the tables.

    Raises:
        NothingError: there are none yet.
    """
    if not live_path(settings).exists():
        raise NothingError(settings.home)
    with sqlite.reading(live_path(settings)) as db:
        yield db


def require_reached(db: sqlite3.Connection, seq: int) -> None:
    """Raises NotFoundError where the tables end before the event ``seq``."""
    if seq > (end := position(db).seq):
        raise NotFoundError(f"There is no event {seq} yet.", f"The tables end at event {end}.")


@asynccontextmanager
async def reading_log(settings: Settings) -> AsyncIterator[Log]:
    """The log, to look at.

    Raises:
        NothingError: an embedded one that was never made.
    """
    try:
        async with open_log(settings, "reader") as log:
            yield log
    except NoLogError:
        if settings.nats.url:
            raise
        if live_path(settings).exists():
            raise GoneError from None
        raise NothingError(settings.home) from None


@asynccontextmanager
async def sound_log(settings: Settings) -> AsyncIterator[Log]:
    """The log, to fold a past from: what a damaged one lacks would look like a mistake of code or rules.

    Raises:
        NothingError: as above. LogError: the log is not what it was.
    """
    async with reading_log(settings) as log:
        await look(settings, log)
        yield log


@asynccontextmanager
async def log_and_views(settings: Settings) -> AsyncIterator[tuple[Log, Views]]:
    """Open the log for reading and the read models, for rebuilds."""
    async with reading_log(settings) as log:
        yield log, await open_views(settings, log)


async def _check(settings: Settings, projector: Projector, log: Log) -> None:
    """The tables must have been made from this very history."""
    current, archives = projector.position, seal_file(settings).read().archives
    last = await log.last_seq()
    if archives and current.seq <= archives[-1].before:
        id_there: str | None = current.event  # in an archive, from whose seal the log goes on
    else:
        id_there = await _id_at(log, current.seq) if current.event and current.seq <= last else None
    projector.check(last, id_there, current)


async def _id_at(log: Log, seq: int) -> str:
    try:
        return (await log.message(seq)).id
    except NotFoundError as error:
        why = "The tables have seen it, so it was taken out, or the store is damaged."
        raise LogError(error.what, why, "`agent0 events verify` says all that is wrong.") from error
