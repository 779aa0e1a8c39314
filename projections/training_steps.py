"""One row per step of a training: loss, gradient norm and what else the optimiser's step was measured by."""

import json
import sqlite3
from collections.abc import Iterator

from agent0.events import checkpoints as facts
from agent0.events.base import Recorded
from agent0.events.values import TrainingStep
from agent0.projections.base import Row, projection, select, stamp

TYPES = {"kind": str, "tokens": int, "skipped": bool}
"""Of the fields of a step that are no float."""


@projection(
    key=("run", "checkpoint", "step"),
    columns={
        "run": str,
        "checkpoint": str,
        "role": str,
        "iteration": int,
        "step": int,
        **{name: TYPES.get(name, float) for name in TrainingStep.model_fields},
        "recorded": str,
    },
    events=(facts.TrainingMeasured,),
)
def training_steps(e: Recorded) -> Iterator[Row]:
    """Steps by their place in a training, from 1; columns as the fields of ``TrainingStep`` say. None: not known, or
    nothing that the objective has."""
    x = e.event
    assert isinstance(x, facts.TrainingMeasured)  # noqa: S101 - declared above
    of = {"run": e.run, **x.model_dump(include={"checkpoint", "role", "iteration"}), "recorded": stamp(e)}
    for place, step in enumerate(x.steps, x.first):
        yield {**of, "step": place, **step.model_dump()}


def list_training_steps(db: sqlite3.Connection, run: str) -> list[Row]:
    """List the steps of all trainings of a run in order, the student's first."""
    return select(db, "SELECT * FROM training_steps WHERE run = ? ORDER BY role, iteration, checkpoint, step", (run,))


def step_values(db: sqlite3.Connection, run: str, role: str, metric: str) -> list[tuple[str, list[float | None]]]:
    """(checkpoint, value of each step) of a role's trainings in order. ``metric`` is a field of ``TrainingStep``, or
    ``replay_loss``; a loss is None of a step of the other kind."""
    kind = {"loss": "policy", "replay_loss": "replay"}.get(metric)
    column = "loss" if kind else metric
    if column not in TrainingStep.model_fields:
        raise ValueError(metric)
    value = f"CASE WHEN kind = '{kind}' THEN loss END" if kind else column
    rows = db.execute(  # an array a training, which the key has in order: rows would take twice as long
        f"SELECT checkpoint, json_group_array({value}) FROM training_steps"  # noqa: S608 - names of our own
        " WHERE run = ? AND role = ? GROUP BY checkpoint ORDER BY iteration, checkpoint",
        (run, role),
    )
    return [(checkpoint, json.loads(values)) for checkpoint, values in rows]


def tokens_learned(db: sqlite3.Connection, run: str) -> dict[int, int]:
    """How many tokens the student of a run learned from in each iteration that trained it."""
    query = "SELECT iteration, sum(tokens) FROM training_steps WHERE run = ? AND role = 'student' GROUP BY checkpoint"
    return dict(db.execute(query, (run,)).fetchall())


def list_trainings(db: sqlite3.Connection, run: str, checkpoint: str = "") -> list[Row]:
    """List what the steps of each training of a run come to, or of the one of ``checkpoint``: means, and of what may
    not grow the largest. ``loss`` and ``replay_loss`` are means over steps that were not skipped."""
    return select(db, _TRAININGS, (run, checkpoint))


_TRAININGS = """
SELECT checkpoint, role, iteration, count(*) AS steps, sum(skipped) AS skipped, sum(tokens) AS tokens,
       avg(CASE WHEN kind = 'policy' AND NOT skipped THEN loss END) AS loss,
       avg(CASE WHEN kind = 'replay' AND NOT skipped THEN loss END) AS replay_loss,
       avg(gradient_norm) AS gradient_norm, max(gradient_norm) AS largest_norm,
       avg(entropy_estimate) AS entropy_estimate, max(parent_kl) AS largest_kl,
       avg(clip_below) AS clip_below, avg(clip_above) AS clip_above, avg(mismatch) AS mismatch,
       max(learning_rate) AS learning_rate
FROM training_steps WHERE run = ?1 AND ?2 IN ('', checkpoint)
GROUP BY role, iteration, checkpoint ORDER BY role, iteration, checkpoint
"""
