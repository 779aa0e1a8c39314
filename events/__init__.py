"""Event classes and their values: everything that can be recorded of a run. Pydantic and the standard library only."""

from agent0.events import (
    alarms,
    benchmarks,
    budgets,
    checkpoints,
    experiments,
    models,
    policies,
    runs,
    submissions,
    tasks,
)
from agent0.events.base import Event, Recorded, decode, effect_id, event_types, new_id

__all__ = [
    "Event",
    "Recorded",
    "alarms",
    "benchmarks",
    "budgets",
    "checkpoints",
    "decode",
    "effect_id",
    "event_types",
    "experiments",
    "models",
    "new_id",
    "policies",
    "runs",
    "submissions",
    "tasks",
]
