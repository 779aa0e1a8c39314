"""What evidence costs: sealing, verifying, exporting and importing a log, in events a second and in microseconds of
this process's CPU an event; and what the hot path feels of a sealer in the same process: appends a second without one
and with one, in turn.

``python -m benchmarks.evidence --events 100000``. Events are as long as those of a run (about 1 KB). Wall time has the
machine's load and its disk in it; CPU time has not.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from agent0.assembly.log.access import open_log
from agent0.assembly.log.export import export
from agent0.assembly.log.integrity import look, sealer, verify
from agent0.assembly.log.restore import bring
from agent0.config.loading import load
from agent0.events.alarms import AlarmRaised
from agent0.events.base import Recorded, record
from agent0.infra.log.event_log import Log
from agent0.provenance.hash_chain import Chain
from agent0.settings import Settings

NOON = datetime(2026, 1, 1, tzinfo=UTC)
TURNS, APPENDS, AT_ONCE = 6, 20_000, 120


def alarms(first: int, count: int, size: int) -> list[Recorded]:
    """Events of about ``size`` bytes; half of each cannot be compressed, as with ids, numbers and words."""
    draw = random.Random(first)
    words = "the same words " * (size // 30)
    texts = (words + draw.randbytes(size // 4).hex() for _ in range(count))
    made = (AlarmRaised(alarm=f"a{n}", severity="info", message=text) for n, text in enumerate(texts, first))
    return [record(event, run=f"r{n % 7}", time=NOON) for n, event in enumerate(made)]


@contextlib.contextmanager
def timed(told: dict[str, float], name: str, events: int) -> Iterator[None]:
    """Events a second under ``name``."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    told[name] = events / (time.perf_counter() - wall)
    told[f"{name}, CPU us"] = (time.process_time() - cpu) / events * 1e6


async def rates(held: Settings, new: Settings, path: Path, events: int, size: int) -> dict[str, float]:
    """Each step over the same log."""
    told: dict[str, float] = {}
    async with open_log(held, make=True) as log:
        with timed(told, "append", events):
            for first in range(0, events, 1000):
                await log.append(alarms(first, min(1000, events - first), size))
        with timed(told, "read", events):
            async with aclosing(log.read_bodies()) as chunks:  # type: ignore[type-var]
                bodies = [one async for chunk in chunks for one in chunk]
        with timed(told, "hash", events):
            chain = Chain()
            for seq, body in bodies:
                chain.feed(seq, body)
        del bodies
        with timed(told, "seal", events):
            async with sealer(held, log):
                pass
        with timed(told, "verify", events):
            assert not (await verify(held, log)).differences
    async with open_log(held) as log:
        begin = time.perf_counter()
        await look(held, log)
        told["look before work, seconds"] = time.perf_counter() - begin
    with timed(told, "export", events):
        await export(held, path)
    told["archive, bytes an event"] = sum(p.stat().st_size for p in path.rglob("*") if p.is_file()) / events
    with timed(told, "import", events):
        await bring(new, path)
    return told


async def felt(held: Settings, size: int) -> dict[str, float]:
    """Appends a second in batches, without and with a sealer beside them, in turn; the median of the pairs' ratios."""
    without, beside = [], []
    async with open_log(held, make=True) as log:
        for turn in range(TURNS):
            for rate, sealing in ((without, False), (beside, True))[:: 1 if turn % 2 else -1]:
                rate.append(await _appends(held, log, size, sealing))
    ratio = median(a / b for a, b in zip(beside, without, strict=True))
    return {"append alone": median(without), "append beside a sealer": median(beside), "ratio": ratio}


async def _appends(held: Settings, log: Log, size: int, sealing: bool) -> float:
    begin, seals = await log.last_seq(), sealer(held, log)
    working = asyncio.create_task(seals.run()) if sealing else None
    made = alarms(begin, APPENDS, size)
    clock = time.perf_counter()
    for first in range(0, APPENDS, AT_ONCE):
        await log.append(made[first : first + AT_ONCE])
    took = time.perf_counter() - clock
    if working:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    await seals.finish()
    return APPENDS / took


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=1000, help="bytes of an event")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agent0-evidence-") as folder:
        homes = [load("scripted", {"home": str(Path(folder) / name)}, {}) for name in ("old", "new", "hot")]
        told = asyncio.run(rates(homes[0], homes[1], Path(folder) / "archive", asked.events, asked.size))
        told |= asyncio.run(felt(homes[2], asked.size))
    print(
        json.dumps(
            {"events": asked.events, "load": os.getloadavg()[0], **{k: round(v, 3) for k, v in told.items()}}, indent=1
        )
    )


if __name__ == "__main__":
    main()
