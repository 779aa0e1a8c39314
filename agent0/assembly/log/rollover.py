"""Part of the rim: a log that is full goes on in a fresh stream, whose numbers go on; what was before is an archive."""

from pathlib import Path

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.log.export import ExportRequest, describe_archive, write
from agent0.assembly.log.integrity import seal_file, sealer, verify
from agent0.assembly.log.restore import require_whole
from agent0.assembly.log.rollover_recovery import MANIFEST, entries_to_carry, finish
from agent0.assembly.runtime.read_models import catch_up, reading
from agent0.assembly.runtime.stamping import recorded
from agent0.errors import LogError, OperationError
from agent0.events.alarms import LOG, MessageExcluded
from agent0.events.base import sha256
from agent0.infra.integrity.archive import Manifest
from agent0.infra.integrity.archive_place import open_archive
from agent0.infra.integrity.seal_journal import Archived
from agent0.infra.integrity.sealer import BrokenLogError
from agent0.infra.log.event_log import Log
from agent0.infra.storage.state_files import StateFiles
from agent0.projections.runs import list_runs
from agent0.settings import Settings

OVER = ("finished", "cancelled")


async def archive(settings: Settings, path: Path) -> dict[str, object]:
    """Seal and export everything, then go on in a fresh stream whose numbers go on: a position stays one number.

    Raises:
        OperationError: a run is not over, or others use the log. LogError: the log is damaged.
    """
    if settings.nats.url:
        why = "Only the embedded server's stream can be replaced safely."
        raise OperationError("An external server's log cannot be archived.", why, "Raise nats.max_bytes there.")
    async with open_log(settings) as log:
        await _require_over(settings, log)
        async with sealer(settings, log):
            pass  # its end seals what there is
        await catch_up(settings, log)
        if differences := (await verify(settings, log)).differences:
            raise BrokenLogError(differences)
        manifest = await _put_away(settings, log, path)
        await finish(settings, log.server)
    StateFiles(settings.home).clear()  # they are of the stream that went
    return {**describe_archive(path, manifest), "continues_at": manifest.last + 1}


async def _require_over(settings: Settings, log: Log) -> None:
    await catch_up(settings, log)
    with reading(settings) as db:
        left = [str(row["run"]) for row in list_runs(db, 1_000_000, hidden=True) if row["status"] not in OVER]
    if left:
        fix = "Let them finish (agent0 run resume RUN), or cancel them (agent0 run cancel RUN)."
        raise OperationError("Runs that are not over need their events here.", f"{', '.join(left[:20])}.", fix)
    if not await log.server.alone():
        raise OperationError("Others use the log.", "Its stream would be taken from under them.", "Stop them first.")


async def _put_away(settings: Settings, log: Log, path: Path) -> Manifest:
    """Write the archive, read it back, and note that it is the truth up to its end."""
    manifest, written = await write(settings, log, path, ExportRequest())
    if manifest.last < manifest.first:
        raise OperationError("There is nothing to archive.")
    require_whole(open_archive(path), manifest)
    kept = artifact_store(settings).put(written, MANIFEST)
    going_on = await entries_to_carry(log, manifest.runs)
    location = str(path.absolute())
    noted = Archived(
        manifest.first, manifest.last, manifest.after, location, kept.sha256, kept.size, manifest.runs, going_on
    )
    seal_file(settings).note(noted)  # from here on the old stream may go
    return manifest


async def set_aside(settings: Settings, seq: int, reason: str) -> dict[str, object]:
    """Go on without the message at ``seq``, which is no event; what was noted of it.

    Raises:
        NotFoundError: there is none. OperationError: it can be read, or was set aside before.
    """
    async with open_log(settings) as log:
        body = await log.body(seq)
        try:
            await log.message(seq)
        except LogError as error:
            why = error.why
        else:
            fix = "To leave an event out for good: agent0 events export PATH --redact TASK"
            raise OperationError(f"Event {seq} is not set aside.", "It can be read, or was set aside before.", fix)
        event = MessageExcluded(at=seq, sha256=sha256(body), reason=reason)
        await log.append([recorded(LOG, event)])
    return {"at": seq, "sha256": event.sha256, "bytes": len(body), "why": why, "reason": reason}
