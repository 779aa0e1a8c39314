"""Evaluates one item of an evaluation; after the last one, scores the checkpoint on all of them."""

from collections.abc import Mapping

from agent0.evaluation.item_events import checkpoint_evaluated, item_scored, items_of
from agent0.evaluation.item_rollout import RolloutPorts, solve_benchmark_item, solve_item
from agent0.evaluation.suite import requested_benchmark
from agent0.events.base import Event
from agent0.events.checkpoints import EvaluationItemRequested, EvaluationItemScored
from agent0.handlers import on
from agent0.ports.environments import Environments
from agent0.ports.models import Models
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts, BenchmarkFiles, History, QuestionFile
from agent0.ports.web import Web
from agent0.run.lifecycle import RunState
from agent0.tools.cache import ToolCache
from agent0.tools.definition import Tool


@on(EvaluationItemRequested, EvaluationItemScored, in_flight=128, long=True, roles=("student", "judge"))
async def evaluate_item(
    event: EvaluationItemRequested | EvaluationItemScored,
    run: RunState,
    history: History,
    models: Models,
    sandbox: Sandbox,
    verifier_sandbox: Sandbox,
    tool_cache: ToolCache,
    artifacts: Artifacts,
    web: Web,
    tools: Mapping[str, Tool],
    benchmark_files: BenchmarkFiles,
    question_file: QuestionFile,
    environments: Environments,
) -> list[Event]:
    """Attempt the item that was requested, or the next one, for which a scored item makes room. Which that is, and
    whether all are scored, is a matter of the state as of the event, so each is the next once and one is the last."""
    evaluation = run.evaluations.get(event.evaluation)
    if evaluation is None:
        return []  # given up
    number = event.number
    if isinstance(event, EvaluationItemScored):
        if evaluation.complete:
            items = items_of(await _scored(event.evaluation, run, history), artifacts)
            return [checkpoint_evaluated(evaluation.request, items, artifacts, run.config)]
        number = run.config.evaluation.at_once + evaluation.scored - 1
    if number >= evaluation.size:
        return []
    ports = RolloutPorts(models, sandbox, verifier_sandbox, tool_cache, web, tools, question_file, environments)
    if evaluation.request.benchmark:
        benchmark = requested_benchmark(evaluation.request, run.benchmark_rows, benchmark_files)
        attempt = await solve_benchmark_item(evaluation.request, number, benchmark, run, ports)
    else:
        attempt = await solve_item(evaluation.request, number, run, ports)
    return [item_scored(event.evaluation, number, attempt, artifacts)]


async def _scored(evaluation: str, run: RunState, history: History) -> list[EvaluationItemScored]:
    """All items of an evaluation of the present phase, as of the state."""
    kinds = [EvaluationItemScored.__name__]
    scored = [r.event async for r in history.read(run.run, kinds, after=run.in_training.entered, until=run.seq)]
    return [event for event in scored if isinstance(event, EvaluationItemScored) and event.evaluation == evaluation]
