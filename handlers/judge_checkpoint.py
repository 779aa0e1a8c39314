"""The promotion gate: decides by paired tests on the same held-out items whether a candidate becomes the student."""

from agent0.evaluation.promotion import judge
from agent0.run.lifecycle import RunState
from agent0.state.run_state import Score
from events.base import Event
from events.checkpoints import CheckpointEvaluated, CheckpointPromoted, CheckpointRejected
from handlers import on


@on(CheckpointEvaluated, in_flight=1)
async def judge_checkpoint(event: CheckpointEvaluated, run: RunState) -> list[Event]:
    """Judge the candidate's validation score; test scores never select anything."""
    candidate = run.candidate
    if run.phase != "judging" or run.entered != run.seq or candidate is None or event.checkpoint != candidate.id:
        return []
    score = Score(event.accuracy, event.outcomes, event.confidences)
    found = judge(score, run.promoted, run.config.evaluation)
    fields = {"checkpoint": candidate.id, "iteration": run.iteration, "accuracy": event.accuracy}
    fields |= {"against": found.against, "reason": found.reason, "test": found.test}
    return [CheckpointPromoted(**fields, improved=found.improved) if found.promoted else CheckpointRejected(**fields)]
