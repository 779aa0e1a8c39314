"""How much a log with one conductor and one projector carries: measured with one to four workers, simulated to twenty.

    python -m benchmarks.growth [--write]

Measured as ``benchmarks.cluster`` measures speed: hosts are network namespaces of this machine, a stand-in model takes
a second a turn, four at once a worker. The CPU seconds that an attempt takes of the log's servers, the conductor, the
projector and its worker are measured, too. The simulation gives each of these a queue and a core: an attempt waits for
its turn, passes its worker and the log, and then goes to the conductor and into the tables. What it says of one to four
workers on as many cores as this machine has is compared with what was measured; what an attempt takes that is no CPU
(disk, network, whatever else runs here) is fitted to the first of these alone.
"""

import argparse
import asyncio
import heapq
import os
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from statistics import quantiles
from typing import Any

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.stamping import code_rev
from agent0.events.runs import RunFinished
from benchmarks.cluster import BOUNDS, ROLES, SLOTS, SPEED, TURN_S, WORKERS, StandIn, crews, hosts_with_log
from benchmarks.measured_page import write
from benchmarks.network import enter_switch
from tests.crashing import _seen
from tests.processes import Crew

HOSTS = (4, 8, 20)
SIZES = {**SPEED, "RUN__TASKS": "32"}
CALLS = 4
"""Calls to a model server that a worker has under way (``run.student.parallel``)."""
CENTRAL = ("log", "conductor", "projector")
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Point:
    """A number of workers: what came while attempts were made, in which seconds, how far the tables were behind (95 %),
    and seconds of CPU an attempt."""

    workers: int
    attempts: int
    events: float
    lag_s: float
    seconds: float
    cpu: Mapping[str, float]
    """Of the busiest server of the log, the conductor (with teacher, verifier and trainer), the projector, a worker."""

    @property
    def attempts_s(self) -> float:
        """Attempts a second."""
        return self.attempts / self.seconds

    @property
    def events_s(self) -> float:
        """Events a second."""
        return self.events / self.seconds


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Gauge:
    """CPU of the processes of one measurement, and how far its tables are behind."""

    def __init__(self, pids: Mapping[str, Sequence[int]], crew: Crew) -> None:
        self._pids, self._crew = pids, crew
        self.stored: dict[int, float] = {}
        self.lags: list[float] = []

    def used(self) -> dict[str, float]:
        """Seconds by kind; of the servers of the log those of the busiest."""
        by = {kind: [cpu_s(pid) for pid in pids] for kind, pids in self._pids.items()}
        return {kind: max(seconds) if kind == "log" else sum(seconds) for kind, seconds in by.items()}

    async def watch(self) -> None:
        """Note again and again how old the oldest event is that the tables lack."""
        while True:
            seen = _seen(self._crew)
            missing = [at for seq, at in self.stored.items() if seq > seen]
            self.lags.append(time.time() - min(missing) if missing else 0.0)
            self.stored = {seq: at for seq, at in self.stored.items() if seq > seen}
            await asyncio.sleep(0.25)


async def measure(workers: int) -> Point:
    """One run with so many workers."""
    with hosts_with_log() as (cluster, hosts), StandIn() as server:
        await cluster.provision(cluster.folder / "admin", **BOUNDS, ARTIFACTS__STORE="nats")
        with crews(cluster, hosts, {**SIZES, "RUN__STUDENT__BASE_URL": server.url}) as crew:
            run = crew["a"].tell("run", "start", "--detach", "--json")["run"]
            crew["a"].start("runner", "handlers", "run", *ROLES)
            crew["a"].start("projector")
            for name in WORKERS[:workers]:
                crew[name].start("student", "handlers", "run", "--role", "student", "--slots", str(SLOTS))
            pids = {
                "log": [process.pid for process in cluster.running.values()],
                "conductor": [crew["a"].running["runner"].pid],
                "projector": [crew["a"].running["projector"].pid],
                "worker": [crew[name].running["student"].pid for name in WORKERS[:workers]],
            }
            return await _timed(Gauge(pids, crew["a"]), crew["a"], run, workers)


async def _timed(gauge: Gauge, crew: Crew, run: str, workers: int) -> Point:
    begun = last = 0.0
    attempts = events = 0
    before: dict[str, float] = {}
    after: dict[str, float] = {}
    watching = asyncio.create_task(gauge.watch())
    async with open_log(crew.settings, "reader") as log:
        async for recorded in log.tail(0, run):
            at = recorded.time.timestamp()
            gauge.stored[recorded.seq] = at
            if recorded.type == "AttemptRequested" and not begun:
                begun, before = at, gauge.used()
                gauge.lags.clear()
            elif recorded.type == "TaskAttempted":
                last, attempts = at, attempts + 1
                after = gauge.used()
            events += bool(begun)
            if isinstance(recorded.event, RunFinished):
                break
    watching.cancel()
    seconds = last - begun
    cpu = {kind: (after[kind] - before[kind]) / attempts for kind in before}
    return Point(workers, attempts, events, _p95(gauge.lags), seconds, cpu)


def _p95(values: Sequence[float]) -> float:
    return quantiles(values, n=20)[-1] if len(values) > 1 else max(values, default=0.0)


class Queues:
    """A simulation: jobs that wait for a station, and stations that wait for one of ``cores`` (0: each has its own)."""

    def __init__(self, cores: int = 0) -> None:
        self.now, self._cores, self._busy = 0.0, cores, set[str]()
        self._due: list[tuple[float, int, Any]] = []
        self._waiting: deque[tuple[str, float, Any]] = deque()
        self._order = count()

    def after(self, seconds: float, then: Any) -> None:
        """Call ``then`` so much later."""
        heapq.heappush(self._due, (self.now + seconds, next(self._order), then))

    def serve(self, station: str, seconds: float, then: Any) -> None:
        """Call ``then`` when ``station`` has worked for so long on this, one thing at a time, in order."""
        self._waiting.append((station, seconds, then))
        self._begin()

    def _begin(self) -> None:
        for entry in list(self._waiting):
            station, seconds, then = entry
            if station not in self._busy and (not self._cores or len(self._busy) < self._cores):
                self._busy.add(station)
                self._waiting.remove(entry)
                self.after(seconds, lambda station=station, then=then: self._done(station, then))

    def _done(self, station: str, then: Any) -> None:
        self._busy.discard(station)
        then()
        self._begin()

    def run(self) -> None:
        """Until nothing is left to do."""
        while self._due:
            self.now, _, then = heapq.heappop(self._due)
            then()


@dataclass(frozen=True)
class Costs:
    """Of an attempt: seconds of CPU by kind, seconds that no CPU explains, and its events. ``heard_s``: until the
    tables hear of one."""

    cpu: Mapping[str, float]
    rest_s: float
    events: float
    heard_s: float


def simulate(workers: int, costs: Costs, cores: int = 0, attempts: int = 0) -> Point:
    """A run of so many ``attempts`` (0: forty a call that a worker has under way)."""
    queues, cpu = Queues(cores), costs.cpu
    left = attempts = attempts or 40 * CALLS * workers
    stored, lags = list[float](), list[float]()

    def take(host: int) -> None:
        nonlocal left
        if left:
            left -= 1
            wait_s = TURN_S + costs.rest_s
            queues.after(wait_s, lambda: queues.serve(f"worker {host}", cpu["worker"], lambda: append(host)))

    def append(host: int) -> None:
        """Two of three servers have it when it counts as stored."""
        queues.serve(
            "log", cpu["log"], lambda: queues.serve("follower", cpu["log"], lambda: answered(host, queues.now))
        )
        queues.serve("other follower", cpu["log"], lambda: None)

    def answered(host: int, at: float) -> None:
        stored.append(at)
        queues.serve("conductor", cpu["conductor"], lambda: None)
        read = partial(queues.serve, "projector", cpu["projector"], lambda: lags.append(queues.now - at))
        queues.after(costs.heard_s, read)
        take(host)

    for host in range(workers):
        for _ in range(CALLS):
            take(host)
    queues.run()
    seconds = max(stored)
    return Point(workers, attempts, attempts * costs.events, _p95(lags), seconds, cpu)


def fitted(points: Sequence[Point]) -> Costs:
    """Costs as with most workers, when batches are largest; what no CPU explains as with one."""
    first, last = points[0], points[-1]
    costs = Costs(last.cpu, 0.0, sum(p.events for p in points) / sum(p.attempts for p in points), first.lag_s)
    low, high = 0.0, 4.0
    for _ in range(30):
        costs = replace(costs, rest_s=(low + high) / 2)
        if simulate(1, costs, os.cpu_count() or 1, first.attempts).seconds < first.seconds:
            low = costs.rest_s
        else:
            high = costs.rest_s
    return costs


def page(points: Sequence[Point]) -> str:
    """What was measured and simulated, in Markdown."""
    cores, costs = os.cpu_count() or 1, fitted(points)
    checks = [simulate(point.workers, costs, cores, point.attempts) for point in points]
    errors = [point.seconds / check.seconds - 1 for check, point in zip(checks, points, strict=True)]
    guesses = [simulate(workers, costs) for workers in HOSTS]
    columns = [*(str(point.workers) for point in points), *(f"{guess.workers}, simulated" for guess in guesses)]
    rows = [f"| workers | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    for name in ("attempts/s", "events/s"):
        values = [getattr(point, name.replace("/", "_")) for point in (*points, *guesses)]
        rows.append(f"| {name} | {' | '.join(f'{value:.0f}' for value in values)} |")
    named = ", ".join(f"{kind} {1000 * seconds:.0f}" for kind, seconds in costs.cpu.items())
    full = max(CENTRAL, key=lambda kind: costs.cpu[kind])
    wrong = ", ".join(f"{error:+.0%}" for error in errors[1:])
    return "\n".join(
        [
            *rows,
            "",
            f"CPU ms an attempt: {named}; {costs.rest_s * 1000:.0f} ms besides. On {cores} cores the simulation is "
            f"off by {wrong} at two, three, four workers. The {full} is full first, at "
            f"{1 / costs.cpu[full]:.0f} attempts/s. Tables were {max(p.lag_s for p in points):.1f} s behind (95 %).",
            "",
            f"{cores} cores, load {os.getloadavg()[2]:.1f}; {code_rev()}.",
            "",
        ]
    )


async def main(options: argparse.Namespace) -> None:
    """Measure, simulate, print, and write it into the page."""
    points = [await measure(workers) for workers in range(1, len(WORKERS) + 1)]
    for point in points:
        print(point, file=sys.stderr)
    text = page(points)
    print(text)
    if options.write:
        write("cluster.md", text, "growth")


if __name__ == "__main__":
    enter_switch("benchmarks.growth")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="Write docs/results/cluster.md.")
    asyncio.run(main(parser.parse_args()))
