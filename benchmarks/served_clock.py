"""Does it pay to attempt the next iteration's tasks while one trains? Whole runs on a clock that is counted, with the
run's own handlers: two servers, one of which may die in the middle.

    python -m benchmarks.served_clock [--write]

``--write`` makes the last part of docs/results/serving-loop.md.
"""

import argparse
import asyncio
from pathlib import Path
from typing import Any

from agent0.events.base import Recorded
from agent0.events.checkpoints import CheckpointTrained
from agent0.events.tasks import AttemptRequested, TaskAttempted
from agent0.report.markdown.rendering import render
from tests.clocked import Clocked, Server
from tests.world import ports, small, started

PAGE = Path(__file__).parents[1] / "docs" / "results" / "serving-loop.md"
HEADING = "## Beside a training\n"
ITERATIONS, TASKS, ATTEMPTS, SLOTS = 16, 12, 4, 4
CALL_S, TRAINING_S, DIES_S = 15.0, 95.0, 900.0
CASES = {"both to the end": float("inf"), f"one dies after {DIES_S:.0f} s": DIES_S}
Line = dict[str, Any]


def played(steps: int, dies_s: float) -> tuple[Clocked, list[Recorded]]:
    """A whole run whose students are ``steps`` trainings behind at most, and its clock."""
    training = {"schedule": "student", "student": {"minibatch": 4, "replay_steps": 2}, "steps_off_policy": steps}
    sizes = {"iterations": ITERATIONS, "tasks": TASKS, "attempts": ATTEMPTS}
    config = small(**sizes, training=training, evaluation={"validation": 4, "test": 4, "forced_tool": False})
    clocked = Clocked(CALL_S, TRAINING_S, [Server(SLOTS), Server(SLOTS, dies_s)])
    return clocked, asyncio.run(clocked.play(started(config), ports()))


def line(servers: str, dies_s: float) -> Line:
    """A row of the table: both runs, and what became of the tokens of the one whose students may be behind."""
    (after, _), (beside, events) = played(0, dies_s), played(1, dies_s)
    trained = [one.event for one in events if isinstance(one.event, CheckpointTrained)]
    behind = [n for one in trained for author, n in one.authors.items() if author != one.parent]
    return {
        "servers": servers,
        "seconds": [round(after.time_s), round(beside.time_s)],
        "share": beside.time_s / after.time_s,
        "again": beside.repeated,
        "asked": sum(isinstance(one.event, AttemptRequested) for one in events),
        "ended": sum(isinstance(one.event, TaskAttempted) for one in events),
        "tokens": sum(sum(one.authors.values()) for one in trained),
        "stale": sum(behind),
    }


def main() -> None:
    """Print the part, or write it."""
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--write", action="store_true", help="into docs/results/serving-loop.md")
    options = flags.parse_args()
    part = render(
        "served_clock.md.jinja",
        Path(__file__).parent,
        rows=[line(servers, dies_s) for servers, dies_s in CASES.items()],
        iterations=ITERATIONS,
        calls=TASKS * (ATTEMPTS + 1),
        call=f"{CALL_S:g}",
        slots=SLOTS,
        training=f"{TRAINING_S:g}",
    )
    print(part)
    if options.write:
        before = PAGE.read_text(encoding="utf-8").partition(HEADING)[0].rstrip()
        PAGE.write_text(f"{before}\n\n{part}", encoding="utf-8")


if __name__ == "__main__":
    main()
