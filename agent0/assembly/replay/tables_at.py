"""Part of the rim: tables as of any moment in a file of their own, from the log or from an archive of it. A pure read:
nothing but that file is written."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from time import monotonic

from agent0.assembly.log.full_history import Bodies, history
from agent0.assembly.log.integrity import seal_file
from agent0.assembly.replay.stored_experiments import Progress, Report
from agent0.assembly.runtime.plugins import load_plugins
from agent0.assembly.runtime.read_models import reading_log
from agent0.config.setting_entries import nearest
from agent0.errors import ConfigError, NotFoundError
from agent0.events.base import decode
from agent0.infra.integrity.archive import events_of, manifest_of
from agent0.infra.integrity.archive_place import open_archive
from agent0.infra.integrity.seal_journal import sync_folder
from agent0.infra.storage.sqlite import connect, explained
from agent0.projections import Position, Table, tables
from agent0.projections import build as build_file
from agent0.settings import Settings


@dataclass(frozen=True)
class Build:
    """What is asked for: the tables ``names`` (none: all) in the new file ``into``, with every event up to ``seq`` or
    before the first one that is later than ``time`` (neither: all there are), of ``archive`` or else of the log."""

    into: Path
    names: tuple[str, ...] = ()
    seq: int = 0
    time: datetime | None = None
    archive: Path | None = None


@dataclass(frozen=True)
class _EventRange:
    """Events from ``first`` to ``last`` of the log ``name``; ``read`` gives those after one sequence up to another."""

    name: str
    first: int
    last: int
    read: Callable[[int, int], AsyncIterator[Bodies]]


async def build(settings: Settings, request: Build, report: Report = lambda _: None) -> dict[str, object]:
    """Make ``asked.into``: all of it or nothing.

    Raises:
        NotFoundError: no such table, event, archive or moment.
        ConfigError: the file is there already, or cannot be.
        LogError: the log or the archive is damaged; its place is named.
    """
    tables = known_tables(request.names)
    _require_free(settings, request.into)
    async with _past(settings, request.archive) as past:
        begin, until = Position(past.name, past.first - 1), _until(past, request.seq)
        if request.time:
            await _require_before(past, request.time)
        with explained(request.into):
            built = await build_file(
                request.into, connect, tables, begin, lambda _: _events(past, until, request.time, report)
            )
    sync_folder(request.into.absolute().parent)
    events = built.seq - begin.seq
    return {"path": str(request.into), "seq": built.seq, "events": events, "sha256": built.digests}


def known_tables(names: tuple[str, ...] = ()) -> dict[str, Table]:
    """Tables by name; only ``names`` where given.

    Raises:
        NotFoundError: no such table.
    """
    load_plugins()
    definitions = tables()
    for name in names:
        if name not in definitions:
            hint = nearest(name, list(definitions))
            raise NotFoundError(f"There is no table {name[:80]!r}.", hint, "See: agent0 projections list")
    return {name: definitions[name] for name in names or definitions}


def moment(text: str) -> datetime:
    """An ISO 8601 date, with or without a time; UTC where it names no zone.

    Raises:
        ConfigError: it is none.
    """
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError as error:
        fix = "Write it as in 2026-11-21T14:30:00Z or 2026-11-21."
        raise ConfigError(f"{text[:80]!r} is no time.", f"{error}.", fix) from error
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _require_free(settings: Settings, path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise ConfigError(f"{path} is there already.", fix="Name a file that is not.")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"{path} cannot be written.", f"There is no folder {path.absolute().parent}.")
    if path.absolute().parent.resolve() == (settings.home / "tables").resolve():
        raise ConfigError(f"{path} cannot be written.", "The live tables are in that folder.", "Name another one.")


@asynccontextmanager
async def _past(settings: Settings, archive: Path | None) -> AsyncIterator[_EventRange]:
    if archive is not None:
        yield _archived(archive)
        return
    async with reading_log(settings) as log:
        recorded, info = seal_file(settings).read(), await log.info()
        yield _EventRange(recorded.identity or info.created, recorded.first, info.last_seq, history(settings, log))


def _archived(path: Path) -> _EventRange:
    storage = open_archive(path)
    manifest = manifest_of(storage)

    async def read(after: int, until: int) -> AsyncIterator[Bodies]:
        for chunk in events_of(storage, manifest, after, until):
            yield [(number, body, "") for number, body in chunk]

    return _EventRange(manifest.created, manifest.first, manifest.last, read)


def _until(past: _EventRange, seq: int) -> int:
    if past.last < past.first:
        raise NotFoundError("There is nothing to make tables of.", "No event is stored.")
    if seq and not past.first <= seq <= past.last:
        raise NotFoundError(f"There is no event {seq}.", f"There are {past.first} to {past.last}.")
    return seq or past.last


async def _require_before(past: _EventRange, time: datetime) -> None:
    async with aclosing(past.read(past.first - 1, past.first)) as chunks:  # type: ignore[type-var]
        async for (_, body, _), *_ in chunks:
            if _later(body, time):
                raise NotFoundError(f"Nothing had happened at {time}.", f"The first event is of {decode(body).time}.")


async def _events(past: _EventRange, until: int, time: datetime | None, report: Report) -> AsyncIterator[Bodies]:
    """What tables are made of; says after each chunk how much of it there was."""
    began, everything = monotonic(), until - past.first + 1
    async with aclosing(past.read(past.first - 1, until)) as chunks:  # type: ignore[type-var]
        async for chunk in chunks:
            kept = [*takewhile(lambda pair: not _later(pair[1], time), chunk)] if time else chunk
            if kept:
                yield kept
                report(Progress(kept[-1][0] - past.first + 1, everything, monotonic() - began))
            if len(kept) < len(chunk):
                return


def _later(body: bytes, time: datetime) -> bool:
    """A body that cannot be read is not: whoever reads on says what is wrong with it."""
    try:
        return decode(body).time > time
    except ValueError:
        return False
