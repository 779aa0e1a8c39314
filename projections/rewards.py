"""One row per reward: who got how much for what; its parts are in ``reward_parts``."""

import sqlite3
from collections.abc import Iterator
from operator import itemgetter

from events import tasks as facts
from events.base import Recorded
from projections.base import Row, as_json, find, projection, select, stamp


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
    indexes=(("run", "role", "iteration"),),
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
    wanted = {"run": run, "task": task, "attempt": attempt}
    found = find(db, "SELECT * FROM rewards", wanted, "task, role, attempt, reward_set", parse=("facts",))
    lines: dict[tuple[str, ...], list[Row]] = {}
    for line in find(db, "SELECT * FROM reward_parts", wanted, "name", parse=("inputs",)):
        shown = {name: line[name] for name in ("name", "inputs", "value", "weight", "worth")}
        lines.setdefault(_receipt(line), []).append(shown)
    return [{**reward, "parts": lines.get(_receipt(reward), [])} for reward in found]


_receipt = itemgetter("task", "attempt", "role", "reward_set")


def reward_curve(db: sqlite3.Connection, run: str) -> list[Row]:
    """Per iteration and role: rewards, mean total, and the mean of each part that was scored."""
    totals = select(
        db,
        "SELECT iteration, role, reward_set, count(*) AS n, avg(total) AS mean FROM rewards WHERE run = ?"
        " GROUP BY iteration, role, reward_set ORDER BY iteration, role, reward_set",
        (run,),
    )
    means = select(
        db,
        "SELECT iteration, role, reward_set, name, avg(value) AS mean FROM reward_parts WHERE run = ?"
        " GROUP BY iteration, role, reward_set, name ORDER BY name",
        (run,),
    )
    by_point: dict[tuple[object, ...], Row] = {}
    for part in means:
        point = (part["iteration"], part["role"], part["reward_set"])
        by_point.setdefault(point, {})[part["name"]] = part["mean"]
    return [{**row, "parts": by_point.get((row["iteration"], row["role"], row["reward_set"]), {})} for row in totals]
