"""Raises alarms about failures, trainings, rejections and verdicts."""

from agent0.events.alarms import AlarmRaised, ReactionFailed
from agent0.events.base import Event
from agent0.events.checkpoints import CheckpointRejected, CheckpointTrained, TeacherJudged
from agent0.events.models import ModelCalled
from agent0.events.tasks import ResultVerified
from agent0.handlers import on
from agent0.routing.health import model_alarms
from agent0.run.lifecycle import RunState
from agent0.training.step_alarms import checkpoint_alarms
from agent0.verification.human_review import verdict_alarms


@on(ReactionFailed, CheckpointTrained, CheckpointRejected, TeacherJudged, ResultVerified, ModelCalled)
async def raise_alarm(
    event: ReactionFailed | CheckpointTrained | CheckpointRejected | TeacherJudged | ResultVerified | ModelCalled,
    run: RunState,
) -> list[Event]:
    """Raise the alarms of an event. Failures are critical only where the run waits for them."""
    match event:
        case ReactionFailed():
            waits = event.waits or run.config.on_failure == "wait" or event.failed_handler == "advance_run"
            text = f"{event.failed_handler} gave up on {event.cause_type}: {event.message}"
            facts = {"failure": event.failure}
            severity = "critical" if waits else "warning"
            return [AlarmRaised(alarm=f"failure-{event.failure}", severity=severity, message=text, facts=facts)]
        case ResultVerified():
            return [*verdict_alarms(event, run)]
        case CheckpointTrained():
            return [*checkpoint_alarms(event, run.config.training)]
        case ModelCalled():
            return [*model_alarms(event)]
        case CheckpointRejected() | TeacherJudged(promoted=False):
            text = f"{event.checkpoint} was not promoted: {event.reason}"
            return [AlarmRaised(alarm=f"rejected-{event.checkpoint}", severity="info", message=text)]
    return []
