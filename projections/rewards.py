"""One row per reward: who got how much for what; its parts are in ``reward_parts``."""

import sqlite3
from collections.abc import Iterator
from operator import itemgetter

from agent0.events import tasks as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, as_json, find, projection, stamp
from agent0.projections.reward_totals import reward_means


@projection(
    key=("run", "task", "attempt", "role", "reward_set"),
    columns={
        "run": str,
        "task": str,
        "attempt": str,
        "role": str,
        "reward_set": str,
        "iteration": int,
        "total": float,
        "checkpoint": str,
        "facts": str,
        "time": str,
    },
    events=(facts.RewardAssigned,),
    indexes=(("run", "role", "iteration", "total"),),
)
def rewards(e: Recorded) -> Iterator[Row]:
    """``attempt`` is ``-`` where the teacher is rewarded for a task."""
    x = e.event
    assert isinstance(x, facts.RewardAssigned)  # noqa: S101 - declared above
    yield {
        "run": e.run,
        "task": e.task,
        "attempt": e.attempt,
        "role": x.role,
        "reward_set": x.set,
        "iteration": x.iteration,
        "total": x.total,
        "checkpoint": x.checkpoint,
        "facts": as_json(x.facts),
        "time": stamp(e),
    }


def explain_rewards(db: sqlite3.Connection, run: str, task: str = "", attempt: str = "") -> list[Row]:
    """Receipts of a task or an attempt, each with its ``parts`` (name, inputs, value, weight, worth)."""
    if attempt and not task:  # the tables are sorted by it
        task = next((row["task"] for row in find(db, _TASK, {"run": run, "attempt": attempt}, "task", 1)), "")
    filters = {"run": run, "task": task, "attempt": attempt}
    # not by the index of roles, which has all rewards of a run in it
    rewards = find(db, "SELECT * FROM rewards", filters, "task, +role, attempt, reward_set", parse=("facts",))
    lines: dict[tuple[str, ...], list[Row]] = {}
    for line in find(db, "SELECT * FROM reward_parts", filters, "name", parse=("inputs",)):
        shown = {name: line[name] for name in ("name", "inputs", "value", "weight", "worth")}
        lines.setdefault(_receipt(line), []).append(shown)
    return [{**reward, "parts": lines.get(_receipt(reward), [])} for reward in rewards]


_TASK = "SELECT task FROM attempts"
_receipt = itemgetter("task", "attempt", "role", "reward_set")


def reward_curve(db: sqlite3.Connection, run: str) -> list[Row]:
    """Per iteration and role: rewards, mean total, and the mean of each part that was scored."""
    return reward_means(db, run)
