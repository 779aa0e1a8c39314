"""Trains a new adapter on an iteration's scored trajectories."""

from agent0.events.base import Event
from agent0.events.checkpoints import TrainingRequested
from agent0.handlers import on
from agent0.ports.models import Models
from agent0.ports.storage import Artifacts, History
from agent0.ports.training import Trainers
from agent0.run.lifecycle import RunState
from agent0.training.pipeline import make_checkpoint, make_room


@on(TrainingRequested, in_flight=1, long=True, roles=("student", "teacher"))
async def train_checkpoint(
    event: TrainingRequested, run: RunState, models: Models, trainers: Trainers, history: History, artifacts: Artifacts
) -> list[Event]:
    """Return the dataset, named event by event, and the checkpoint; or the latter alone where there is nothing to learn
    from. Models that can give their memory back do so first."""
    if not run.config.training.steps_off_policy:  # else they write while this goes on
        await make_room(run.config, models)
    return await make_checkpoint(event, run.run, run.config, trainers, history, artifacts)
