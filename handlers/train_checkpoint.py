"""Turns an iteration's rewarded trajectories into a new adapter."""

import json

from agent0.collecting import collect
from agent0.errors import OperationError
from agent0.ports import Artifacts, History, Trainers, TrainJob
from agent0.run import RunState
from agent0.training import Selection, learning_rate, select
from events.base import Event
from events.checkpoints import CheckpointTrained, TrainingRequested
from handlers import on


@on(TrainingRequested, in_flight=1, long=True)
async def train_checkpoint(
    event: TrainingRequested, run: RunState, trainers: Trainers, history: History, artifacts: Artifacts
) -> list[Event]:
    """Without contrast in the rewards there is nothing to learn: the parent stays, and the event says why."""
    plan = run.config
    deeds, replay = await collect(run.run, event, history, artifacts)
    chosen = select(event.role, deeds, replay, author=event.parent, config=plan, seed=event.seed)
    recipe = plan.training.student if event.role == "student" else plan.training.teacher
    settings = recipe.model_dump() | {"lr": learning_rate(recipe, event.iteration, plan.iterations)}
    actor = plan.student if event.role == "student" else plan.teacher
    settings["temperature"] = actor.temperature
    if not chosen.samples:
        return [_trained(event, chosen, settings)]
    manifest = artifacts.put(json.dumps({"events": chosen.used, "until": event.until}).encode(), "application/json")
    job = TrainJob(
        chosen.samples,
        chosen.replay,
        event.parent_adapter,
        event.seed,
        settings,
        {"run": run.run, "checkpoint": event.checkpoint, "parent": event.parent, "manifest": manifest.sha256},
    )
    made = await trainers.open(actor).train(job)
    if made.adapter.size == 0:
        raise OperationError("The trainer returned an empty adapter.")
    return [
        _trained(event, chosen, settings).model_copy(
            update={
                "adapter": made.adapter,
                "manifest": manifest,
                "metrics": made.metrics,
                "environment": made.environment,
                "wall_s": made.metrics.get("seconds", 0.0),
            }
        )
    ]


def _trained(event: TrainingRequested, chosen: Selection, settings: dict[str, object]) -> CheckpointTrained:
    return CheckpointTrained(
        checkpoint=event.checkpoint,
        role=event.role,
        iteration=event.iteration,
        parent=event.parent,
        adapter=None,
        samples=len(chosen.samples),
        replay=len(chosen.replay),
        skipped=chosen.skipped,
        recipe=settings,
    )
