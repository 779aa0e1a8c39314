"""Raises alarms about failures, trainings, rejections and verdicts."""

from agent0.run.death_alarms import given_up_alarm, untrained_alarm
from agent0.run.lifecycle import RunState
from agent0.training.selection import training_warning
from agent0.verification.human_review import verdict_alarms
from events.alarms import AlarmRaised, ReactionFailed
from events.base import Event
from events.checkpoints import CheckpointRejected, CheckpointTrained, TeacherJudged
from events.tasks import ResultVerified
from handlers import on


@on(ReactionFailed, CheckpointTrained, CheckpointRejected, TeacherJudged, ResultVerified)
async def raise_alarm(
    event: ReactionFailed | CheckpointTrained | CheckpointRejected | TeacherJudged | ResultVerified, run: RunState
) -> list[Event]:
    """Raise the alarms of an event, each with what shows it."""
    match event:
        case ReactionFailed():
            return [given_up_alarm(event, run)]
        case ResultVerified():
            return [*verdict_alarms(event, run)]
        case CheckpointTrained(adapter=None):
            return [untrained_alarm(event, run)]
        case CheckpointTrained() if warning := training_warning(event, run.config.training):
            return [AlarmRaised(alarm=f"not-finite-{event.checkpoint}", severity="warning", message=warning)]
        case CheckpointRejected() | TeacherJudged(promoted=False):
            text = f"{event.checkpoint} was not promoted: {event.reason}"
            return [AlarmRaised(alarm=f"rejected-{event.checkpoint}", severity="info", message=text)]
    return []
