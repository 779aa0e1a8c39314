"""How processes share attempts that are due, and what becomes of the work of one that stops.

    python -m benchmarks.shares [--due 704] [--seconds 30]

Two processes with a handler of the shipped bound, a log server of their own, and reactions that take so many
``seconds``. A third process joins once they have begun; what each has begun ten seconds later is printed. Then one of
the first two gets SIGTERM, and what each has done at the end is printed. Exit 1 where an attempt was not done, was done
twice, or the latecomer had begun less than half of an equal share of what was left.
"""

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent0.events.alarms import AlarmRaised, AlarmResolved
from agent0.events.base import Event, Recorded
from agent0.handlers import handlers
from agent0.infra.bus.bus import Bus
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import Server
from agent0.infra.log.streams import Topology, init
from agent0.settings import NatsSettings, Settings
from tests.bus.toys import STARTED, event, evolve

LOOK_S = 10.0
SLOTS = handlers()["attempt_task"].in_flight


class Attempts:
    """A handler with the bound of the real one, whose reactions take a while; it says in the log who reacted."""

    name, events, ports, in_flight, long = "attempt_task", ("AlarmRaised",), (), SLOTS, True

    def __init__(self, who: str, seconds: float) -> None:
        self._who, self._seconds = who, seconds

    async def __call__(self, cause: Recorded, run: Any, ports: Mapping[str, Any]) -> list[Event]:
        """React as a model would: after a while."""
        print("begun", flush=True)
        await asyncio.sleep(self._seconds)
        return [AlarmResolved(alarm=cause.event.alarm, message=self._who)]  # type: ignore[attr-defined]


async def work(home: Path, who: str, seconds: float) -> None:
    """One process: react until SIGTERM, then finish what was begun and hand back the rest."""
    settings = Settings(home=home)
    server = Server(NatsSettings(), home / "nats")
    await server.start()
    async with await Log.connect(server) as log:
        bus = Bus(log, [Attempts(who, seconds)], {}, evolve, settings, "rev")
        await bus.start()
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        print("ready", flush=True)
        await stopped.wait()
        await bus.stop()
    await server.stop()


class Process:
    """A process that works, and how many attempts it has begun."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self.child, self.begun = child, 0
        self.ready = asyncio.Event()
        self.reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, home: Path, who: str, seconds: float) -> "Process":
        """Start it, and wait until it reacts."""
        command = (sys.executable, "-m", "benchmarks.shares", "--work", who, "--home", str(home))
        pipe = asyncio.subprocess.PIPE
        child = await asyncio.create_subprocess_exec(*command, "--seconds", str(seconds), stdout=pipe)
        process = cls(child)
        await process.ready.wait()
        return process

    async def _read(self) -> None:
        assert self.child.stdout is not None
        async for line in self.child.stdout:
            self.ready.set()
            self.begun += line.strip() == b"begun"

    async def end(self) -> None:
        """SIGTERM, and wait for its end."""
        self.child.send_signal(signal.SIGTERM)
        await self.child.wait()


async def measure(home: Path, due: int, seconds: float) -> dict[str, Any]:
    """Make the log, the processes and what is due; return what came of it."""
    server = Server(NatsSettings(), home / "nats")
    await server.start()
    await init(server, Topology(NatsSettings(), Settings().handlers), [Attempts("", 0)])
    async with await Log.connect(server) as log:
        first = {who: await Process.start(home, who, seconds) for who in ("first", "second")}
        begin = event(STARTED)
        causes = [event(AlarmRaised(alarm=f"a{n}", severity="info", message="")) for n in range(due)]
        await log.append([begin, *causes])
        begun_at = time.monotonic()
        processes = first | {"latecomer": await Process.start(home, "latecomer", seconds)}
        at_join = {who: process.begun for who, process in processes.items()}
        join_s = time.monotonic() - begun_at
        await asyncio.sleep(LOOK_S)
        at_ten = {who: process.begun for who, process in processes.items()}
        stop = asyncio.create_task(first["second"].end())
        effects: list[Recorded] = []
        while len(effects) < due:
            effects = [one async for one in log.read(begin.run, ["AlarmResolved"])]
            await asyncio.sleep(0.5)
        await stop
        done = Counter(effect.event.message for effect in effects)  # type: ignore[attr-defined]
        wall_s = time.monotonic() - begun_at
        names = Counter(effect.event.alarm for effect in effects)  # type: ignore[attr-defined]
        for who in ("first", "latecomer"):
            await processes[who].end()
    await server.stop()
    return {
        "due": due,
        "slots": SLOTS,
        "joined_after_s": round(join_s, 1),
        "begun_when_it_joined": at_join,
        "begun_ten_seconds_later": at_ten,
        "done_at_the_end": dict(done),
        "seconds": round(wall_s, 1),
        "done": len(names),
        "twice": len(effects) - len(names),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--due", type=int, default=704)
    parser.add_argument("--seconds", type=float, default=30.0, help="that a reaction takes")
    parser.add_argument("--work", default="", help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, default=None, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        asyncio.run(work(chosen.home, chosen.work, chosen.seconds))
        return 0
    with tempfile.TemporaryDirectory(prefix="agent0-shares-") as folder:
        found = asyncio.run(measure(Path(folder), chosen.due, chosen.seconds))
    print(json.dumps(found, indent=1))
    left = found["due"] - sum(found["begun_when_it_joined"].values())
    fresh = found["begun_ten_seconds_later"]["latecomer"]
    fair = fresh >= min(left, SLOTS) / 2
    return 0 if found["done"] == found["due"] and not found["twice"] and fair else 1


if __name__ == "__main__":
    sys.exit(main())
