"""Part of the rim: what is known of the log outside its server, compared with it before work begins and while it goes
on."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from agent0.assembly.runtime.stamping import recorded
from agent0.errors import Agent0Error
from agent0.events.alarms import LOG
from agent0.infra.integrity import sealer as seals
from agent0.infra.integrity.seal_journal import Journal, SealFile
from agent0.infra.integrity.sealer import Sealer, Verified
from agent0.infra.log.event_log import Log
from agent0.infra.log.reader import GapError
from agent0.infra.log.set_aside import unreadable
from agent0.infra.log.streams import Topology
from agent0.infra.storage import sqlite
from agent0.projections import position
from agent0.projections.seals import bodies_between, list_seals
from agent0.provenance.hash_chain import LogMismatch, Seal, digest_of
from agent0.settings import Settings


def seal_file(settings: Settings) -> SealFile:
    """Open the file in the data folder that records the hash-chain checkpoints (``seals.jsonl``)."""
    return SealFile(settings.home)


def topology(settings: Settings, recorded: Journal | None = None) -> Topology:
    """Make the expected configuration of the log's streams."""
    recorded = recorded or seal_file(settings).read()
    stream = recorded.stream
    shared = settings.artifacts.max_bytes if settings.artifacts.store == "nats" else 0
    return Topology(settings.nats, settings.handlers, stream.first if stream else 1, stream is not None, shared)


async def look(settings: Settings, log: Log) -> None:
    """The look before work: short, but of the whole log after a stop that was none.

    Raises:
        LogError: the log is not what it was; nothing may be written to it.
    """
    file, copy = seal_file(settings), _Copy(settings)
    recorded = file.read()
    if recorded.stream is None:
        recorded = await seals.first_sight(log)
        if kept := copy.seals(recorded):  # the file was lost, and the tables were not
            seals.require((await seals.verify(log, recorded, kept, copy.reached(recorded), copy)).differences)
        file.note(*recorded.streams, *kept)
    await seals.check(log, file, copy.reached(recorded), copy)


async def verify(settings: Settings, log: Log) -> Verified:
    """The whole log against its seals, those in the data folder, and the tables."""
    copy, recorded = _Copy(settings), seal_file(settings).read()
    noted = recorded.stream is not None
    recorded = recorded if noted else await seals.first_sight(log)
    kept = copy.seals(recorded)
    verified = await seals.verify(log, recorded, kept, copy.reached(recorded), copy)
    if noted or not kept:
        return verified
    why = f"what was noted of them in the data folder (seals.jsonl) is gone; the tables know {len(kept):,} seals"
    return replace(
        verified, differences=(*verified.differences, LogMismatch("gone", verified.first, verified.last, why))
    )


async def check_log(settings: Settings, log: Log) -> tuple[dict[str, object], Sequence[LogMismatch]]:
    """Verify the log; return its state, extent and counts as JSON values, and where it differs."""
    verified = await verify(settings, log)
    verified = replace(verified, differences=(*verified.differences, *await _foreign(log, verified)))
    recorded = seal_file(settings).read()
    facts: dict[str, object] = {
        "state": "broken" if verified.differences else "whole",
        "first": verified.first,
        "last": verified.last,
        "created": verified.created,
        "seals": verified.seals,
        "sealed": verified.sealed,
        "redacted": verified.redacted,
        "set_aside": len(log.asides),
        "archives": [archive.path for archive in recorded.archives],
    }
    return facts, verified.differences


async def _foreign(log: Log, verified: Verified) -> list[LogMismatch]:
    """Messages that are no events, as far as the log can be read."""
    out = []
    with suppress(GapError):
        async for chunk in log.read_stored(verified.first - 1, verified.last):
            for seq, why in ((seq, unreadable(body, subject)) for seq, body, subject in chunk):
                if why:
                    fix = f"where no Agent0 wrote it, go on without: agent0 events set-aside {seq}"
                    out.append(LogMismatch("foreign", seq, seq, f"it is no event that can be read ({why}); {fix}"))
    return out


def sealer(settings: Settings, log: Log) -> Sealer:
    """Make the task that appends hash-chain checkpoints to ``log`` while a process works."""
    return Sealer(log, seal_file(settings), settings.nats.seal_every, lambda event: recorded(LOG, event))


async def seal(settings: Settings, log: Log) -> None:
    """Seal everything there is, however much that is; where another process seals, it does."""
    await sealer(settings, log).finish(None)


class _Copy:
    """What the tables hold of the log. Tables that are not there, or of another log, hold nothing."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.home / "tables" / "view.db"

    def reached(self, recorded: Journal) -> int:
        """How far they have come."""
        at = self._ask(position)
        return at.seq if at and at.stream == recorded.identity else 0

    def seals(self, recorded: Journal) -> list[Seal]:
        """The seals they have seen."""
        return [Seal(**row) for row in self._ask(list_seals) or ()] if self.reached(recorded) else []

    def __call__(self, first: int, last: int) -> Mapping[int, bytes]:
        bodies = self._ask(lambda db: bodies_between(db, first, last)) or {}
        return {seq: digest_of(body) for seq, body in bodies.items()}

    def _ask(self, query: Any) -> Any:
        """What ``query`` answers; None where the tables cannot be asked: they are a help, and no condition."""
        if self._path.exists():
            with suppress(Agent0Error, sqlite3.Error), sqlite.reading(self._path) as db:
                return query(db)
        return None
