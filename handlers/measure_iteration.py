"""Measures an iteration before anything is trained on it."""

from agent0.events.base import Event
from agent0.events.checkpoints import TrainingRequested
from agent0.events.runs import IterationMeasured
from agent0.handlers import on
from agent0.run.lifecycle import RunState
from agent0.run.monitors.iteration_metrics import measure
from agent0.run.requests import pending_ids


@on(TrainingRequested)
async def measure_iteration(event: TrainingRequested, run: RunState) -> list[Event]:
    """Measure the iteration once: at the first of its trainings."""
    run = run.in_training
    if run.phase != "training" or event.checkpoint != next(iter(pending_ids(run)), ""):
        return []
    measures, (student, teacher) = measure(run), run.authors or (run.student.id, run.teacher.id)
    return [IterationMeasured(iteration=run.iteration, student=student, teacher=teacher, measures=measures)]
