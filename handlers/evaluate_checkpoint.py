"""Evaluates a student checkpoint: plans the items of its suite."""

from agent0.evaluation.suite import requested_benchmark, suite
from agent0.events.base import Event
from agent0.events.checkpoints import EvaluationItemRequested, EvaluationRequested
from agent0.handlers import on
from agent0.ports.storage import BenchmarkFiles, QuestionFile
from agent0.run.lifecycle import RunState


@on(EvaluationRequested, in_flight=1)
async def evaluate_checkpoint(
    event: EvaluationRequested, run: RunState, benchmark_files: BenchmarkFiles, question_file: QuestionFile
) -> list[Event]:
    """Request the first items, as many as may be under way at once; each that is scored makes room for another."""
    most = run.config.evaluation.at_once
    if event.benchmark:
        benchmark = requested_benchmark(event, run.benchmark_rows, benchmark_files)
        fields = {"evaluation": event.evaluation, "rows": benchmark.rows, "of": len(benchmark.items)}
        return [EvaluationItemRequested(**fields, number=number) for number in range(min(len(benchmark.items), most))]
    first = min(len(suite(event, run.config, question_file)), most)
    return [EvaluationItemRequested(evaluation=event.evaluation, number=number) for number in range(first)]
