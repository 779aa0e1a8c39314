"""Part of the rim: makes the successor of a stream that was archived, also after a crash in between."""

from collections.abc import Iterable, Iterator

from agent0.assembly.log.integrity import seal_file, topology
from agent0.assembly.runtime.plugins import known_handlers
from agent0.assembly.runtime.stamping import recorded, utc_now
from agent0.events.alarms import LOG, LogContinued
from agent0.events.base import Recorded, decode, effect_id
from agent0.events.budgets import PREFIX, BudgetChanged
from agent0.events.values import Artifact
from agent0.infra.gateway.ledger import newest_entry
from agent0.infra.integrity.seal_journal import Stream
from agent0.infra.log.event_log import Log, NoLogError
from agent0.infra.log.nats_server import Server
from agent0.infra.log.restore import renew
from agent0.infra.log.server_folder import provisioning
from agent0.routing.budgets import balance_of, carry
from agent0.settings import Settings

MANIFEST = "application/vnd.agent0.archive+json"


async def finish(settings: Settings, server: Server) -> None:
    """Where a stream was archived and has no successor yet, make it. Harmless to repeat."""
    file = seal_file(settings)
    async with provisioning(server.folder, "archive.lock"):
        left = file.read().left
        if left is None:
            return
        expected = topology(settings, file.read())
        fresh = type(expected)(expected.nats, expected.handlers, left.before + 1)
        try:
            async with await Log.connect(server, "reader") as log:
                renewed = (await log.info()).first_seq == left.before + 1
        except NoLogError:
            renewed = False
        if not renewed:
            await renew(server, fresh, known_handlers().values())
        async with await Log.connect(server, "app") as log:
            if await log.last_seq() <= left.before:
                manifest = Artifact(sha256=left.manifest, size=left.size, media=MANIFEST)
                begin = recorded(LOG, LogContinued(before=left.before, seal=left.digest, archive=manifest))
                events = [begin, *carried(left.budgets)]
                ids = (effect_id(left.manifest, "archive", left.before + n) for n in range(len(events)))
                await log.append([e.model_copy(update={"id": id}) for e, id in zip(events, ids, strict=False)])
            info = await log.info()
            file.note(Stream(info.created, left.before + 1, left.digest, last=info.last_seq))


async def entries_to_carry(log: Log, runs: Iterable[str]) -> tuple[str, ...]:
    """The newest entry, as it would be stored, of each budget among the run tokens ``runs`` that goes on: all but those
    of runs, which are over, and of days that are."""
    entries = [(run, await newest_entry(log, run)) for run in runs if run.startswith(PREFIX)]
    return tuple(recorded(run, entry).to_json().decode() for run, entry in entries if entry and _goes_on(entry))


def carried(bodies: Iterable[str]) -> Iterator[Recorded]:
    """An entry that continues each of those budgets in a fresh log."""
    for recorded_before in map(decode, bodies):
        if isinstance(recorded_before.event, BudgetChanged):
            yield recorded(recorded_before.run, carry(balance_of(recorded_before.event)))


def _goes_on(entry: BudgetChanged) -> bool:
    return entry.scope != "day" or bool(entry.open) or entry.name >= f"{utc_now():%Y-%m-%d}"
