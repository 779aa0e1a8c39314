"""Measures an iteration before anything is trained on it."""

from agent0.run.lifecycle import RunState
from agent0.run.monitors.iteration_metrics import measure
from agent0.run.requests import pending_ids
from events.base import Event
from events.checkpoints import TrainingRequested
from events.runs import IterationMeasured
from handlers import on


@on(TrainingRequested)
async def measure_iteration(event: TrainingRequested, run: RunState) -> list[Event]:
    """Measure the iteration once: at the first of its trainings."""
    if run.phase != "training" or event.checkpoint != next(iter(pending_ids(run)), ""):
        return []
    found = measure(run)
    return [IterationMeasured(iteration=run.iteration, student=run.student.id, teacher=run.teacher.id, measures=found)]
