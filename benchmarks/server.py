"""What the server's pages cost over a million events and a hundred thousand trajectories.

``python -m benchmarks.server`` makes the tables once, in ``<AGENT0_HOME>/bench-server``: one run of 100,000 attempts,
others beside it, and an attempt of 5,000 turns. It then asks every page many times without a socket and tells medians
and 95th percentiles of CPU and wall time. ``--write`` puts them into ``docs/results/server.md``.
"""

import argparse
import gc
import platform
import resource
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from agent0.api.admission.keys import KeyFile
from agent0.api.app import create_app
from agent0.api.context import ApiContext
from agent0.api.past import PastTables
from agent0.assembly.runtime.stamping import code_rev
from agent0.config.loading import load
from agent0.events.base import Recorded
from agent0.events.runs import RunStarted
from agent0.events.tasks import AttemptRequested, ResultVerified, RewardAssigned, TaskAttempted, ToolCalled
from agent0.events.values import RewardPart, Task, ToolCall, ToolResult, ToolState, Turn
from agent0.infra.storage import sqlite
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.projections import Projector, tables
from agent0.projections.events import count_events
from agent0.rollout.claim_check import claim_turns
from agent0.settings import Settings
from benchmarks.measured_page import write
from tests.api.served import ADDRESS
from tests.story import Teller

EVENTS, ATTEMPTS, TURNS = 1_000_000, 100_000, 5_000
BIG = {"iterations": 100, "tasks": 128, "attempts": 8}
OTHER = {"iterations": 10, "tasks": 64, "attempts": 8}
BATCH = 2_000
TIMES = 20
AIM_MS, LONG_MS = 200.0, 300.0
LONG = "/runs/long/trajectories/t0-000-a0"
LONGEST = (
    LONG,
    f"{LONG}?turn=4001",
    f"{LONG}?view=compact&turn=4001",
    f"{LONG}?view=timeline&turn=2401",
    f"{LONG}?view=raw&turn=4001",
)
"""Its views, from their beginning and from far behind it."""
PAGES = (
    "/runs",
    "/runs/big",
    "/runs/big/iterations/50",
    "/runs/big/tasks/t49-000",
    "/runs/big/trajectories/t49-000-a0",
    "/runs/big/curriculum",
    "/runs/big/rewards",
    "/runs/big/rewards?of=t49-000-a0",
    "/compare",
    "/compare?left=big&right=r1",
    "/compare?left=big/student-8&right=big/student-9",
    "/models",
    "/models/big/student-9",
    "/experiments",
    "/benchmarks",
    "/calibration",
    "/router",
    "/submit",
    "/events/500000",
    "/config",
    "/admin",
    "/v1/events?after=900000&limit=100",
    "/v1/events?run=big&after=400000&limit=100",
    "/v1/runs/big",
    "/v1/runs/big/trajectories?after=t49-000-a0",
    "/metrics",
)


class _Streamed(list[Recorded]):
    """Events that were told: what was handed on is only counted."""

    def __init__(self, take: Callable[[list[tuple[int, bytes]]], None]) -> None:
        super().__init__()
        self._take, self._count = take, 0

    def append(self, one: Recorded) -> None:
        super().append(one)
        if super().__len__() >= BATCH:
            self.hand_on()

    def hand_on(self) -> None:
        held = [*super().__iter__()]
        self._take([(one.seq, one.to_json()) for one in held])
        self._count += len(held)
        self.clear()

    def __len__(self) -> int:
        return self._count + super().__len__()


def fill(projector: Projector, run: str, size: dict[str, int], after: int, seed: int) -> int:
    """Project one told run behind event ``after``; the last sequence."""

    def take(batch: list[tuple[int, bytes]]) -> None:
        projector.apply([(after + seq, body) for seq, body in batch])

    teller = Teller(run, seed=seed, **size)
    teller.told = told = _Streamed(take)
    teller.tell_all(incidents=True)
    told.hand_on()
    return after + len(told)


def long_attempt(artifacts: FileArtifacts, turns: int = TURNS) -> list[Recorded]:
    """A run with one attempt of ``turns`` turns, every other one a tool's."""
    teller = Teller("long", 1, 1, 1, 0)
    teller.tell(RunStarted(name="long", profile="tiny", seed=0, config={"seed": 0}, config_sha="0"))
    task = Task(question="Count.", domain="code", family="lists", level=4, canonical="count")
    at: dict[str, Any] = {"task": "t0-000", "attempt": "t0-000-a0", "iteration": 0}
    named = {key: value for key, value in at.items() if key != "iteration"}
    teller.tell(AttemptRequested(**at, number=0, proposal=task, seed=1, student="base", state_sha="0"))
    said = [Turn(role="assistant" if n % 2 else "tool", content=f"step {n}: {'x' * 120}") for n in range(turns)]
    for n in range(turns // 2):
        call = ToolCall(name="run_python", arguments={"code": f"print({n})"}, raw=f"print({n})")
        result = ToolResult(state=ToolState.OK, output=str(n))
        teller.tell(ToolCalled(**named, turn=n, number=n, call=call, result=result))
    inline, stored = claim_turns(tuple(said), artifacts)
    teller.tell(
        TaskAttempted(
            **at, number=0, student="base", answer="1", end="answered", turns=turns // 2, tool_calls=turns // 2,
            tool_ok=turns // 2, prompt="p", transcript=inline, transcript_artifact=stored,
        )
    )  # fmt: skip
    teller.tell(ResultVerified(**at, correct=True, verifier="exact", reason="equal"))
    part = RewardPart(name="correct", inputs={}, value=1.0, weight=1.0)
    teller.tell(RewardAssigned(**at, role="student", set="agent0", parts=(part,), total=1.0, checkpoint="base"))
    return teller.told


def made(folder: Path) -> Settings:
    """The data folder, filled where it is not."""
    settings = Settings(home=folder)
    path = folder / "tables" / "view.db"
    if (folder / "complete").exists():
        return settings
    shutil.rmtree(folder, ignore_errors=True)
    path.parent.mkdir(parents=True)
    projector, began = Projector(path, sqlite.connect, tables(), "bench"), time.process_time()
    end = fill(projector, "big", BIG, 0, 0)
    long = long_attempt(FileArtifacts(folder))
    projector.apply([(end + one.seq, one.to_json()) for one in long])
    end, number = end + len(long), 0
    while end < EVENTS:
        number += 1
        end = fill(projector, f"r{number}", OTHER, end, number)
        print(f"{end:,} events, {time.process_time() - began:.0f} s of CPU", flush=True)
    projector.close()
    (folder / "complete").write_text(f"{end} {time.process_time() - began:.0f}", encoding="utf-8")
    return settings


@dataclass(frozen=True)
class Cost:
    """Milliseconds of one address: median and 95th percentile of CPU and of wall time."""

    path: str
    cpu: tuple[float, float]
    wall: tuple[float, float]
    size: int


def cost_of(client: TestClient, path: str, times: int) -> Cost:
    """Ask ``path`` once without counting, then ``times``."""
    cpu, wall = [], []
    answer = client.get(path)
    for _ in range(times):
        begun, before = time.perf_counter(), time.process_time()
        answer = client.get(path)
        cpu.append(1000 * (time.process_time() - before))
        wall.append(1000 * (time.perf_counter() - begun))
        assert answer.status_code == 200, (path, answer.text[:300])
    return Cost(path, _spread(cpu), _spread(wall), len(answer.content))


def _spread(found: list[float]) -> tuple[float, float]:
    held = sorted(found)
    return held[len(held) // 2], held[min(len(held) - 1, round(0.95 * (len(held) - 1)))]


def aim(path: str) -> float:
    """Milliseconds in which ``path`` is to be answered."""
    return LONG_MS if path.startswith(LONG) else AIM_MS


def table(found: list[Cost]) -> str:
    """A row for each address; bold is what is above the aim."""
    rows = [
        f"| `{one.path}` | {_bold(one.cpu[1], aim(one.path))} | {one.wall[1]:.0f} | {one.size / 1024:.0f} |"
        for one in found
    ]
    return "\n".join(["| address | CPU, p95 | wall, p95 | KiB |", "|---|--:|--:|--:|", *rows])


def _bold(milliseconds: float, most: float) -> str:
    return f"{milliseconds:.0f}" if milliseconds <= most else f"**{milliseconds:.0f}**"


def main() -> None:
    """Make the tables where they are not there, measure, print or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=TIMES)
    parser.add_argument("--only", default="", help="addresses that begin so")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    folder = load(None).home / "bench-server"
    settings = made(folder)
    context = ApiContext(settings, KeyFile(settings.home), PastTables(settings))
    with context.tables() as db:
        events = count_events(db)
    client = TestClient(create_app(context), base_url=ADDRESS, headers={"Accept": "text/html"})
    gc.freeze()  # as the server does
    before = time.process_time()
    client.get("/v1/runs/big")  # reads all attempts; pages show what was read last
    deep, found = time.process_time() - before, list[Cost]()
    for path in (*PAGES, *LONGEST):
        if path.startswith(chosen.only):
            found.append(cost_of(client, path, chosen.times))
            print(table(found[-1:]).splitlines()[-1], flush=True)
    if chosen.write:
        write("server.md", _page(found, events, folder, deep))


def _page(found: list[Cost], events: int, folder: Path, deep: float) -> str:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = (folder / "tables" / "view.db").stat().st_size / 2**20
    _, seconds = (folder / "complete").read_text(encoding="utf-8").split()
    return (
        f"{events:,} events, {ATTEMPTS:,} attempts in the run `big`; tables of {size:,.0f} MiB, made in {seconds} s of "
        f"CPU; {peak:,.0f} MiB of memory at the most. Reading all attempts of `big` took {deep:.1f} s of CPU beside. "
        f"{platform.machine()}, {platform.python_version()}, "
        f"{code_rev()}.\n\n{table(found)}\n\n"
    )


if __name__ == "__main__":
    main()
