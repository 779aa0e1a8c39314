"""The promotion gate: a candidate goes on as far as paired tests of its answers, and of how sure it was of them, on the
same held-out items let it."""

from agent0.evaluation.promotion import judge
from agent0.run.lifecycle import RunState
from agent0.state.run_state import Score
from events.base import Event
from events.checkpoints import CheckpointEvaluated, CheckpointPromoted, CheckpointRejected
from handlers import on


@on(CheckpointEvaluated, in_flight=1)
async def judge_checkpoint(event: CheckpointEvaluated, run: RunState) -> list[Event]:
    """Judges the validation score of the candidate; test scores never choose anything."""
    candidate = run.candidate
    if run.phase != "judging" or run.entered != run.seq or candidate is None or event.checkpoint != candidate.id:
        return []
    score = Score(event.accuracy, event.outcomes, event.confidences)
    found = judge(score, run.promoted, run.config.evaluation)
    told = {"checkpoint": candidate.id, "iteration": run.iteration, "accuracy": event.accuracy}
    told |= {"against": found.against, "reason": found.reason, "test": found.test}
    return [CheckpointPromoted(**told, improved=found.improved) if found.promoted else CheckpointRejected(**told)]
