"""Logs to be archived, and what is compared of them."""

import tarfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from agent0.assembly.log.access import open_log
from agent0.assembly.log.full_history import history
from agent0.assembly.log.integrity import sealer, verify
from agent0.assembly.runtime.read_models import catch_up, live_path
from agent0.config.loading import load
from agent0.events.alarms import AlarmRaised
from agent0.events.base import Event, Recorded, record
from agent0.events.values import Artifact
from agent0.infra.integrity.seal_journal import SealFile
from agent0.infra.log.event_log import Log
from agent0.infra.storage import sqlite
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.projections import tables
from agent0.projections.views import digests
from agent0.settings import Settings
from agent0.tools.snapshots import save
from tests.story import whole_run

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STORY = whole_run(iterations=1, tasks=2, attempts=2)
SECRET = "the patient's name"


def settings_of(home: Path, **more: str) -> Settings:
    return load("scripted", {"home": str(home), "nats.seal_every": "15", **more}, {})


def told(event: Event, run: str = "r1") -> Recorded:
    return record(event, run=run, time=NOON)


def naming(artifact: Artifact, name: str = "a", run: str = "r1", message: str = "m") -> Recorded:
    facts = {"kept": artifact.model_dump()}
    return told(AlarmRaised(alarm=name, severity="info", message=message, facts=facts), run)


async def seal(held: Settings, log: Log) -> None:
    async with sealer(held, log):
        pass


async def fill(held: Settings) -> Settings:
    """A home with a told run, three artifacts (one names two more), seals and tables."""
    store = FileArtifacts(held.home)
    folder = save({"notes.txt": b"kept", "more.txt": SECRET.encode()}, store)
    assert folder
    async with open_log(held, make=True) as log:
        await log.append(STORY)
        await log.append([naming(folder), naming(store.put(b"weights", "application/x-tar"), "b", message=SECRET)])
        await seal(held, log)
        await catch_up(held, log)
    return held


async def bodies(held: Settings) -> list[tuple[int, bytes]]:
    before = SealFile(held.home).read().first - 1
    async with open_log(held, "reader") as log:
        return [(seq, body) async for chunk in history(held, log)(before, 0) for seq, body, _ in chunk]


def sums(held: Settings) -> dict[str, str]:
    with closing(sqlite.connect(live_path(held).resolve(), read_only=True)) as db:
        return digests(db, tables())


async def sound(held: Settings) -> bool:
    async with open_log(held, "reader") as log:
        return not (await verify(held, log)).differences


def empty(home: Path) -> bool:
    return not any((home / name).exists() for name in ("nats", "seals.jsonl", "tables"))


def segment(path: Path, number: int) -> Path:
    return sorted((path / "segments").iterdir())[number]


def flipped(path: Path) -> None:
    """One bit in the middle; of a tar's largest member, since nothing vouches for what lies between members."""
    data = bytearray(path.read_bytes())
    place = len(data) // 2
    if tarfile.is_tarfile(path):
        with tarfile.open(path) as tar:
            largest = max(tar.getmembers(), key=lambda member: member.size)
        place = largest.offset_data + largest.size // 2
    data[place] ^= 0x10
    path.write_bytes(data)
