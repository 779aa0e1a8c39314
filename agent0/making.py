"""A checkpoint from a request: gather, choose, name exactly what is used, train. The same for a run and for an
experiment on its past."""

from agent0.collecting import collect
from agent0.errors import OperationError
from agent0.manifests import canonical, dataset_sha, manifest, note
from agent0.ports import Artifacts, History, Trained, Trainers, TrainJob
from agent0.settings import RunConfig
from agent0.training import Selection, learning_rate, select
from events.base import Event
from events.checkpoints import CheckpointTrained, TrainingRequested
from events.experiments import DatasetSelected
from events.values import Artifact


async def make_checkpoint(
    request: TrainingRequested, run: str, plan: RunConfig, trainers: Trainers, history: History, artifacts: Artifacts
) -> list[Event]:
    """What ``request`` comes to. Without contrast in the rewards there is nothing to learn: the parent stays, and the
    event says why.

    Raises:
        OperationError: the trainer failed; whatever ports raise.
    """
    deeds, replay = await collect(run, request, history, artifacts)
    chosen = select(request.role, deeds, replay, author=request.parent, config=plan, seed=request.seed)
    recipe = plan.training.student if request.role == "student" else plan.training.teacher
    actor = plan.student if request.role == "student" else plan.teacher
    settings = recipe.model_dump() | {
        "lr": learning_rate(recipe, request.iteration, plan.iterations),
        "temperature": actor.temperature,
    }
    if not chosen.samples:
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
    noted = note(request, settings, selected.dataset)
    job = TrainJob(chosen.samples, chosen.replay, request.parent_adapter, request.seed, settings, noted)
    made = await trainers.open(actor).train(job)
    if made.adapter.size == 0:
        raise OperationError("The trainer returned an empty adapter.")
    return [selected, _with(_trained(request, chosen, settings), made, selected.manifest)]


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
    )
