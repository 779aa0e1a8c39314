"""The promotion gate: a candidate goes on unless validation accuracy fell by more than the margin."""

from agent0.run import RunState
from events.base import Event
from events.checkpoints import CheckpointEvaluated, CheckpointPromoted, CheckpointRejected
from handlers import on


@on(CheckpointEvaluated, in_flight=1)
async def judge_checkpoint(event: CheckpointEvaluated, run: RunState) -> list[Event]:
    """Judges the validation score of the candidate; test scores never choose anything."""
    candidate = run.candidate
    if run.phase != "judging" or run.entered != run.seq or candidate is None or event.checkpoint != candidate.id:
        return []
    held, margin = run.accuracy, run.config.evaluation.margin
    if held is None or event.accuracy >= held - margin:
        reason = "first score" if held is None else f"{event.accuracy:.3f} is not below {held:.3f} - {margin}"
        verdict: type[CheckpointPromoted] | type[CheckpointRejected] = CheckpointPromoted
    else:
        reason, verdict = f"{event.accuracy:.3f} is below {held:.3f} - {margin}", CheckpointRejected
    return [
        verdict(checkpoint=candidate.id, iteration=run.iteration, accuracy=event.accuracy, against=held, reason=reason)
    ]
