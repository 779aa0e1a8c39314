"""What a long past costs: one stored run, read again in each way in which Agent0 reads a run.

The run is one of profile ``scripted`` with novelty on, 64 tasks with 8 attempts an iteration: the registered handlers
play it in a process of their own, reactions in a seeded order as mixed as a bus makes it, with scripted models, hashed
n-grams as embeddings, and a sandbox that knows what a reference call prints. Tasks that were asked for before are
refused, as ever. What was told is appended to a nats-server, fsync always. Then, in turns:

- ``decode``: the run's events, read and decoded: what any reader of a run must do;
- ``replay``: the same, and folded into the run's state;
- ``rescore``: ``agent0 experiment rescore --rewards as-run``: every receipt again, compared with the stored one to the
  byte (aim: at least half of replay's rate);
- ``state``: ``agent0 run show --at`` the last event; ``view``: what a process knows before it takes up work;
- ``tables``: ``agent0 projections build``: the same events into every table of a new file.

Events a second of wall time, and microseconds of this process's CPU an event; ratios are to ``replay`` of the same
round, and all of them are medians of the rounds. MiB are what a step added to this process at most.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from agent0.assembly.log.access import open_log
from agent0.assembly.replay.forks import state_at
from agent0.assembly.replay.rescore import Rescore, rescore_run
from agent0.assembly.replay.tables_at import Build, build
from agent0.config.loading import load
from agent0.events.base import Recorded
from agent0.infra.bus.run_views import Views
from agent0.infra.log.event_log import Log
from agent0.provenance.fork_history import read_whole
from agent0.run.lifecycle import evolve
from agent0.settings import RunConfig, Settings
from tests.play import play
from tests.world import ports, started

AIM = 0.5
RUN = "past"
AN_ITERATION = 2000
"""Events of one, at least."""

Steps = dict[str, Callable[[], Awaitable[Any]]]


@dataclass(frozen=True)
class Cost:
    """Of one step: events a second, microseconds of CPU an event, MiB that this process grew by at most."""

    rate: float
    cpu_us: float
    mib: float


def write(settings: Settings, events: int) -> None:
    """A finished run of at least ``events`` events into an empty log."""
    plan = {"iterations": -(-events // AN_ITERATION), "tasks": 64, "attempts": 8, "seed": 7}
    held = RunConfig.model_validate({**settings.run.model_dump(), **plan})
    told = asyncio.run(play(started(held, RUN), ports(), pick=random.Random(7).randrange))
    assert len(told) >= events, f"the run has {len(told)} events"
    asyncio.run(store(settings, told))
    kinds = Counter(recorded.type for recorded in told).most_common(9)
    print(f"{len(told)} events: {', '.join(f'{n} {kind}' for kind, n in kinds)}", file=sys.stderr)


async def store(settings: Settings, told: list[Recorded]) -> None:
    """What was told becomes the log."""
    async with open_log(settings, make=True) as log:
        await log.append(told)


async def read(log: Log, fold: Callable[[Any, Recorded], Any]) -> int:
    """How many events the run has, each given to ``fold``."""
    state, count = None, 0
    async with aclosing(read_whole(log, RUN)) as events:  # type: ignore[type-var]
        async for recorded in events:
            state, count = fold(state, recorded), count + 1
    return count


async def view(log: Log) -> None:
    """What a handler's process does before it reacts to an event of the run."""
    views = Views(log, evolve)
    found = await views.get(RUN)
    assert found.over
    await views.close()


async def tables(settings: Settings) -> None:
    """Every table, in a file that is thrown away."""
    path = settings.home / "bench.db"
    try:
        await build(settings, Build(path))
    finally:
        path.unlink(missing_ok=True)


async def rescore(settings: Settings) -> None:
    """Every receipt again."""
    found = await rescore_run(settings, Rescore(RUN, "bench", None))
    assert found["identical"] and found["receipts"], f"what was computed differs: {found}"


async def measured(work: Callable[[], Awaitable[Any]], events: int) -> Cost:
    """One step. Peak memory is the kernel's, counted anew."""
    Path("/proc/self/clear_refs").write_text("5")
    before, began, worked = memory("VmRSS"), time.perf_counter(), time.process_time()
    await work()
    took, worked = time.perf_counter() - began, time.process_time() - worked
    return Cost(events / took, worked / events * 1e6, memory("VmHWM") - before)


def memory(line: str) -> float:
    """MiB of this process, by a line of its status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(one.split()[1]) for one in lines if one.startswith(line)) / 1024


async def compare(settings: Settings, rounds: int) -> tuple[int, dict[str, list[Cost]]]:
    """How many events the run has, and every step's costs in every round."""
    async with open_log(settings, "reader") as log:
        events, last = await read(log, evolve), await log.last_seq(RUN)
        steps: Steps = {
            "decode": lambda: read(log, lambda *_: None),
            "replay": lambda: read(log, evolve),
            "rescore": lambda: rescore(settings),
            "state": lambda: state_at(log, RUN, last),
            "view": lambda: view(log),
            "tables": lambda: tables(settings),
        }
        costs: dict[str, list[Cost]] = {name: [] for name in steps}
        for turn in range(rounds):
            for name in list(steps)[:: 1 if turn % 2 == 0 else -1]:
                costs[name].append(await measured(steps[name], events))
        return events, costs


def summary(costs: dict[str, list[Cost]]) -> dict[str, dict[str, float]]:
    """Medians by step; ``ratio`` is of rates, ``cpu_ratio`` of work done for the same CPU time."""
    out = {}
    for name, each in costs.items():
        pairs = [*zip(each, costs["replay"], strict=True)]
        out[name] = {
            "rate": round(median(c.rate for c in each)),
            "cpu_us": round(median(c.cpu_us for c in each), 1),
            "mib": round(max(c.mib for c in each), 1),
            "ratio": round(median(c.rate / r.rate for c, r in pairs), 3),
            "cpu_ratio": round(median(r.cpu_us / c.cpu_us for c, r in pairs), 3),
        }
    return out


def main() -> int:
    """3 where rescoring is slower than its aim."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--home", type=Path, help="a data folder: the run is kept there, or is there already")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agent0-past-") as folder:
        held = load("scripted", {"home": str(chosen.home or Path(folder) / "home"), "nats.url": ""}, {})
        if not (held.home / "nats").exists():
            writer = multiprocessing.get_context("spawn").Process(target=write, args=(held, chosen.events))
            writer.start()
            writer.join()
            assert writer.exitcode == 0, "the run could not be written"
        events, costs = asyncio.run(compare(held, chosen.rounds))
    found = summary(costs)
    if chosen.json:
        print(json.dumps({"events": events, "load": os.getloadavg()[0], "steps": found}))
    for name, told in {} if chosen.json else found.items():
        print(
            f"{name:8} {told['rate']:8.0f} events/s {told['cpu_us']:6.1f} us CPU an event {told['mib']:6.1f} MiB"
            f"  {told['ratio']:5.2f} of replay ({told['cpu_ratio']:.2f} by CPU)"
        )
    return 0 if found["rescore"]["ratio"] >= AIM else 3


if __name__ == "__main__":
    sys.exit(main())
