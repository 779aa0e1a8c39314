"""One row per iteration, role, set and part: how many rewards there are, and their sum: nobody reads them all."""

import sqlite3
from collections.abc import Iterator
from math import isfinite

from agent0.events import tasks as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, projection, select

UNIT = 10**9
"""Sums are whole numbers of billionths: their order changes nothing."""
TOTAL = ""
"""The part that stands for the total."""


@projection(
    key=("run", "iteration", "role", "reward_set", "part"),
    columns={
        "run": str,
        "iteration": int,
        "role": str,
        "reward_set": str,
        "part": str,
        "n": int,
        "scored": int,
        "billionths": int,
    },
    events=(facts.RewardAssigned,),
    adds=("n", "scored", "billionths"),
)
def reward_totals(e: Recorded) -> Iterator[Row]:
    """``n`` rewards, of which ``scored`` have a value; ``billionths`` is its sum."""
    x = e.event
    assert isinstance(x, facts.RewardAssigned)  # noqa: S101 - declared above
    of = {"run": e.run, "iteration": x.iteration, "role": x.role, "reward_set": x.set}
    for part, value in ((TOTAL, x.total), *((part.name, part.value) for part in x.parts)):
        has_value = value is not None and isfinite(value)
        units = round(value * UNIT) if has_value and value is not None else 0
        yield {**of, "part": part, "n": 1, "scored": int(has_value), "billionths": units}


def reward_means(db: sqlite3.Connection, run: str) -> list[Row]:
    """Per iteration, role and set: rewards (``n``), their mean total, and the mean of each part that was scored."""
    rows = select(
        db,
        "SELECT iteration, role, reward_set, part, n, CASE WHEN scored THEN 1e-9 * billionths / scored END AS mean"
        " FROM reward_totals WHERE run = ? ORDER BY iteration, role, reward_set, part",
        (run,),
    )
    means: list[Row] = []
    for row in rows:
        if row["part"] == TOTAL:
            head = {key: row[key] for key in ("iteration", "role", "reward_set", "n", "mean")}
            means.append({**head, "parts": {}})
        else:
            means[-1]["parts"][row["part"]] = row["mean"]
    return means
