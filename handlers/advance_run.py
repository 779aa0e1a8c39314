"""Advances a run: requests what comes next after an event."""

from agent0.run.lifecycle import RunState, decide
from events import alarms, checkpoints, runs, tasks
from events.base import Event
from handlers import on


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
