"""The teacher's gate: decides by its first screened proposals whether a new teacher stays."""

from agent0.evaluation.promotion import judge_proposals
from agent0.events.alarms import ReactionDropped
from agent0.events.base import Event
from agent0.events.checkpoints import TeacherJudged
from agent0.events.runs import RunStarted
from agent0.events.tasks import TaskAccepted, TaskRejected
from agent0.handlers import on
from agent0.run.lifecycle import RunState


@on(TaskAccepted, TaskRejected, ReactionDropped, RunStarted)
async def judge_teacher(
    event: TaskAccepted | TaskRejected | ReactionDropped | RunStarted, run: RunState
) -> list[Event]:
    """Judge a teacher on probation at the event with which the last of its iteration's proposals is screened, or with
    which a fork begins behind that."""
    screening = not isinstance(event, ReactionDropped) or event.failed_handler in ("propose_task", "screen_task")
    before = run.tested_teacher
    if before is None or not screening or not run.teacher_waits or not run.screened:
        return []
    judgement = judge_proposals(run.proposals, before.proposals, before.checkpoint.id)
    current, then = run.proposals, before.proposals
    return [
        TeacherJudged(
            checkpoint=run.teacher.id,
            iteration=run.iteration,
            promoted=judgement.promoted,
            against=before.checkpoint.id,
            reason=judgement.reason,
            screened=current.screened,
            readable=current.readable,
            accepted=current.accepted,
            against_screened=then.screened,
            against_readable=then.readable,
            against_accepted=then.accepted,
            readable_p=judgement.readable_p,
            accepted_p=judgement.accepted_p,
        )
    ]
