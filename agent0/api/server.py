"""Listens: on loopback, or elsewhere once there is a key; with handlers and tables in one process, or to read only."""

import asyncio
import errno
import gc
import ipaddress
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from agent0.api.admission.connections import BoundedProtocol, Connections
from agent0.api.admission.keys import KeyFile
from agent0.api.app import create_app
from agent0.api.context import ApiContext
from agent0.api.past import PastTables
from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.log.restore import bring_artifacts, require_whole
from agent0.assembly.replay.tables_at import Build, build
from agent0.assembly.runtime.app import open_app, run_handlers, until_cancelled
from agent0.assembly.runtime.model_ports import OpenModels
from agent0.assembly.runtime.read_models import catch_up, live_path, reading, run_projector
from agent0.assembly.telemetry.followers import followers
from agent0.errors import Agent0Error, AuthError, EarlierLogError, NotFoundError, OperationError
from agent0.events.runs import RunStarted
from agent0.infra.integrity.archive import manifest_of
from agent0.infra.integrity.archive_place import open_archive
from agent0.infra.log.decoder import is_earlier
from agent0.infra.log.event_log import Log
from agent0.infra.telemetry.json_logs import json_logs
from agent0.ports.models import Models
from agent0.projections.events import newest_events
from agent0.settings import Settings

Say = Callable[[str], None]
Service = Callable[[Callable[[], None]], Awaitable[None]]
"""Works until cancelled, and calls what it is given once it stands."""
GRACE_S = 2
"""Seconds in which answers under way may end; streams end by themselves."""
PRIVATE = 0o700


async def up(settings: Settings, say: Say, *, handlers: bool = True) -> None:
    """Serve the data folder of ``settings`` until cancelled: its log, the handlers (unless other processes run them),
    the tables, the API and the pages. ``say`` gets the address once all of it answers.

    Raises:
        OperationError: the port is taken.
        AuthError: it would listen elsewhere than on loopback without a key.
        ConfigError: a webhook without a secret.
        Agent0Error: what the handlers need is not there.
    """
    exporters, logs = followers(settings), json_logs() if settings.telemetry.log_json else nullcontext()
    with logs, listening(settings) as sock:
        async with _working(settings, handlers) as (log, works, models):
            await catch_up(settings, log)
            context = _context(settings, sock, models, log, handlers=handlers)
            services: list[Service] = [
                *works,
                lambda stands: run_projector(settings, log, stands),
                lambda stands: serve(context, sock, stands),
            ]
            standing = _Standing(services, lambda: say(address_of(sock)))
            others = [exporter.run() for exporter in exporters]
            await until_cancelled(*standing.works, *others, watch_lag(context))


class _Standing:
    """``works`` are those of ``services``; the first moment at which all of them stand is ``announced``."""

    def __init__(self, services: Sequence[Service], announced: Callable[[], None]) -> None:
        self._missing, self._announced = set(range(len(services))), announced
        self.works = [service(partial(self._stands, number)) for number, service in enumerate(services)]

    def _stands(self, number: int) -> None:
        if number in self._missing:
            self._missing.remove(number)
            if not self._missing:
                self._announced()


@asynccontextmanager
async def _working(settings: Settings, handlers: bool) -> AsyncIterator[tuple[Log, list[Service], Models]]:
    """The log, the services besides tables and pages, and what opens models: the handlers', where they are here."""
    async with AsyncExitStack() as stack:
        if handlers:
            app = await stack.enter_async_context(open_app(settings))
            yield app.log, [partial(run_handlers, app)], app.ports["models"]
        else:
            log = await stack.enter_async_context(open_log(settings, make=True))
            yield log, [], await stack.enter_async_context(_opening(settings, log))


@asynccontextmanager
async def _opening(settings: Settings, log: Log | None = None) -> AsyncIterator[Models]:
    """Models that are opened when they are asked for, and closed at the end."""
    models = OpenModels(settings, artifact_store(settings), log)
    try:
        yield models
    finally:
        await models.close()


async def view(settings: Settings, say: Say) -> None:
    """Serve the tables of a data folder as they are until cancelled: no server of a log is started, nothing is written.

    Raises:
        NotFoundError: the folder holds no tables. EarlierLogError: those of a log that was written before 0.1.0.
    """
    if not live_path(settings).exists():
        why = f"{settings.home} holds no tables."
        raise NotFoundError("There is nothing to view.", why, "Name a data folder, an archive or a run.")
    with reading(settings) as db:
        if any(is_earlier(body) for _, body in newest_events(db, type=RunStarted.__name__, limit=1)):
            raise EarlierLogError.of()
    with listening(settings) as sock:
        async with _opening(settings) as models:
            await serve(_context(settings, sock, models), sock, lambda: say(address_of(sock)))


@asynccontextmanager
async def archived(settings: Settings, archive: Path) -> AsyncIterator[Settings]:
    """Settings whose data folder is made of ``archive``, for as long as it is looked at.

    Raises:
        DamagedError: it is not what it was.
    """
    with tempfile.TemporaryDirectory(prefix="agent0-view-") as folder:
        archive_settings = settings.model_copy(update={"home": Path(folder)})
        live_path(archive_settings).parent.mkdir(mode=PRIVATE)
        storage = open_archive(archive)
        manifest = manifest_of(storage)
        require_whole(storage, manifest)
        await build(settings, Build(live_path(archive_settings), archive=archive))
        bring_artifacts(archive_settings, storage, manifest)
        yield archive_settings


def is_data_folder(path: Path) -> bool:
    """Whether ``path`` holds what runs leave behind, rather than an archive."""
    return any((path / name).exists() for name in ("tables", "nats", "seals.jsonl"))


@contextmanager
def listening(settings: Settings) -> Iterator[socket.socket]:
    """A socket that listens where ``settings.api`` says.

    Raises:
        AuthError: that is not a loopback address, and there is no key.
        OperationError: the port is taken, or the address is none of this machine's.
    """
    host, port = settings.api.host, settings.api.port
    if not is_loopback(host) and not KeyFile(settings.home).read():
        why = "Anyone who reaches that address could read and start everything."
        fix = "Make a key first: agent0 api key add NAME --scope submit"
        raise AuthError(f"The server does not listen on {host} without a key.", why, fix)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
            sock.listen(128)
        except OSError as error:
            raise _taken(host, port, error) from error
        yield sock


def _taken(host: str, port: int, error: OSError) -> OperationError:
    if error.errno == errno.EADDRINUSE:
        fix = "Open it in a browser, or take another port: --port 0 takes a free one."
        return OperationError(f"Port {port} of {host} is taken.", "Another server listens there.", fix)
    return OperationError(f"The server cannot listen on {host}:{port}.", f"{error.strerror}.", "Name another --host.")


def is_loopback(host: str) -> bool:
    """Whether ``host`` is an address that only this machine can reach."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def address_of(sock: socket.socket) -> str:
    """Make the address under which a browser opens the server."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _context(
    settings: Settings, sock: socket.socket, models: Models, log: Log | None = None, *, handlers: bool = False
) -> ApiContext:
    loopback = is_loopback(sock.getsockname()[0])
    return ApiContext(settings, KeyFile(settings.home), PastTables(settings), log, models, loopback, handlers)


async def serve(
    context: ApiContext,
    sock: socket.socket,
    stands: Callable[[], None] = lambda: None,
    app: ASGIApp | None = None,
) -> None:
    """Answer requests until cancelled, with ``app`` or all of the API; then streams end, and what is under way may.
    ``stands`` is called once requests are answered."""
    limits = context.settings.api
    connections = Connections(limits.connections_per_address, limits.request_s)
    config = uvicorn.Config(
        app or create_app(context),
        http=partial(BoundedProtocol, connections),  # type: ignore[arg-type]  # it is called, nothing else
        ws="none",
        lifespan="off",
        log_config=None,  # addresses may hold what does not belong in a log
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    server = _Server(config, stands)
    gc.freeze()  # modules and routes stay: else a page of many objects now and then waits while all are looked through
    answering = asyncio.ensure_future(server.serve(sockets=[sock]))
    try:
        await asyncio.shield(answering)
    finally:
        context.ending.set()
        server.should_exit = True
        await asyncio.wait([answering])
        gc.unfreeze()
        await context.rebuilding.close()
        await context.batches.close()
        context.deep.close()
        context.past.close()


class _Server(uvicorn.Server):
    """Signals are the command's business."""

    def __init__(self, config: uvicorn.Config, stands: Callable[[], None]) -> None:
        super().__init__(config)
        self._stands = stands

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if self.started:
            self._stands()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them as they are."""
        yield


LOOK_S = 2.0
"""Seconds between two looks. Events that stood in the log at the one before and are not in the tables are late."""


async def watch_lag(context: ApiContext) -> None:
    """Keep ``context.behind``, how far the tables are behind the log, until cancelled."""
    log, before = context.require_log(), 0
    while True:
        before = await look(context, log, before)
        await asyncio.sleep(LOOK_S)


async def look(context: ApiContext, log: Log, before: int) -> int:
    """Note how many events up to ``before``, the log's end at the last look, the tables lack; returns its end now."""
    try:
        end = await log.last_seq()
        tables_end = await context.end()
    except Agent0Error:  # the log or the tables are away: requests say so themselves
        return 0
    context.behind = max(0, before - tables_end)
    return end
