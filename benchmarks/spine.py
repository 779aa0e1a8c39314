"""What the event spine costs: one iteration of profile ``tiny`` through log and bus, and the same work called directly.

An iteration is from the first task asked for to the end: proposals, attempts, rewards, both trainings, an evaluation.

Both sides share models, sandboxes and worker processes, and call the very same handlers with the same seeds and bounds:

- ``log``: nats-server with fsync always, bus, group commit, acknowledgements, and a reader that waits for the end;
- ``direct``: each handler is called as soon as its event is there, in memory; nothing is stored, nothing is sent.

Pairs alternate. CPU is that of this process and all below it (server, models, sandboxes). A ratio is the median of the
pairs' ratios (aim: at most 1.10 each).
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from agent0.assembly.runtime.app import App, open_app, run_handlers, started
from agent0.assembly.runtime.stamping import utc_now
from agent0.config.loading import load
from agent0.events.base import Recorded, effect_id, record
from agent0.handlers import Handler
from agent0.run.lifecycle import RunState, evolve
from agent0.settings import Settings
from agent0.tools.cache import ToolCache
from tests.play import Played

AIM = 1.10
ONLY = {"run.iterations": "1", "run.evaluation.test": "0", "run.evaluation.forced_tool": "false"}
WARM = {"run.tasks": "6", "run.attempts": "2", "run.evaluation.validation": "12"}


@dataclass(frozen=True)
class Cost:
    """Of one run: events and attempts, and milliseconds of wall and CPU time an attempt, over its iteration."""

    side: str
    events: int
    attempts: int
    wall_ms: float
    cpu_ms: float
    work: frozenset[tuple[tuple[str, str, str], int]]


class Meter:
    """Runs from the first ``TaskRequested`` that it is shown."""

    def __init__(self) -> None:
        self._began: tuple[float, float] | None = None

    def see(self, recorded: Recorded) -> None:
        """Start at the right event."""
        if self._began is None and recorded.type == "TaskRequested":
            self._began = time.perf_counter(), cpu_seconds()

    def read(self) -> tuple[float, float]:
        """Seconds of wall and CPU time since."""
        assert self._began, "no task was asked for"
        return time.perf_counter() - self._began[0], cpu_seconds() - self._began[1]


class Direct:
    """The same handlers without a log. What was told so far is their history."""

    def __init__(self, app: App, meter: Meter) -> None:
        self._played, self._meter = Played(), meter
        self._handlers = app.handlers
        self._ports = {**app.ports, "history": self._played}
        self._slots = {name: asyncio.Semaphore(handler.in_flight) for name, handler in app.handlers.items()}
        self._state: RunState | None = None

    async def run(self, begin: Recorded) -> list[Recorded]:
        """Everything that follows from ``begin``."""
        async with asyncio.TaskGroup() as group:
            self._tell(begin, group)
        return self._played.recorded

    def _tell(self, recorded: Recorded, group: asyncio.TaskGroup) -> None:
        stored = recorded.model_copy(update={"seq": len(self._played.recorded) + 1})
        self._played.recorded.append(stored)
        self._meter.see(stored)
        self._state = evolve(self._state, stored)
        for handler in self._handlers.values():
            if stored.type in handler.events and self._state:
                group.create_task(self._react(handler, stored, self._state, group))

    async def _react(self, handler: Handler, cause: Recorded, state: RunState, group: asyncio.TaskGroup) -> None:
        async with self._slots[handler.name]:
            effects = await handler(cause, state, self._ports)
        for n, event in enumerate(effects):
            ids = {"id": effect_id(cause.id, handler.name, n), "cause": cause.id, "handler": handler.name}
            self._tell(record(event, run=cause.run, time=utc_now(), **ids), group)


async def through_log(app: App, meter: Meter, begin: Recorded) -> list[Recorded]:
    """The run as its reader saw it."""
    await app.log.append([begin])
    told = []
    async for recorded in app.log.tail(0, begin.run):
        told.append(recorded)
        meter.see(recorded)
        if recorded.type == "RunFinished":
            break
    return told


@asynccontextmanager
async def bus(app: App) -> AsyncIterator[App]:
    """``world`` with its handlers at work."""
    working = asyncio.create_task(run_handlers(app))
    try:
        yield app
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def cost(side: str, app: App, begin: Recorded) -> Cost:
    """One run; the bus starts before it and stops after it."""
    fresh, meter = replace(app, ports={**app.ports, "tool_cache": ToolCache()}), Meter()
    if side == "direct":
        told = await Direct(fresh, meter).run(begin)
        wall, cpu = meter.read()
    else:
        async with bus(fresh):
            told = await through_log(fresh, meter, begin)
            wall, cpu = meter.read()
    attempts = sum(recorded.type == "TaskAttempted" for recorded in told)
    assert told[-1].type == "RunFinished" and attempts, f"{side} ended with {told[-1].type}"
    done = Counter((recorded.type, recorded.task, recorded.attempt) for recorded in told)
    return Cost(side, len(told), attempts, wall / attempts * 1000, cpu / attempts * 1000, frozenset(done.items()))


def cpu_seconds() -> float:
    """CPU time of this process and everything below it, the dead included."""
    parents, spent = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended in between
        pid = int(folder.name)
        parents[pid], spent[pid] = int(fields[1]), sum(map(int, fields[11:15]))

    def ours(pid: int) -> bool:
        while pid not in (0, os.getpid()):
            pid = parents.get(pid, 0)
        return pid == os.getpid()

    return sum(ticks for pid, ticks in spent.items() if ours(pid)) / os.sysconf("SC_CLK_TCK")


async def measure(settings: Settings, warm: Settings, pairs: int) -> list[Cost]:
    """Costs in the order in which they were measured."""
    costs = []
    async with open_app(settings) as app:
        for side in ("log", "direct"):
            await cost(side, app, started(warm, f"warm {side}"))
        for pair in range(pairs):
            for side in ("log", "direct") if pair % 2 == 0 else ("direct", "log"):
                found = await cost(side, app, started(settings, f"{side} {pair}"))
                told = f"pair {pair} {side:6} {found.wall_ms:7.1f} ms wall {found.cpu_ms:7.1f} ms CPU an attempt"
                print(f"{told}  ({found.attempts} attempts, load {os.getloadavg()[0]:.1f})", file=sys.stderr)
                costs.append(found)
    return costs


def ratios(costs: list[Cost], what: str) -> list[float]:
    """log / direct of each pair."""
    sides = {side: [getattr(one, what) for one in costs if one.side == side] for side in ("log", "direct")}
    return [log / direct for log, direct in zip(sides["log"], sides["direct"], strict=True)]


def summary(costs: list[Cost]) -> dict[str, Any]:
    """Medians, ratios with their range, and whether both sides did the same work."""
    out: dict[str, Any] = {"pairs": len(costs) // 2, "same_work": len({one.work for one in costs}) == 1, "aim": AIM}
    for what in ("wall_ms", "cpu_ms"):
        for side in ("log", "direct"):
            out[f"{side}_{what}"] = round(median(getattr(one, what) for one in costs if one.side == side), 2)
        found = ratios(costs, what)
        out[f"{what[:-3]}_ratio"] = round(median(found), 3)
        out[f"{what[:-3]}_ratio_range"] = [round(min(found), 3), round(max(found), 3)]
    out["events"], out["attempts"] = costs[0].events, costs[0].attempts
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="tiny")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=64)
    parser.add_argument("--attempts", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agent0-bench-") as folder:
        named = {"home": folder, "nats.url": "", **ONLY}
        sizes = {"run.tasks": str(chosen.tasks), "run.attempts": str(chosen.attempts)}
        settings = load(chosen.profile, {**named, **sizes})
        warm = load(chosen.profile, {**named, **WARM})
        costs = asyncio.run(measure(settings, warm, chosen.pairs))
    found = summary(costs)
    if chosen.json:
        print(json.dumps({**found, "runs": [{k: v for k, v in asdict(one).items() if k != "work"} for one in costs]}))
    else:
        print(f"{'an attempt':12} {'log':>10} {'direct':>10} {'ratio':>7}   range over {found['pairs']} pairs")
        for what in ("wall", "cpu"):
            log, direct, low_high = found[f"log_{what}_ms"], found[f"direct_{what}_ms"], found[f"{what}_ratio_range"]
            print(f"{what + ', ms':12} {log:10.1f} {direct:10.1f} {found[f'{what}_ratio']:7.3f}   {low_high}")
        print(f"same work on both sides: {found['same_work']}; {found['attempts']} attempts, {found['events']} events")
    return 0 if max(found["wall_ratio"], found["cpu_ratio"]) <= AIM else 3


if __name__ == "__main__":
    sys.exit(main())
