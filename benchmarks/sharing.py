"""Runs that share workers: how soon a small one ends beside a large one, and how often models are loaded.

    python -m benchmarks.sharing [--only runs|models] [--write]

The first part has attempts at a stand-in model that takes a second a turn. The second has reactions that only wait,
over a real log: each run has a model of its own, a process keeps four, and to load one takes half a second. It is taken
twice, once with processes that know nothing of models.
"""

import argparse
import asyncio
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.stamping import code_rev
from agent0.events.base import Event, Recorded
from agent0.events.runs import RunFinished
from agent0.infra.bus.affinity import KEPT, loads_nothing
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import open_server
from agent0.infra.log.streams import Topology, init
from agent0.settings import HandlerSettings, Settings
from benchmarks.cluster import ROLES, SPEED, StandIn
from benchmarks.measured_page import write
from tests.bus.toys import State, Toy, World, raised, resolve
from tests.processes import Crew

WORKERS, SLOTS = 2, 8
LARGE, SMALL = "64", "8"
"""Tasks of a large and a small run, of eight attempts each."""
PROCESSES, PLACES, RUNS, MESSAGES = 3, 4, 6, 120
REACTION_S, LOAD_S = 0.2, 0.5


@contextmanager
def home(**settings: str) -> Iterator[Crew]:
    """A data folder where everything runs but students; what runs there ends with this."""
    plain = {name: value for name, value in SPEED.items() if name != "ARTIFACTS__STORE"}
    with tempfile.TemporaryDirectory() as folder, Crew(Path(folder), **{**plain, **settings}) as crew:
        yield crew


def begin(crew: Crew, tasks: str, *more: str) -> str:
    """The id of a run with so many tasks."""
    return str(crew.tell("run", "start", "--detach", "--json", "--tasks", tasks, *more)["run"])


async def seconds(crew: Crew, run: str) -> float:
    """From the first attempt's request in ``run`` to its last attempt; when it is finished."""
    begun = last = 0.0
    async with open_log(crew.settings, "reader") as log:
        async for recorded in log.tail(0, run):
            if recorded.type == "AttemptRequested":
                begun = begun or recorded.time.timestamp()
            elif recorded.type == "TaskAttempted":
                last = recorded.time.timestamp()
            if isinstance(recorded.event, RunFinished):
                return last - begun
    raise RuntimeError("The log ended before the run.")


async def measure_runs(large: bool, *priority: str) -> float:
    """The seconds of a small run, beside a ``large`` one that began before it where there is one."""
    with StandIn("127.0.0.1") as server, home(RUN__STUDENT__BASE_URL=server.url) as crew:
        if large:
            begin(crew, LARGE)
        crew.start("runner", "handlers", "run", *ROLES)
        for number in range(WORKERS):
            crew.start(f"student-{number}", "handlers", "run", "--role", "student", "--slots", str(SLOTS))
        while large and server.requests.total() < 2 * WORKERS * SLOTS:
            await asyncio.sleep(0.1)
        return await seconds(crew, begin(crew, SMALL, *priority))


class Engine:
    """What reactions of one process wait for: ``KEPT`` models stay loaded."""

    def __init__(self) -> None:
        self.loads = 0
        self._kept: list[str] = []

    async def __call__(self, cause: Recorded, run: State) -> list[Event]:
        model = model_of(self, run)
        fresh = model not in self._kept
        self._kept = [*(name for name in self._kept if name != model), model][-KEPT:]
        self.loads += fresh
        await asyncio.sleep(REACTION_S + LOAD_S * fresh)
        return await resolve(cause, run)


def model_of(_: object, state: Any) -> str:
    """Say which model a run of this ``state`` has: one of its own."""
    return str(state.raised[0]).partition("-")[0] if state and state.raised else ""


async def measure_models(blind: bool) -> tuple[int, float]:
    """How often processes loaded a model over ``RUNS`` runs side by side, and the seconds until all was done."""
    settings = Settings(handlers=HandlerSettings(in_flight=PLACES))
    engines, runs = [Engine() for _ in range(PROCESSES)], [f"r{number}" for number in range(RUNS)]
    with tempfile.TemporaryDirectory() as folder:
        server = await open_server(Path(folder), settings.nats)
        try:
            await init(server, Topology(settings.nats, settings.handlers), ())
            async with await Log.connect(server) as log:
                world = World(server, log, settings)
                for engine in engines:
                    await world.bus(Toy(engine), model_of=loads_nothing if blind else model_of)
                begun = monotonic()
                for run in runs:
                    await world.put(*(raised(f"{run}-{number}", run) for number in range(MESSAGES)))
                for run in runs:
                    await world.until(MESSAGES, run=run)
                took = monotonic() - begun
                for bus in list(world.buses):
                    await world.stop(bus)
        finally:
            await server.stop()
    return sum(engine.loads for engine in engines), took


async def main(options: argparse.Namespace) -> int:
    """Measure what was asked for; print it, and write it into the page."""
    lines = []
    if options.only != "models":
        alone, beside = await measure_runs(False), await measure_runs(True)
        first = await measure_runs(True, "--priority", "100")
        lines.append(
            f"- A run of {8 * int(SMALL)} attempts takes {WORKERS} workers {alone:.1f} s alone, **{beside / alone:.1f} "
            f"times as long** beside one of {8 * int(LARGE)}, {first / alone:.1f} times with priority 100."
        )
    if options.only != "runs":
        (blind, slow), (loads, fast) = await measure_models(True), await measure_models(False)
        lines.append(
            f"- {RUNS} runs with a model each, {PROCESSES} processes that keep {KEPT}: **{loads} loads** in "
            f"{fast:.0f} s, {blind} in {slow:.0f} s where any process takes any task."
        )
    text = "\n".join([*lines, "", f"{os.cpu_count()} cores, {platform.machine()}; {code_rev()}.", ""])
    print(text)
    if options.write:
        write("cluster.md", text, "sharing")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("runs", "models"), help="Half of it.")
    parser.add_argument("--write", action="store_true", help="Write docs/results/cluster.md.")
    sys.exit(asyncio.run(main(parser.parse_args())))
