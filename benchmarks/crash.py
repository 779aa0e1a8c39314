"""Over a thousand kill -9, of every role of a run that is at work, and of a training that takes its steps.

    python -m benchmarks.crash [--shipped 1000] [--kills 240] [--each 6] [--seed 0] [--jobs 4] [--minutes 240]
                               [--state FILE] [--show]

Each round is one run of the scripted model in separate processes, of which every role is killed again and again, at
moments drawn from the seed, and the log's server too. Afterwards nothing may be lost or there twice, the tables must be
those that a rebuild from zero gives, and the run must say what it says in memory, without kills. The rounds of
``--shipped`` leave handlers and sandboxes as they are shipped: the work of a killed process comes back after half a
minute, so a round mostly waits, and ``--jobs`` of them go on at once, each with its own folder and server. Those of
``--kills`` have short waits. The trainer of the built-in model is killed in the middle of its steps (the adapters must
be those of one that was left alone), and the leader of a cluster of three servers while others publish.

What was done is kept in the state file, a JSON line a round, so a call that was cut off goes on where it was; `--show`
only writes docs/results/reliability.md from it. Exit 1 where something was lost, twice, different or did not end.
"""

import argparse
import asyncio
import itertools
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from agent0.assembly.runtime.stamping import code_rev
from agent0.errors import Agent0Error
from agent0.events.base import Recorded
from agent0.events.checkpoints import CheckpointTrained
from benchmarks.crash_page import PAGE, Line, done_again, made, page, table, wrong
from tests.clusters import Cluster, publish
from tests.crashing import ROLES, SHIPPED, SIZES, Kill, Past, Watch, crash, past_of, watching
from tests.patience import until
from tests.processes import KINDS, Crew

ROUND = {"RUN__ITERATIONS": "4", "RUN__TASKS": "8"}
TINY = {
    "PROFILE": "tiny",
    "RUN__ITERATIONS": "1",
    "RUN__TASKS": "9",
    "RUN__ATTEMPTS": "4",
    "RUN__CURRICULUM__EMBEDDER": "ngram",
    "RUN__EVALUATION__VALIDATION": "6",
    "RUN__EVALUATION__TEST": "6",
    "RUN__TRAINING__STUDENT__EPOCHS": "300",
    "RUN__TRAINING__TEACHER__EPOCHS": "300",
    "HANDLERS__ACK_WAIT_S": "2",
    "HANDLERS__MAX_DELIVER": "1000",
}
"""Trainings of half a minute: a state half done is kept every ten seconds, and there must be some to go on from."""
STATE = Path(tempfile.gettempdir()) / "agent0-crash.jsonl"
TINY_KILLS = 10
PATIENT_S = 1800.0
LEADERS = 10


class State:
    """What was done so far: a JSON line each, whole or not there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_text() if path.exists() else ""
        self.lines: list[Line] = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def add(self, line: Line) -> None:
        """On disk when this returns."""
        self.lines.append(line)
        whole = "".join(json.dumps(line) + "\n" for line in self.lines)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(whole)
        fresh.replace(self.path)

    def of(self, what: str) -> list[Line]:
        """Lines of one kind."""
        return [line for line in self.lines if line["what"] == what]

    def kills(self, what: str) -> int:
        """Made so far in rounds of one kind."""
        return made(self.of(what))


@contextmanager
def room(name: str) -> Iterator[Path]:
    """An empty folder, left behind where something went wrong in it."""
    folder = Path(tempfile.mkdtemp(prefix=f"agent0-crash-{name}-"))
    yield folder
    shutil.rmtree(folder)


async def one_round(seed: int, number: int, each: int, what: str = "round") -> Line:
    """A scripted run, every role killed ``each`` times."""
    begun = time.time()
    with room(f"{what}-{number}") as home:
        with Crew(home, **(SHIPPED if what == "shipped" else SIZES), **ROUND) as crew:
            run = crew.tell("run", "start", "--detach", "--json")["run"]
            for kind in KINDS:
                crew.start(kind)
            async with watching(crew, run) as watch:
                kills = await crash(crew, watch, dict.fromkeys(ROLES, each), f"{seed} {number}")
            past = await past_of(crew, run, watch)
            rebuilt = crew.tell("projections", "rebuild", "--verify", "--json")["verified"]
        line = _line(what, past.told, begun)
        line |= {"number": number, "attempts": sum(r.type == "TaskAttempted" for r in past.told)}
        line |= {"missing": past.lost_attempts, "finished": past.finished, "rebuilt": rebuilt, "same": past.same}
        line["kills"] = _told_of(kills, past)
        if wrong(line):
            kept = home.with_suffix(".kept")
            shutil.copytree(home, kept)
            line["kept"] = str(kept)
    return line


def _line(what: str, told: Sequence[Recorded], begun: float) -> Line:
    load = os.getloadavg()[1]
    seconds = round(time.time() - begun, 1)
    line = {"what": what, "code": code_rev(), "events": len(told), "begun": round(begun, 1)}
    return line | {"seconds": seconds, "load": round(load, 1)}


def _told_of(kills: Sequence[Kill], past: Past) -> list[Line]:
    """A record of each kill: what was lost was there before it, what is twice was stored after it."""
    moments = [kill.at for kill in kills]
    lost = [bisect_left(moments, past.at[r.id]) for r in past.lost if r.type == "TaskAttempted"]
    twice = [bisect_left(moments, r.time.timestamp()) - 1 for r in past.duplicates]
    out = []
    for place, kill in enumerate(kills):
        middle, back = past.recovery(kill)
        told = {"role": kill.role, "middle": middle, "back_s": back and round(back, 3)}
        out.append({**told, "lost": lost.count(place), "twice": twice.count(place)})
    return out


# --- the trainer of the built-in model --------------------------------------------------------------------------------

TRAINER = ("handlers", "run", "train_checkpoint")
OTHERS = ("handlers", "run", *(name for words in KINDS.values() for name in words[2:] if name not in TRAINER))


async def tiny(seed: int) -> Line:
    """A run of the built-in model up to its trainings; then these once undisturbed, and once under kills."""
    begun = time.time()
    with room("tiny") as home:
        run = await _until_training(home / "run")
        shutil.copytree(home / "run", home / "undisturbed", symlinks=True)
        wanted = await _train(home / "undisturbed", run)
        with Crew(home / "run", **TINY) as crew:
            async with watching(crew, run) as watch:
                kills = await _harass(crew, watch, random.Random(f"{seed} tiny"))
                crew.start("others", *OTHERS)
                crew.start("projector")
                await watch.until(lambda: False, "the run to be finished", PATIENT_S)
            told = await crew.facts(run)
            rebuilt = crew.tell("projections", "rebuild", "--verify", "--json")["verified"]
    gone = {r.id for r in watch.told} - {r.id for r in told}
    line = _line("tiny", told, begun) | {"rebuilt": rebuilt, "same": _adapters(told) == wanted and len(wanted) == 2}
    line |= {"finished": watch.over, "missing": len(gone), "twice": len(told) - len({r.id for r in told})}
    return line | {"kills": [{"role": "trainer", "back_s": None, "lost": 0, "twice": 0, **kill} for kill in kills]}


async def _until_training(home: Path) -> str:
    with Crew(home, **TINY) as crew:
        run: str = crew.tell("run", "start", "--detach", "--json")["run"]
        crew.start("others", *OTHERS)
        async with watching(crew, run) as watch:
            await watch.until(lambda: len(watch.owed["TrainingRequested"]) == 2, "trainings to be asked for", PATIENT_S)
    return run


async def _train(home: Path, run: str) -> dict[str, str]:
    with Crew(home, **TINY) as crew:
        crew.start("trainer", *TRAINER)
        async with watching(crew, run) as watch:
            await watch.until(lambda: len(_adapters(watch.told)) == 2, "both trainings", PATIENT_S)
        return _adapters(watch.told)


def _adapters(told: Iterable[Recorded]) -> dict[str, str]:
    made = [r.event for r in told if isinstance(r.event, CheckpointTrained)]
    return {event.role: event.adapter.sha256 for event in made if event.adapter}


async def _harass(crew: Crew, watch: Watch, rng: random.Random) -> list[Line]:
    """Kill the trainer soon after it kept something half done, or was done, or at a drawn time, the first of them."""
    kills: list[Line] = []
    crew.start("trainer", *TRAINER)
    for _ in range(TINY_KILLS):
        kept, done = _kept(crew), len(_adapters(watch.told))
        latest = time.monotonic() + rng.uniform(8, 30)
        await until(lambda: _moved(crew, watch, kept, done) or time.monotonic() > latest, "a moment")  # noqa: B023
        await asyncio.sleep(rng.uniform(0, 2))
        steps = bool(_kept(crew))
        crew.kill("trainer")
        kills.append({"middle": bool(watch.owed["TrainingRequested"]), "steps": steps})
        crew.start("trainer", *TRAINER)
    await watch.until(lambda: len(_adapters(watch.told)) == 2, "both trainings", PATIENT_S)
    return kills


def _moved(crew: Crew, watch: Watch, kept: list[int], done: int) -> bool:
    return _kept(crew) not in (kept, []) or len(_adapters(watch.told)) > done


def _kept(crew: Crew) -> list[int]:
    """When each training half done was last kept."""
    return [path.stat().st_mtime_ns for path in sorted((crew.home / "training").glob("*.safetensors"))]


async def cluster(seed: int) -> Line:
    """Three servers, four writers, and no leader for long."""
    begun = time.time()
    with room("cluster") as home, Cluster(home) as servers:
        await servers.provision(home)
        found = await publish(servers, home, LEADERS, random.Random(f"{seed} cluster"))
    line = _line("cluster", found.stored, begun) | {"acknowledged": len(found.acknowledged), "missing": found.lost}
    return line | {"twice": found.twice, "silences": [round(silence, 2) for silence in found.silences]}


# --- all of it --------------------------------------------------------------------------------------------------------


Work = tuple[str, int]
"""A kind of measurement, and its number among those."""


def run(state: State, chosen: argparse.Namespace) -> None:
    """What is left to do, ``chosen.jobs`` measurements at once, as far as the time goes."""
    until_s = time.time() + chosen.minutes * 60
    running: dict[Future[Line], Work] = {}
    with ProcessPoolExecutor(chosen.jobs, get_context("spawn")) as pool:
        while True:
            while (
                len(running) < chosen.jobs
                and time.time() < until_s
                and (work := _next(state, chosen, running.values()))
            ):
                running[pool.submit(measurement, *work, chosen.seed, chosen.each)] = work
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                del running[future]
                state.add(future.result())
                kills = (
                    f"{state.kills('shipped')} kills under shipped settings, {state.kills('round')} with short waits"
                )
                print(f"{time.strftime('%H:%M:%S')}, {kills}, {_short(state.lines[-1])}", file=sys.stderr, flush=True)


def measurement(what: str, number: int, seed: int, each: int) -> Line:
    """One line of the state, made in a process of its own; one that says so where it did not come to its end."""
    begun = time.time()
    try:
        if what == "tiny":
            return asyncio.run(tiny(seed))
        if what == "cluster":
            return asyncio.run(cluster(seed))
        return asyncio.run(one_round(seed, number, each, what))
    except (AssertionError, Agent0Error, ExceptionGroup, TimeoutError) as error:
        traceback.print_exception(error)
        return _line(what, (), begun) | {"number": number, "failed": repr(error)[:2000]}


def _next(state: State, chosen: argparse.Namespace, running: Collection[Work]) -> Work | None:
    """What comes next, the slowest first. What broke off is done again once the code is another."""
    for what, wanted in (("shipped", chosen.shipped), ("tiny", 1), ("cluster", 1), ("round", chosen.kills)):
        begun = {number for kind, number in running if kind == what}
        number = next(n for n in itertools.count() if n not in _tried(state, what) | begun)
        kills = state.kills(what) + len(begun) * chosen.each * len(ROLES)
        if (number if what in ("tiny", "cluster") else kills) < wanted:
            return what, number
    return None


def _tried(state: State, what: str) -> set[int]:
    """Numbers of what came to an end, or broke off under the code there is."""
    return {line.get("number", 0) for line in state.of(what) if "failed" not in line or line["code"] == code_rev()}


def _short(line: Line) -> str:
    return json.dumps({key: value for key, value in line.items() if key != "kills"})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shipped", type=int, default=1000, help="kills under the shipped settings")
    parser.add_argument("--kills", type=int, default=240, help="kills under settings for short waits")
    parser.add_argument("--each", type=int, default=6, help="of each role, in a round")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=4, help="rounds at once")
    parser.add_argument("--minutes", type=float, default=240.0, help="no round is begun after that")
    parser.add_argument("--state", type=Path, default=STATE)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--show", action="store_true")
    chosen = parser.parse_args()
    state = State(chosen.state)
    if not chosen.show:
        run(state, chosen)
    print(table(state.lines, "shipped"), table(state.lines), sep="\n\n")
    version = code_rev().partition("+")[0]
    chosen.page.write_text(
        page(state.lines, (chosen.shipped, chosen.kills), chosen.seed, time.strftime("%Y-%m-%d"), version)
    )
    bad = [line for line in state.lines if wrong(line) and not done_again(line, state.lines)]
    for line in bad:
        print(f"{', '.join(wrong(line))}: {_short(line)}")
    if not _next(state, chosen, ()):
        state.path.unlink()  # the page has it all; the next call begins anew
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
