"""What the list of runs and a chart of 50 runs cost, with 2,000 values of each.

``python -m benchmarks.many_runs`` makes tables of 50 runs in a folder that is thrown away, each with 2,000 iterations
and 2,000 steps of its student's trainings, then asks the pages as `benchmarks.server` does. ``--write`` puts medians
and 95th percentiles of CPU and wall time into ``docs/results/server.md``.
"""

import argparse
import gc
import math
import platform
import random
import tempfile
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from agent0.api.admission.keys import KeyFile
from agent0.api.app import create_app
from agent0.api.context import ApiContext
from agent0.api.past import PastTables
from agent0.assembly.runtime.stamping import code_rev
from agent0.events.base import Recorded
from agent0.events.checkpoints import CheckpointEvaluated, CheckpointPromoted, CheckpointTrained, TrainingMeasured
from agent0.events.runs import IterationMeasured, RunFinished, RunStarted
from agent0.events.values import TrainingStep
from agent0.infra.storage import sqlite
from agent0.projections import Projector, tables
from agent0.settings import RunConfig, Settings
from benchmarks.measured_page import write
from benchmarks.server import TIMES, Cost, cost_of, table
from tests.api.served import ADDRESS
from tests.story import Teller

RUNS, POINTS, TRAININGS = 50, 2_000, 20
EVERY = "&".join(f"run=run-{number}" for number in range(RUNS))
FOUR = "y=curve/validation&y=iteration/solve_rate&y=training/student/loss&y=training/student/gradient_norm"
PAGES = (
    "/runs",
    "/runs?text=run-1&status=finished",
    "/compare",
    f"/compare?{EVERY}",
    f"/compare?{EVERY}&smooth=0.9",
    f"/compare?{EVERY}&x=time",
    f"/compare?{EVERY}&x=tokens",
    f"/compare?{EVERY}&y=iteration/solve_rate",
    f"/compare?{EVERY}&y=training/student/loss",
    f"/compare?{EVERY}&y=training/student/loss&smooth=0.95",
    f"/compare?{EVERY}&y=training/student/loss&smooth=0.95&x=time",
    f"/compare?{EVERY}&y=training/student/loss&smooth=0.95&x=tokens",
    f"/compare.json?{EVERY}&y=training/student/loss&smooth=0.95",
    f"/compare?{EVERY}&{FOUR}",
    f"/compare?{EVERY}&{FOUR}&smooth=0.95&x=tokens",
)


def told(run: str, points: int, seed: int) -> list[Recorded]:
    """A run that evaluates and measures ``points`` iterations, and trains its student for as many steps; the seed
    says how fast it learns."""
    teller, rng = Teller(run, 1, 1, 1, seed), random.Random(seed)
    config = {**RunConfig().model_dump(mode="json"), "seed": seed}
    teller.tell(RunStarted(name=run, profile="tiny", seed=seed, config=config, config_sha="0"))
    for n in range(points):
        rate = 0.9 - 0.7 * math.exp(-n / points * (1 + seed % 5)) + rng.gauss(0, 0.02)
        accuracy = min(1.0, max(0.0, rate))
        scored = {
            "n": 100,
            "correct": round(100 * accuracy),
            "accuracy": accuracy,
            "lower95": 0.0,
            "upper95": 1.0,
            "tool_use": 1.0,
        }
        teller.tell(
            CheckpointEvaluated(
                evaluation=f"validation-{n}", checkpoint=f"student-{n}", iteration=n, split="validation", **scored
            )
        )
        teller.tell(IterationMeasured(iteration=n, student="base", teacher="base", measures={"solve_rate": accuracy}))
        if n % (points // TRAININGS) == 0:
            steps = tuple(_step(rng, (n + k) / points * (1 + seed % 5)) for k in range(points // TRAININGS))
            named: dict[str, Any] = {"checkpoint": f"student-{n}", "role": "student", "iteration": n}
            teller.tell(TrainingMeasured(**named, first=1, steps=steps))
            teller.tell(CheckpointTrained(**named, parent="base", adapter=None, samples=1, wall_s=1.0))
    last: dict[str, Any] = {"checkpoint": f"student-{points - 1}", "iteration": points - 1, "accuracy": accuracy}
    teller.tell(CheckpointPromoted(**last, reason="better"))
    teller.tell(RunFinished(iterations=points, tasks=0, attempts=0, state_sha="0"))
    return teller.told


def _step(rng: random.Random, learned: float) -> TrainingStep:
    loss = math.exp(-learned) + rng.gauss(0, 0.1)
    return TrainingStep(kind="policy", loss=loss, gradient_norm=rng.random(), learning_rate=1e-4, tokens=1000)


def main() -> None:
    """Make the tables, measure, print or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=TIMES)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder))
        (settings.home / "tables").mkdir()
        projector, end = Projector(settings.home / "tables" / "view.db", sqlite.connect, tables(), "bench"), 0
        for number in range(RUNS):
            events = [(end + one.seq, one.to_json()) for one in told(f"run-{number}", POINTS, number)]
            projector.apply(events)
            end = events[-1][0]
        projector.close()
        context = ApiContext(settings, KeyFile(settings.home), PastTables(settings))
        client = TestClient(create_app(context), base_url=ADDRESS, headers={"Accept": "text/html"})
        gc.freeze()  # as the server does
        costs = list[Cost]()
        for path in PAGES:
            cost = cost_of(client, path, chosen.times)
            costs.append(Cost(path.replace(EVERY, "run=…").replace(FOUR, "y=…"), cost.cpu, cost.wall, cost.size))
            print(table(costs[-1:]).splitlines()[-1], flush=True)
    if chosen.write:
        about = f"{RUNS} runs, {POINTS:,} iterations and {POINTS:,} steps each; {end:,} events. "
        machine = f"{platform.machine()}, {platform.python_version()}, {code_rev()}.\n\n"
        write("server.md", f"{about}{machine}{table(costs)}\n\n", "many runs")


if __name__ == "__main__":
    main()
