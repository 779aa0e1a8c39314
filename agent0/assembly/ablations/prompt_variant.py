"""Part of the rim: the variant of an ablation study that searches over prompts in the place of the loop. Its student
is scored under its own prompt and under the best one, on the items of all other variants."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from agent0.assembly.ablations.prompt_optimizer import front_size, require_optimizer
from agent0.assembly.ablations.prompt_search import PREFIX, budget_of, original_prompt, search, with_prompt
from agent0.assembly.ablations.variant_records import VariantRecords
from agent0.assembly.evaluation.rollout_ports import open_rollout_ports
from agent0.assembly.log.access import open_log
from agent0.errors import ConfigError
from agent0.evaluation.item_events import checkpoint_evaluated, items_of
from agent0.evaluation.item_rollout import ItemAttempt, solve_benchmark_item, solve_item
from agent0.evaluation.suite import benchmark_suite
from agent0.events.checkpoints import EvaluationRequested, Scored
from agent0.events.values import Usage
from agent0.experiments.ablation_results import RunOutcome
from agent0.experiments.ablation_runs import AblationRun
from agent0.infra.log.server_folder import write
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.infra.storage.datasets import BenchmarkFolder
from agent0.run.lifecycle import BASE
from agent0.settings import RunConfig, Settings
from agent0.tasks.curriculum.ladder_height import on_ladder

STUDENT = "prompt"
"""The checkpoint of a search: the untrained student under another prompt."""
FILE = "prompt.txt"
"""In the folder of the ablation run: the best prompt."""


def check_search(ablation: AblationRun) -> None:
    """Raises ConfigError or RequirementsError where ``ablation`` is to search over prompts and cannot."""
    if ablation.search:
        require_optimizer()
        original_prompt(ablation.config)
        front_size(budget_of(ablation.config), budget_of(ablation.config))
        if on_ladder(ablation.config):
            why = "A search over prompts has no levels to climb."
            raise ConfigError(f"The variant {ablation.variant} is on a ladder.", why, "Leave search out.")


async def search_prompt(
    settings: Settings, ablation: AblationRun, report: Callable[[str, float | None], None]
) -> RunOutcome:
    """Score the student, search, score it under the best prompt; what is recorded already is not asked again. Errors as
    for ``search``; DependencyError where the log is not there."""
    async with AsyncExitStack() as stack:
        artifacts = FileArtifacts(settings.home)
        log = await stack.enter_async_context(open_log(settings, make=True))
        ports = await open_rollout_ports(settings, artifacts, stack, log)
        records = VariantRecords(settings, ablation, log, artifacts, ports, report)
        await records.read()
        await _score_student(records, _Student(BASE, -1, ablation.config))
        records.usage = Usage()
        text = await search(records)
        write(settings.home / FILE, text)
        report(f"the best prompt is in {settings.home / FILE}", None)
        same, last = text == original_prompt(ablation.config), ablation.config.iterations - 1
        config = ablation.config if same else with_prompt(ablation.config, text)
        await _score_student(records, _Student(STUDENT, last, config))
        return _outcome(records)


@dataclass(frozen=True)
class _Student:
    """A student to be scored, as the checkpoint of an iteration (-1: before the search)."""

    checkpoint: str
    iteration: int
    config: RunConfig


async def _score_student(records: VariantRecords, student: _Student) -> None:
    """Score it on every held-out set of the run."""
    plan = student.config.evaluation
    if plan.validation:
        await _score(records, student, "validation", plan.validation)
    if plan.test:
        await _score(records, student, "test", plan.test)
    for name in plan.benchmarks:
        await _score(records, student, "benchmark", plan.benchmark_items, name)


async def _score(records: VariantRecords, student: _Student, split: Scored, n: int, benchmark: str = "") -> None:
    base, evaluation = (f"{name}-{benchmark or split}".replace(":", "-") for name in (BASE, student.checkpoint))
    if evaluation in records.scores:
        return
    if base in records.scores and student.config == records.config:  # the prompt is still its own: nothing is asked
        scored = {"evaluation": evaluation, "checkpoint": student.checkpoint, "iteration": student.iteration}
        await records.record(records.scores[base].model_copy(update=scored), evaluation)
        return
    request = EvaluationRequested(
        evaluation=evaluation,
        checkpoint=student.checkpoint,
        iteration=student.iteration,
        split=split,
        n=n,
        seed=student.config.evaluation.seed,
        state_sha="",
        benchmark=benchmark,
    )
    state, files = records.state(student.config), BenchmarkFolder(records.settings.benchmarks.folder)
    suite = benchmark_suite(benchmark, n, request.seed, files) if benchmark else None

    async def attempt(number: int) -> ItemAttempt:
        if suite:
            return await solve_benchmark_item(request, number, suite, state, records.ports)
        return await solve_item(request, number, state, records.ports)

    items = await records.attempted(evaluation, range(len(suite.items) if suite else n), attempt)
    artifacts = records.artifacts
    score = checkpoint_evaluated(request, items_of(items, artifacts), artifacts, student.config)
    await records.record(score, evaluation)
    records.report(f"{evaluation}: {score.correct} of {score.n} right", None)


def _outcome(records: VariantRecords) -> RunOutcome:
    """The outcome as that of a run; its cost is the search's."""
    usages = [candidate.usage for candidate in records.candidates]
    cost = {
        "attempts": float(sum(evaluation.startswith(PREFIX) for evaluation, _ in records.attempts)),
        "tokens": float(sum(usage.prompt_tokens + usage.completion_tokens for usage in usages)),
        "model_s": sum(usage.wall_s for usage in usages),
        "steps": 0.0,
        "learned_tokens": 0.0,
        "training_s": 0.0,
        "wall_s": (max(records.times) - min(records.times)).total_seconds(),
    }
    scores = tuple(sorted(records.scores.values(), key=lambda score: score.iteration))
    about = records.ablation
    return RunOutcome(about.variant, about.seed, about.run, STUDENT, about.config.iterations, scores, cost)
