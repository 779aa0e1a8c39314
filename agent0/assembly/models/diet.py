"""Part of the rim: reads from the log what every checkpoint of a run was trained on (``agent0.training.diet``)."""

import json

from agent0.events.base import Recorded
from agent0.events.benchmarks import TaskReviewed
from agent0.events.checkpoints import CheckpointTrained
from agent0.events.tasks import ResultVerified, TaskAttempted, TaskProposed
from agent0.events.values import Trajectory
from agent0.infra.log.event_log import Log
from agent0.ports.storage import Artifacts
from agent0.provenance.fork_history import read_branch
from agent0.rollout.claim_check import redeem
from agent0.state.run_state import BASE
from agent0.training.diet import Diet, diet_of

TYPES = ("TaskProposed", "TaskAttempted", "ResultVerified", "TaskReviewed", "CheckpointTrained")


async def diets(log: Log, artifacts: Artifacts, run: str) -> list[Diet]:
    """Read what each checkpoint of ``run``, and of the past that it shares with its parents, was trained on.

    Raises:
        NotFoundError: a manifest or a trajectory that is named is gone.
    """
    written: dict[str, Recorded] = {}
    right: dict[str, bool] = {}
    trained: list[CheckpointTrained] = []
    async for stored in read_branch(log, run, TYPES):
        match stored.event:
            case TaskAttempted() | TaskProposed():
                written[stored.id] = stored
            case ResultVerified() as event:
                right.setdefault(event.attempt, bool(event.correct))
            case TaskReviewed(correct=bool()) as event:
                right[event.attempt] = bool(event.correct)
            case CheckpointTrained() as event if event.manifest:
                trained.append(event)

    def sampled(stored: Recorded) -> Trajectory | None:
        event = stored.event
        assert isinstance(event, TaskAttempted | TaskProposed)  # noqa: S101 - only these are written
        return redeem(event.trajectory, event.trajectory_artifact, artifacts)

    def diet(training: CheckpointTrained) -> Diet:
        events = json.loads(artifacts.get(training.manifest)).get("events", ()) if training.manifest else ()
        authors = [BASE, *(other.checkpoint for other in trained if other.role == training.role)]
        return diet_of(training, events, written, sampled, right, authors)

    return [diet(training) for training in trained]
