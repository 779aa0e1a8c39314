"""What reading models from the log costs: the same events, into the same tables, from three stores in one run.

- ``log``: nats-server with fsync always, the reader and projector that Agent0 runs;
- ``jsonl``: the same bodies from a file, line by line: the bound that no server can beat (aim: log/jsonl >= 0.5);
- ``eventsourcing``: the library's SQLite recorder, JSON transcoder and mapper; its domain events, typed like ours, go
  to the same projector in batches, which is kinder to it than its own ProjectionRunner (aim: log/library > 1);
- ``eventsourcing, one a time``: one transaction an event, as its ProjectionRunner does it, on a tenth of the events.

Stores take turns in each round. A rate is events a second (median of the rounds), a ratio the median of each round's.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from eventsourcing.domain import DomainEvent
from eventsourcing.persistence import DatetimeAsISO, JSONTranscoder, Mapper, UUIDAsHex
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

from agent0.events.base import Recorded, decode
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import open_server
from agent0.infra.log.streams import Topology, init
from agent0.infra.storage.sqlite import connect
from agent0.projections import Projector, tables
from agent0.settings import HandlerSettings, NatsSettings
from tests.story import whole_run

Stored = list[tuple[int, bytes]]
Read = Callable[[int], AsyncIterator[Stored]]
CHUNK = 500


@dataclass(frozen=True)
class Happened(DomainEvent):
    """Our envelope and payload as a domain event of the library."""

    fact: dict[str, Any]


class Library:
    """An event store of the ``eventsourcing`` library in a SQLite file."""

    def __init__(self, path: Path) -> None:
        self.mapped: dict[int, dict[str, Any]] = {}
        self.recorder = SQLiteApplicationRecorder(SQLiteDatastore(str(path)))
        self.recorder.create_table()
        transcoder = JSONTranscoder()
        transcoder.register(UUIDAsHex())
        transcoder.register(DatetimeAsISO())
        self.mapper = Mapper(transcoder)

    def append(self, told: list[Recorded]) -> None:
        """One aggregate a run, one version an event."""
        aggregate = uuid5(NAMESPACE_OID, told[0].run)
        happened = [Happened(aggregate, e.seq, e.time, json.loads(e.to_json())) for e in told]
        for start in range(0, len(happened), CHUNK):
            self.recorder.insert_events([self.mapper.to_stored_event(x) for x in happened[start : start + CHUNK]])

    async def read(self, after: int) -> AsyncIterator[Stored]:
        """Its notification log, mapped to domain events."""
        while chunk := self.recorder.select_notifications(after + 1, CHUNK):
            self.mapped = {n.id: self.mapper.to_domain_event(n).fact for n in chunk}
            yield [(n.id, n.state) for n in chunk]
            after = chunk[-1].id


class LibraryProjector(Projector):
    """Takes the facts that the library has already read out of its bodies."""

    library: Library

    def decode(self, seq: int, body: bytes) -> Recorded:
        return decode(self.library.mapped[seq], seq)


async def read_jsonl(path: Path, after: int) -> AsyncIterator[Stored]:
    """Lines of a file as chunks; the line's number is the sequence."""
    chunk: Stored = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if number > after:
                chunk.append((number, line))
            if len(chunk) == CHUNK:
                yield chunk
                chunk = []
    if chunk:
        yield chunk


async def fill(log: Log, jsonl: Path, library: Library, events: int) -> int:
    """The same runs into all three stores until they hold at least ``events``."""
    count = run = 0
    with jsonl.open("wb") as lines:
        while count < events:
            told = whole_run(f"r{run}", iterations=4, tasks=64, attempts=8, seed=run)
            for start in range(0, len(told), CHUNK):
                await log.append(told[start : start + CHUNK])
            lines.writelines(e.to_json() + b"\n" for e in told)
            library.append(told)
            count, run = count + len(told), run + 1
    return count


@dataclass(frozen=True)
class Speed:
    """Of one projection: events, events a second, CPU microseconds an event (this process; the server has its own)."""

    events: int
    rate: float
    cpu_us: float


async def timed(folder: Path, read: Read, library: Library | None, singly: int = 0) -> Speed:
    """Project into a new file; ``singly``: that many events, each in its own transaction."""
    path = folder / "view.db"
    projector = (LibraryProjector if library else Projector)(path, connect, tables(), "bench")
    if isinstance(projector, LibraryProjector) and library:
        projector.library = library
    start, worked = time.perf_counter(), time.process_time()
    await (apply_singly(projector, read, singly) if singly else projector.catch_up(read))
    took, worked, done = time.perf_counter() - start, time.process_time() - worked, projector.position.seq
    projector.close()
    path.unlink()
    return Speed(done, done / took, worked / done * 1e6)


async def apply_singly(projector: Projector, read: Read, until: int) -> None:
    """One transaction an event."""
    async for chunk in read(0):
        for stored in chunk:
            projector.apply([stored])
        if chunk[-1][0] >= until:
            return


async def measure(events: int, rounds: int, folder: Path) -> dict[str, list[Speed]]:
    """Every store in every round."""
    server = await open_server(folder / "nats", NatsSettings())
    try:
        await init(server, Topology(NatsSettings(), HandlerSettings()), ())
        async with await Log.connect(server) as log:
            library, jsonl = Library(folder / "library.db"), folder / "events.jsonl"
            total = await fill(log, jsonl, library, events)
            size = jsonl.stat().st_size / total
            print(f"{total} events of {size:.0f} bytes, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
            readers: dict[str, tuple[Read, Library | None, int]] = {
                "log": (log.read_bodies, None, 0),
                "jsonl": (lambda after: read_jsonl(jsonl, after), None, 0),
                "eventsourcing": (library.read, library, 0),
                "eventsourcing, one a time": (library.read, library, total // 10),
            }
            speeds: dict[str, list[Speed]] = {name: [] for name in readers}
            for number in range(rounds):
                for name in list(readers)[:: 1 if number % 2 == 0 else -1]:
                    speed = await timed(folder, *readers[name])
                    assert readers[name][2] or speed.events == total, f"{name} gave {speed.events} of {total} events"
                    speeds[name].append(speed)
            return speeds
    finally:
        await server.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        speeds = asyncio.run(measure(chosen.events, chosen.rounds, Path(folder)))
    met = True
    for name, each in speeds.items():
        ratio = median(ours.rate / theirs.rate for ours, theirs in zip(speeds["log"], each, strict=True))
        aim = {"jsonl": 0.5, "eventsourcing": 1.0}.get(name)
        met &= aim is None or ratio >= aim
        rate, cpu = median(x.rate for x in each), median(x.cpu_us for x in each)
        verdict = f"  (aim {aim})" if aim else ""
        print(f"{name:26} {rate:7.0f} events/s {cpu:6.1f} us CPU an event  log/this {ratio:5.2f}{verdict}")
    return 0 if met else 3


if __name__ == "__main__":
    sys.exit(main())
