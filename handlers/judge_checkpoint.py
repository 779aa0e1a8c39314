"""The promotion gate: decides by paired tests on the same held-out items whether a candidate becomes the student."""

from agent0.evaluation.promotion import JUDGES, lost_benchmark
from agent0.events.alarms import ReactionDropped
from agent0.events.base import Event
from agent0.events.checkpoints import CheckpointEvaluated, CheckpointPromoted, CheckpointRejected
from agent0.handlers import on
from agent0.run.lifecycle import RunState
from agent0.state.rules import chosen
from agent0.state.run_state import ValidationScore


@on(CheckpointEvaluated, ReactionDropped, in_flight=1)
async def judge_checkpoint(event: CheckpointEvaluated | ReactionDropped, run: RunState) -> list[Event]:
    """Judge the candidate's validation score once nothing more of it is scored, or given up; test scores never select
    anything, and benchmarks only where ``evaluation.benchmark_gate`` is on."""
    run = run.in_training
    candidate = run.candidate
    if run.phase != "judging" or run.entered != run.seq or candidate is None:
        return []
    score = candidate.score
    if isinstance(event, CheckpointEvaluated):
        if event.checkpoint != candidate.id:
            return []
        score = score if event.benchmark else ValidationScore(event.accuracy, event.outcomes, event.confidences)
    if score is None:
        return []
    judge = chosen("promotion", JUDGES, run.rules)
    verdict = judge(score, run.promoted, run.config.evaluation)
    if verdict.promoted and run.config.evaluation.benchmark_gate:
        verdict = lost_benchmark(candidate, run.promoted) or verdict
    fields = {"checkpoint": candidate.id, "iteration": run.iteration, "accuracy": score.accuracy}
    fields |= {"against": verdict.against, "reason": verdict.reason, "test": verdict.test}
    return [
        CheckpointPromoted(**fields, improved=verdict.improved) if verdict.promoted else CheckpointRejected(**fields)
    ]
