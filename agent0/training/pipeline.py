"""The training pipeline: collect trajectories, select, record the manifest, train. The same for a run and for an
experiment that retrains its past."""

from collections.abc import Sequence
from dataclasses import replace

from agent0.errors import OperationError
from agent0.events.base import Event
from agent0.events.checkpoints import CheckpointTrained, TrainingMeasured, TrainingRequested
from agent0.events.experiments import DatasetSelected
from agent0.events.values import Artifact, Role
from agent0.ports.models import Models, Resting
from agent0.ports.storage import Artifacts, History
from agent0.ports.training import Trainers, TrainingExample, TrainingResult, TrainJob
from agent0.settings import ActorConfig, RunConfig
from agent0.training.dataset import collect_trajectories
from agent0.training.distillation import with_distilled
from agent0.training.manifest import adapter_metadata, canonical, dataset_sha, manifest
from agent0.training.objectives import clips
from agent0.training.selection import DatasetSelection, learning_rate, select, settling, training_warning

STEPS_PER_EVENT = 200
"""About 60 KB: an event that is larger goes to the artifact store, which no table reads."""

UNSET = ("first", "optimizer_state")
"""Settings that a recipe names where they are set: logs from before there were any train to the same adapters."""


async def make_checkpoint(
    request: TrainingRequested,
    run: str,
    plan: RunConfig,
    trainers: Trainers,
    history: History,
    artifacts: Artifacts,
    examples: Sequence[TrainingExample] = (),
) -> list[Event]:
    """Train the checkpoint that ``request`` asks for; returns the events to record.

    Without contrast in rewards or ``examples`` there is nothing to learn: the parent stays, the event says why.

    Raises:
        OperationError: the trainer failed, or the recipe forbids a training with so many skipped steps.
    """
    plan = _beginning_with(request, plan)
    chosen, distilled = await _chosen(request, run, plan, history, artifacts, tuple(examples))
    actor: ActorConfig = plan.student if request.role == "student" else plan.teacher
    recipe = plan.training.student if request.role == "student" else plan.training.teacher
    settings = settings_of(request.role, request.iteration, plan)
    if not chosen.samples and not chosen.examples:
        return [_trained(request, replace(chosen, authors={}), settings, distilled)]
    content = manifest(chosen, request, settings)
    selected = DatasetSelected(
        checkpoint=request.checkpoint,
        role=request.role,
        manifest=artifacts.put(canonical(content), "application/json"),
        dataset=dataset_sha(content),
        events=len(chosen.used),
        until=request.until,
    )
    result = await trainers.open(actor).train(_job(request, chosen, settings, selected.dataset))
    if result.adapter.size == 0:
        raise OperationError("The trainer returned an empty adapter.")
    trained = _with(_trained(request, chosen, settings, distilled), result, selected.manifest)
    if recipe.on_nan == "fail" and (why := training_warning(trained, plan.training)):
        raise OperationError("This training is not to be used.", f"{why}.", "Or set on_nan = skip.")
    return [selected, *_steps(request, result), trained]


def _beginning_with(request: TrainingRequested, plan: RunConfig) -> RunConfig:
    """``plan`` with the objective that the training of ``request`` has."""
    recipes = {"student": plan.training.student, "teacher": plan.training.teacher}
    recipe = recipes[request.role].beginning_with(request.parent_adapter)
    return plan.model_copy(update={"training": plan.training.model_copy(update={request.role: recipe})})


def settings_of(role: Role, iteration: int, plan: RunConfig) -> dict[str, object]:
    """The settings of a training of ``role`` in ``iteration``, as trainers read them and adapters record them."""
    actor: ActorConfig = plan.student if role == "student" else plan.teacher
    recipe = plan.training.student if role == "student" else plan.training.teacher
    rate = learning_rate(recipe, iteration, plan.planned_iterations)
    late = settling(recipe, rate, iteration, plan.planned_iterations)
    low, high = clips(recipe)
    sampled = {"temperature": actor.temperature, "max_tokens": actor.max_tokens}
    unset = {name for name in UNSET if getattr(recipe, name) == type(recipe).model_fields[name].default}
    return recipe.model_dump(exclude=unset) | {"lr": rate, "clip_low": low, "clip_high": high} | sampled | late


async def make_room(plan: RunConfig, models: Models) -> None:
    """Let the models of ``plan`` that can give their memory back do so, before a training."""
    judge = plan.verification.judge
    teacher = [plan.teacher] if plan.has_teacher else []
    for actor in (*teacher, plan.student, *([judge] if judge.provider else [])):
        model = models.open(actor)
        if isinstance(model, Resting):
            await model.rest()


async def _chosen(
    request: TrainingRequested,
    run: str,
    plan: RunConfig,
    history: History,
    artifacts: Artifacts,
    examples: tuple[TrainingExample, ...],
) -> tuple[DatasetSelection, dict[str, float]]:
    """What is trained on, and the shares of it that other models wrote."""
    trajectories, past = await collect_trajectories(run, request, history, artifacts)
    authors = {"author": request.parent, "earlier": request.earlier}
    selection = select(request.role, trajectories, past, config=plan, seed=request.seed, **authors)
    selection = replace(selection, examples=examples)
    return with_distilled(selection, past, plan, request.seed) if request.role == "student" else (selection, {})


def _job(request: TrainingRequested, chosen: DatasetSelection, settings: dict[str, object], dataset: str) -> TrainJob:
    return TrainJob(
        chosen.samples,
        chosen.replay,
        request.parent_adapter,
        request.seed,
        settings,
        adapter_metadata(request, settings, dataset),
        chosen.examples,
        request.parent_optimizer,
    )


def _steps(request: TrainingRequested, result: TrainingResult) -> list[TrainingMeasured]:
    return [
        TrainingMeasured(
            checkpoint=request.checkpoint,
            role=request.role,
            iteration=request.iteration,
            first=done + 1,
            steps=result.steps[done : done + STEPS_PER_EVENT],
        )
        for done in range(0, len(result.steps), STEPS_PER_EVENT)
    ]


def _with(trained: CheckpointTrained, result: TrainingResult, manifest: Artifact) -> CheckpointTrained:
    fields = {
        "adapter": result.adapter,
        "manifest": manifest,
        "metrics": result.metrics,
        "environment": result.environment,
        "optimizer": result.optimizer,
    }
    return trained.model_copy(update={**fields, "wall_s": result.metrics.get("seconds", 0.0)})


def _trained(
    request: TrainingRequested, chosen: DatasetSelection, settings: dict[str, object], distilled: dict[str, float]
) -> CheckpointTrained:
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
        distilled=distilled,
        authors=dict(chosen.authors),
    )
