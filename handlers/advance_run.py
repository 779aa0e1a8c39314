"""Advances a run: requests what comes next after an event."""

from agent0.events import alarms, checkpoints, runs, tasks
from agent0.events.base import Event
from agent0.handlers import on
from agent0.run.lifecycle import RunState, decide


@on(
    runs.RunStarted,
    runs.RunResumed,
    tasks.TaskAccepted,
    tasks.RewardAssigned,
    checkpoints.CheckpointTrained,
    checkpoints.CheckpointEvaluated,
    checkpoints.CheckpointPromoted,
    checkpoints.CheckpointRejected,
    checkpoints.TeacherJudged,
    alarms.ReactionFailed,
    alarms.ReactionDropped,
)
async def advance_run(event: Event, run: RunState) -> list[Event]:
    """Request what follows from the state as of ``event``. Decisions depend on it alone, so they need no order among
    themselves."""
    return decide(run, event)
