"""A checkpoint from a request: gather, choose, name exactly what is used, train. The same for a run and for an
experiment on its past."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agent0.errors import OperationError
from agent0.ports.storage import Artifacts, History
from agent0.ports.training import Lesson, Trained, Trainers, TrainJob
from agent0.settings import ActorConfig, RunConfig
from agent0.training.dataset import collect, searched
from agent0.training.manifest import canonical, dataset_sha, manifest, note
from agent0.training.search_traces import Searched
from agent0.training.search_traces import lessons as search_lessons
from agent0.training.selection import Selection, learning_rate, select, unsound
from agent0.training.trace_sources import seeded
from events.base import Event
from events.checkpoints import CheckpointTrained, TrainingRequested
from events.experiments import DatasetSelected
from events.values import Artifact


async def make_checkpoint(
    request: TrainingRequested,
    run: str,
    plan: RunConfig,
    trainers: Trainers,
    history: History,
    artifacts: Artifacts,
    lessons: Sequence[Lesson] = (),
) -> list[Event]:
    """What ``request`` comes to. Without contrast in the rewards, and without ``lessons``, there is nothing to learn:
    the parent stays, and the event says why.

    Raises:
        OperationError: the trainer failed, or too much of it did and the recipe wants no such checkpoint; whatever
            ports raise.
    """
    chosen = await _chosen(request, run, plan, history, artifacts, tuple(lessons))
    actor: ActorConfig = plan.student if request.role == "student" else plan.teacher
    recipe = plan.training.student if request.role == "student" else plan.training.teacher
    rate = learning_rate(recipe, request.iteration, plan.iterations)
    settings = recipe.told() | {"lr": rate, "temperature": actor.temperature}
    if not chosen.samples and not chosen.lessons:
        return [_trained(request, chosen, settings)]
    told = manifest(chosen, request, settings)
    selected = DatasetSelected(
        checkpoint=request.checkpoint,
        role=request.role,
        manifest=artifacts.put(canonical(told), "application/json"),
        dataset=dataset_sha(told),
        events=len(chosen.used),
        until=request.until,
    )
    made = await trainers.open(actor).train(_job(request, chosen, settings, selected.dataset))
    if made.adapter.size == 0:
        raise OperationError("The trainer returned an empty adapter.")
    trained = _with(_trained(request, chosen, settings), made, selected.manifest)
    if recipe.on_nan == "fail" and (why := unsound(trained, plan.training)):
        raise OperationError("This training is not to be used.", f"{why}.", "Or set on_nan = skip.")
    return [selected, trained]


async def _chosen(
    request: TrainingRequested,
    run: str,
    plan: RunConfig,
    history: History,
    artifacts: Artifacts,
    lessons: tuple[Lesson, ...],
) -> Selection:
    deeds, past = await collect(run, request, history, artifacts)
    found = select(request.role, deeds, past, author=request.parent, config=plan, seed=request.seed)
    recipe = plan.training.student
    if request.role == "student" and recipe.lessons == "search":
        attempts = seeded([Searched(*told) for told in await searched(run, request, history, artifacts)], plan)
        count = recipe.replay_steps * recipe.minibatch
        own = search_lessons(attempts, count, plan, request.seed, request.iteration)
        used = found.used[: len(found.samples)]
        return replace(found, lessons=(*lessons, *own), replay=(), used=(*used, *found.over))
    return replace(found, lessons=lessons)


def _job(request: TrainingRequested, chosen: Selection, settings: dict[str, Any], dataset: str) -> TrainJob:
    return TrainJob(
        chosen.samples,
        chosen.replay,
        request.parent_adapter,
        request.seed,
        settings,
        note(request, settings, dataset),
        chosen.lessons,
    )


def _with(trained: CheckpointTrained, made: Trained, manifest: Artifact) -> CheckpointTrained:
    found = {"adapter": made.adapter, "manifest": manifest, "metrics": made.metrics, "environment": made.environment}
    return trained.model_copy(update={**found, "wall_s": made.metrics.get("seconds", 0.0)})


def _trained(request: TrainingRequested, chosen: Selection, settings: dict[str, object]) -> CheckpointTrained:
    return CheckpointTrained(
        checkpoint=request.checkpoint,
        role=request.role,
        iteration=request.iteration,
        parent=request.parent,
        adapter=None,
        samples=len(chosen.samples),
        replay=len(chosen.replay),
        skipped=chosen.skipped,
        recipe=settings,
        learned=dict(sum((Counter(one.origin) for one in chosen.lessons), Counter())),
    )
