"""Raises alarms on the steps of a training."""

from agent0.events.base import Event, Recorded
from agent0.events.checkpoints import TrainingMeasured
from agent0.events.values import TrainingStep
from agent0.handlers import on
from agent0.ports.storage import History
from agent0.run.lifecycle import RunState
from agent0.training.step_alarms import StepHistory, step_alarms

RECENT = 20_000
"""Events that are looked back on: a hundred iterations of a small run, so that a long one is not read ever again."""


@on(TrainingMeasured)
async def watch_training(event: TrainingMeasured, run: RunState, cause: Recorded, history: History) -> list[Event]:
    """Compare the steps with fixed limits, and with the steps of the run's recent trainings of the same role."""
    before, begun = list[TrainingStep](), 0
    since = max(0, cause.seq - RECENT)
    async for recorded in history.read(cause.run, ["TrainingMeasured"], after=since, until=cause.seq - 1):
        if isinstance(recorded.event, TrainingMeasured) and recorded.event.role == event.role:
            before += recorded.event.steps
            begun += len(recorded.event.steps) if recorded.event.checkpoint == event.checkpoint else 0
    training = run.config.training
    recipe = training.student if event.role == "student" else training.teacher
    return [*step_alarms(event, StepHistory(event.steps, before, recipe, begun))]
