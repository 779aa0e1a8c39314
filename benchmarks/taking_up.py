"""What it costs a process to take up a run of a million events: folded from its start, and from a snapshot.

``python -m benchmarks.taking_up`` writes the run once, into the log of ``<AGENT0_HOME>/bench-long``. Each way then gets
a process of its own, which opens the log and waits until it knows the run, as a handler does before its first reaction:
from the start without snapshots, from the start while snapshots are written, and from the newest of them. All three
must know the same. ``--write`` puts what was found into ``docs/results/server.md``.
"""

import argparse
import asyncio
import json
import multiprocessing
import platform
import resource
import shutil
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from agent0.assembly.log.access import open_log
from agent0.assembly.replay.state_snapshots import state_snapshots
from agent0.assembly.runtime.stamping import code_rev
from agent0.config.loading import load
from agent0.events.base import Event, Recorded, sha256
from agent0.infra.bus.run_views import Views
from agent0.run.lifecycle import RunState, evolve
from agent0.settings import Settings
from benchmarks.measured_page import write
from tests.story import Teller

RUN, EVENTS, SIZE = "long", 1_000_000, {"tasks": 128, "attempts": 8}
AN_ITERATION = 4_700
"""Events of one, about."""
BATCH, RECENT = 1_000, 5_000
AIM_S = 10.0
WAYS = {"start": "from the start", "writing": "from the start, writing snapshots", "snapshot": "from a snapshot"}


class Folded(Teller):
    """A told run whose requests say what the state was when they were decided on, as those of a real one do."""

    def __init__(self, append: Callable[[list[Recorded]], None], iterations: int) -> None:
        super().__init__(RUN, iterations, seed=0, **SIZE)
        self.state: RunState | None = None
        self._append, self._count = append, 0
        self._states: OrderedDict[str, RunState | None] = OrderedDict()

    def tell(self, event: Event, cause: Recorded | None = None, handler: str = "") -> Recorded:
        if cause and hasattr(event, "state_sha") and (held := self._states.get(cause.id)):
            event = event.model_copy(update={"state_sha": held.digest})
        made = super().tell(event, cause, handler).model_copy(update={"seq": self._count + len(self.told)})
        self.told[-1] = made
        self.state = self._states[made.id] = evolve(self.state, made)
        if len(self._states) > RECENT:
            self._states.popitem(last=False)
        if len(self.told) == BATCH:
            self.hand_on()
        return made

    def hand_on(self) -> None:
        """Append what was told since."""
        self._append(self.told)
        self._count += len(self.told)
        self.told = []
        # a cause's effects follow it closely, and a million keys would be hundreds of megabytes
        self.effects = {key: n for key, n in self.effects.items() if not key[1] or key[0] in self._states}


def written(settings: Settings, events: int) -> None:
    """The log, made where it is not there."""
    done = settings.home / "complete"
    if done.exists() and int(done.read_text()) >= events:
        return
    shutil.rmtree(settings.home, ignore_errors=True)
    settings.home.mkdir(parents=True)

    async def work() -> None:
        loop = asyncio.get_running_loop()
        async with open_log(settings, make=True) as log:

            def append(told: list[Recorded]) -> None:
                asyncio.run_coroutine_threadsafe(log.append(told), loop).result()

            teller = Folded(append, -(-events // AN_ITERATION))
            await asyncio.to_thread(teller.tell_all, True)
            await asyncio.to_thread(teller.hand_on)
            done.write_text(str(await log.last_seq(RUN)))

    asyncio.run(work())


async def known(settings: Settings, way: str) -> dict[str, Any]:
    """Take the run up in this process: seconds, memory, and what it came to."""
    began, worked = time.perf_counter(), time.process_time()
    every = {"start": 0}.get(way, settings.handlers.snapshot_events)
    held = settings.model_copy(update={"handlers": settings.handlers.model_copy(update={"snapshot_events": every})})
    async with open_log(settings) as log:
        opened = time.perf_counter() - began
        views = Views(log, evolve, None if way == "start" else state_snapshots(held, log))
        view = await views.get(RUN)
        found = {
            "wall": time.perf_counter() - began,
            "cpu": time.process_time() - worked,
            "opened": opened,
            "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "knows": [view.seq, view.state.digest, sha256(repr(sorted(view.done))), sorted(view.failed.items())],
            "done": len(view.done),
            "from": view._marks[0][0],
        }
        await views.close()
    return found


def _in_a_process(settings: Settings, way: str, answers: "multiprocessing.Queue[str]") -> None:
    answers.put(json.dumps(asyncio.run(known(settings, way))))


def measured(settings: Settings, way: str) -> dict[str, Any]:
    """``known`` in a new process."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=_in_a_process, args=(settings, way, answers))
    process.start()
    found: dict[str, Any] = json.loads(answers.get(timeout=1800))
    process.join()
    return found


def page(found: dict[str, dict[str, Any]], settings: Settings) -> str:
    """A row for each way."""
    files = [*(settings.home / "snapshots" / RUN).glob("*.part")]
    size = sum(path.stat().st_size for path in files) / 2**20
    rows = [
        f"| {WAYS[way]} | {one['cpu']:.1f} | {one['wall']:.1f} | {one['opened']:.1f} | {one['mib']:,.0f} |"
        for way, one in found.items()
    ]
    start, last = found["start"], found["snapshot"]
    head = "| the run is known | CPU, s | wall, s | of it until the log answers, s | memory at the most, MiB |"
    return "\n".join(
        [
            f"{start['knows'][0]:,} events of one run, {start['done']:,} reactions stored; {len(files)} snapshots of "
            f"{size:.0f} MiB together, the newest {start['knows'][0] - last['from']:,} events before the end. "
            f"{platform.machine()}, {platform.python_version()}, {code_rev()}.\n",
            head,
            "|---|--:|--:|--:|--:|",
            *rows,
            "\n",
        ]
    )


def main() -> int:
    """3 where taking the run up from a snapshot takes longer than the aim, by CPU time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--ways", default="start,writing,snapshot")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    settings = load("tiny", {"home": str(load(None).home / "bench-long"), "nats.url": ""}, {})
    written(settings, chosen.events)
    found: dict[str, dict[str, Any]] = {}
    for way in chosen.ways.split(","):
        if way == "writing":
            shutil.rmtree(settings.home / "snapshots", ignore_errors=True)
        found[way] = measured(settings, way)
        print({name: value for name, value in found[way].items() if name != "knows"}, flush=True)
    assert len({json.dumps(one["knows"]) for one in found.values()}) == 1, "what is known differs"
    if chosen.write:
        write("server.md", page(found, settings), "taking up")
    return 3 if found.get("snapshot", {"cpu": 0})["cpu"] > AIM_S else 0


if __name__ == "__main__":
    raise SystemExit(main())
