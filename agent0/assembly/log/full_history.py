"""Part of the rim: everything there ever was in the log, the archives it goes on from included."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path

from agent0.assembly.log.integrity import seal_file
from agent0.errors import NotFoundError
from agent0.infra.integrity.archive import events_of, manifest_of
from agent0.infra.integrity.archive_place import open_archive
from agent0.infra.integrity.seal_journal import Archived
from agent0.infra.log.event_log import Log
from agent0.settings import Settings

Bodies = list[tuple[int, bytes, str]]


def history(settings: Settings, log: Log) -> Callable[[int, int], AsyncIterator[Bodies]]:
    """Reads all there ever was: archives first, then the log. Chunks of (sequence, body, subject: empty in archives)
    after one sequence, up to and with another (0: to the present end).

    Raises:
        NotFoundError: an archive is not where it was written to.
    """
    archives = seal_file(settings).read().archives

    async def read(after: int, until: int = 0) -> AsyncIterator[Bodies]:
        for archive in archives:
            if archive.before > after and not (until and archive.first > until):
                for chunk in _archived(archive, after, until):
                    yield chunk
                    after = chunk[-1][0]
        if not until or after < until:
            async with aclosing(log.read_stored(after, until)) as chunks:  # type: ignore[type-var]
                async for stored in chunks:
                    yield stored

    return read


def _archived(archive: Archived, after: int, until: int) -> Iterator[Bodies]:
    try:
        storage = open_archive(Path(archive.path))
    except NotFoundError as error:
        what = f"Events {archive.first:,} to {archive.before:,} are in an archive."
        why = f"It was written to {archive.path}, which is not there."
        raise NotFoundError(what, why, "Put it back.") from error
    chunks = events_of(storage, manifest_of(storage), after, until)
    return ([(seq, body, "") for seq, body in chunk] for chunk in chunks)
