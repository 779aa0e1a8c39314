"""Part of the rim: an archive becomes the log of an empty data folder, all of it or nothing, or that of servers which
hosts share, where a cut try goes on."""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from dataclasses import replace
from pathlib import Path

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.log.export import describe_archive
from agent0.assembly.log.integrity import seal_file, topology
from agent0.assembly.runtime.plugins import known_handlers
from agent0.errors import DependencyError, LogError, OperationError
from agent0.events.base import sha256
from agent0.infra.bus.processes import ask
from agent0.infra.integrity.archive import Manifest, artifact_name, events_of, manifest_of
from agent0.infra.integrity.archive_check import examine
from agent0.infra.integrity.archive_place import ArchivePlace, DamagedError, open_archive, read
from agent0.infra.integrity.seal_journal import IMPORTING, Journal, SealFile, Stream
from agent0.infra.integrity.sealer import begin, require, through
from agent0.infra.log.artifacts.shared import SharedArtifacts
from agent0.infra.log.event_log import Log, NoLogError
from agent0.infra.log.nats_server import Server, open_server
from agent0.infra.log.restore import restore
from agent0.infra.log.streams import Topology, init
from agent0.settings import Settings


async def bring(settings: Settings, path: Path) -> dict[str, object]:
    """Make the log of the empty data folder, or of the servers of ``nats.url``, from the archive at ``path``. Sequences
    are as they were.

    Raises:
        DamagedError: the archive is not what it was. OperationError: the data folder is not empty, or the servers have
            another log. AuthError: this user of the servers may not make one.
    """
    storage = open_archive(path)
    manifest = manifest_of(storage)
    require_whole(storage, manifest)
    _require_room(settings, manifest)
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(settings.home):
        if settings.nats.url:
            await _to_servers(settings, storage, manifest)
            return describe_archive(path, manifest)
        staging = settings.home / IMPORTING
        await _clear(settings, staging)
        await _require_empty(settings)
        try:
            await _restore(settings, staging, storage, manifest)
            bring_artifacts(settings, storage, manifest)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
        if (settings.home / "nats").exists():
            shutil.rmtree(settings.home / "nats")  # it holds no event
        (staging / "nats").rename(settings.home / "nats")  # from here on it is done; what follows is done by any reader
        seal_file(settings).read()
        shutil.rmtree(staging)
    return describe_archive(path, manifest)


def require_whole(storage: ArchivePlace, manifest: Manifest) -> None:
    """Require that the archive at ``storage`` holds all that its ``manifest`` says.

    Raises:
        DamagedError: something is missing or was changed.
    """
    if wrong := examine(storage, manifest):
        raise DamagedError(storage.path, wrong)


def _require_room(settings: Settings, manifest: Manifest) -> None:
    """Raises before anything is written where the stream or the disk is too small."""
    events = sum(segment.bytes for segment in manifest.segments)
    if events > settings.nats.max_bytes:
        why = f"Its events take {events:,} bytes, and nats.max_bytes is {settings.nats.max_bytes:,}."
        raise OperationError("The archive is larger than the log may be.", why, "Raise nats.max_bytes, then try again.")
    needed = events + sum(artifact.size for artifact in manifest.artifacts)
    folder = next(path for path in (settings.home, *settings.home.absolute().parents) if path.is_dir())
    if needed > (free := shutil.disk_usage(folder).free):
        why = f"The archive holds {needed:,} bytes, and {free:,} are free in {folder}."
        raise DependencyError("disk space", why, "Free some space, or name another data folder: AGENT0_HOME=…")


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    with (home / ".import.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperationError("Another import is at work in this data folder.", fix="Wait for it.") from None
        yield


async def _clear(settings: Settings, staging: Path) -> None:
    """What an import that was killed left behind: its server may still run."""
    seal_file(settings).read()  # it may have been killed when all was done
    if (staging / "nats").exists():
        await (await open_server(staging, settings.nats)).stop()
    if staging.exists():
        shutil.rmtree(staging)


async def _require_empty(settings: Settings) -> None:
    fix = "Name an empty data folder: AGENT0_HOME=…"
    if seal_file(settings).read().stream or (settings.home / "tables" / "view.db").exists():
        raise OperationError("This data folder has a log already.", f"{settings.home} has known one.", fix)
    if not (settings.home / "nats").exists():
        return
    try:
        async with open_log(settings, "reader") as log:
            if await log.last_seq():
                raise OperationError("This data folder has a log already.", f"{settings.home} holds events.", fix)
            await _require_alone(log.server)
    except NoLogError:
        server = await open_server(settings.home, settings.nats)
        try:
            await _require_alone(server)
        finally:
            await server.stop()


async def _require_alone(server: Server) -> None:
    if not await server.alone():
        raise OperationError("Others use this data folder's log.", fix="Stop them first.")


async def _restore(settings: Settings, staging: Path, storage: ArchivePlace, manifest: Manifest) -> None:
    """A whole server's folder beside the one that is used, with every event read back."""
    server = await open_server(staging, settings.nats)
    try:
        expected = Topology(settings.nats, settings.handlers, manifest.first)
        await init(server, expected, known_handlers().values())
        await restore(server, events_of(storage, manifest))
        await _read_back(server, manifest, SealFile(staging))
    finally:
        await server.stop()


async def _to_servers(settings: Settings, storage: ArchivePlace, manifest: Manifest) -> None:
    """First what events name, then the events, behind those that an earlier try has stored."""
    if seal_file(settings).read().stream:
        why = f"{settings.home} has known one."
        raise OperationError("This data folder has a log already.", why, "Name an empty data folder: AGENT0_HOME=…")
    server = await open_server(settings.home, settings.nats)
    try:
        expected = replace(topology(settings), first_seq=manifest.first)
        await init(server, expected, known_handlers().values(), change=False)
        async with await Log.connect(server, "app") as log:
            if processes := await ask(log):
                why = f"Process {processes[0]} does, and would begin before all is there."
                raise OperationError("Others react to the events of that log.", why, "Stop them first.")
            last = (await log.info()).last_seq
            await _require_same(log, last, storage, manifest)
        bring_artifacts(settings, storage, manifest)
        if isinstance(store := artifact_store(settings), SharedArtifacts):
            await store.share()
        await restore(server, events_of(storage, manifest, last))
        await _read_back(server, manifest, seal_file(settings))
    finally:
        await server.stop()


async def _require_same(log: Log, last: int, storage: ArchivePlace, manifest: Manifest) -> None:
    """Raises OperationError where the log holds anything else, up to ``last``, than the archive's first events."""
    fix = "Name servers without a log: AGENT0_NATS_URL=…"
    different = OperationError("The servers have another log.", f"It goes up to event {last:,}.", fix)
    if last > manifest.last:
        raise different
    expected = (stored for chunk in events_of(storage, manifest, 0, last) for stored in chunk)
    if last >= manifest.first:
        async with aclosing(log.read_bodies(manifest.first - 1, last)) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                if any(stored != next(expected) for stored in chunk):
                    raise different


async def _read_back(server: Server, manifest: Manifest, file: SealFile) -> None:
    """Require that the log is what the archive was; its stream and seals are noted in ``file``."""
    async with await Log.connect(server, "reader") as log:
        info = await log.info()
        out = (*manifest.redacted, *manifest.elsewhere)
        stream = Stream(info.created, manifest.first, manifest.before, out, manifest.last)
        chain = begin(Journal(streams=(stream,)))
        require([difference async for difference in through(log, chain, manifest.last)])
        if (chain.close(), info.last_seq) != (manifest.after, manifest.last):
            raise LogError("The log does not hold what the archive does.", fix="Try again.")
        file.note(stream, *chain.met)


def bring_artifacts(settings: Settings, storage: ArchivePlace, manifest: Manifest) -> None:
    """Copy the artifacts of the archive at ``storage`` into the data folder.

    Raises:
        LogError: one is not what its digest says.
    """
    store = artifact_store(settings)
    for artifact in manifest.artifacts:
        data = read(storage, artifact_name(artifact), artifact.size)
        if sha256(data) != artifact.sha256:
            raise LogError(f"Artifact {artifact.sha256[:12]} changed while it was read.", fix="Use a whole copy.")
        store.put(data, artifact.media)
