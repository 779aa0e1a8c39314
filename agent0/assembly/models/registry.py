"""Part of the rim: a person's word on checkpoints, as events; and adapters that are no longer needed."""

import time
from collections.abc import Sequence
from typing import TypedDict

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.models.lineage import check_stored, checkpoint
from agent0.assembly.replay.past_states import state_at
from agent0.assembly.replay.state_snapshots import state_snapshots
from agent0.assembly.runtime.stamping import recorded
from agent0.errors import NotFoundError, OperationError
from agent0.evaluation.checkpoint_registry import check_promotion, kept, promotion, rollback
from agent0.events.base import Recorded
from agent0.events.checkpoints import (
    CheckpointEvaluated,
    CheckpointPruned,
    CheckpointTrained,
    EvaluationRequested,
    TrainingRequested,
)
from agent0.events.values import Artifact
from agent0.infra.log.event_log import Log
from agent0.settings import Settings


class PrunedAdapter(TypedDict):
    """The checkpoint that an adapter was of, and the adapter's size."""

    checkpoint: str
    bytes: int


class Pruning(TypedDict):
    """The adapters of a run that were thrown away, or would be where it is not ``committed``; their size together."""

    run: str
    pruned: Sequence[PrunedAdapter]
    bytes: int
    committed: bool


async def promote(settings: Settings, name: str, reason: str) -> Recorded:
    """Make ``name`` (RUN/CHECKPOINT or digest) its run's student; errors as ``promoted``."""
    async with open_log(settings) as log:
        begun = await promoted(settings, log, name, reason)
        await log.append([begun])
    return begun


async def promoted(settings: Settings, log: Log, name: str, reason: str) -> Recorded:
    """The event that makes ``name`` (RUN/CHECKPOINT or digest) its run's student, to be appended.

    Raises:
        NotFoundError: no such checkpoint, or its adapter was pruned or is gone.
        LogError: its adapter is damaged.
        OperationError: it cannot be, or was never scored.
    """
    stored = await checkpoint(log, name)
    trained = stored.event
    assert isinstance(trained, CheckpointTrained)  # noqa: S101 - that is what ``checkpoint`` finds
    state = await state_at(log, stored.run, snapshots=state_snapshots(settings, log))
    check_promotion(state, trained)
    await check_stored(log, artifact_store(settings), f"{stored.run}/{trained.checkpoint}", trained.adapter)
    event = promotion(state, trained, await _accuracy(log, stored.run, trained.checkpoint), reason)
    return recorded(stored.run, event)


async def _accuracy(log: Log, run: str, name: str) -> float:
    scores = [r.event async for r in log.read(run, ["CheckpointEvaluated"])]
    accuracies = [
        event.accuracy
        for event in scores
        if isinstance(event, CheckpointEvaluated) and event.checkpoint == name and event.split == "validation"
    ]
    if not accuracies:
        raise OperationError(f"{name} was never scored on validation.", "A promotion says how good it is.")
    return accuracies[-1]


async def go_back(settings: Settings, run: str, to: str, reason: str) -> Recorded:
    """Make the earlier checkpoint ``to`` the student of ``run`` again; errors as ``rolled_back``."""
    async with open_log(settings) as log:
        begun = await rolled_back(settings, log, run, to, reason)
        await log.append([begun])
    return begun


async def rolled_back(settings: Settings, log: Log, run: str, to: str, reason: str) -> Recorded:
    """The event that makes the earlier checkpoint ``to`` the student of ``run`` again, to be appended.

    Raises:
        NotFoundError: no such run, or it was never promoted there.
        OperationError: it is the student already.
    """
    state = await state_at(log, run, snapshots=state_snapshots(settings, log))
    return recorded(run, rollback(state, to, reason))


async def prune(settings: Settings, run: str, reason: str, commit: bool) -> Pruning:
    """Throw away what a run that is over no longer needs: adapters of students that it did not go on with and that
    nothing else names. Without ``commit``, only say which.

    Raises:
        NotFoundError: no such run.
        OperationError: it is not over.
    """
    store = artifact_store(settings)
    async with open_log(settings) as log:
        state = await state_at(log, run, snapshots=state_snapshots(settings, log))
        if state.status not in ("finished", "cancelled"):
            raise OperationError(f"Run {run} is {state.status}.", "It may still need its adapters.", "Prune it later.")
        needed = {checkpoint.adapter.sha256 for checkpoint in kept(state) if checkpoint.adapter} | await _parents(
            log, run
        )
        gone = [
            training
            for training in await _trained(log, run)
            if training.adapter and training.adapter.sha256 not in needed
        ]
        left = [training for training in gone if training.adapter and not store.verify(training.adapter)]
        if commit and left:
            await log.append([recorded(run, _pruned(training, reason)) for training in left])
            for training in left:
                for artifact in _weights(training):
                    if not store.verify(artifact):
                        store.remove(artifact, time.time())
    rows: list[PrunedAdapter] = [
        {"checkpoint": training.checkpoint, "bytes": sum(artifact.size for artifact in _weights(training))}
        for training in left
    ]
    return {"run": run, "pruned": rows, "bytes": sum(row["bytes"] for row in rows), "committed": commit}


async def _trained(log: Log, run: str) -> list[CheckpointTrained]:
    events = [r.event async for r in log.read(run, ["CheckpointTrained"])]
    return [event for event in events if isinstance(event, CheckpointTrained) and event.role == "student"]


async def _parents(log: Log, run: str) -> set[str]:
    """Digests that any other run, fork or experiment asked to begin from, and those of the same run's requests."""
    digests: set[str] = set()
    async for stored in log.read("", ["TrainingRequested", "EvaluationRequested", "CheckpointTrained"]):
        match stored.event:
            case TrainingRequested(parent_adapter=artifact) if artifact:
                digests.add(artifact.sha256)
            case EvaluationRequested(adapter=artifact) if artifact and stored.run != run:
                digests.add(artifact.sha256)
            case CheckpointTrained(adapter=artifact) if artifact and stored.run != run:
                digests.add(artifact.sha256)
    return digests


def _weights(training: CheckpointTrained) -> list[Artifact]:
    """Its adapter, and what the optimizer remembers of that."""
    return [artifact for artifact in (training.adapter, training.optimizer) if artifact]


def _pruned(training: CheckpointTrained, reason: str) -> CheckpointPruned:
    if training.adapter is None:
        raise NotFoundError(f"{training.checkpoint} has no adapter.")
    why = reason or "its run did not go on with it"
    return CheckpointPruned(
        checkpoint=training.checkpoint,
        adapter=training.adapter.sha256,
        size=training.adapter.size,
        reason=why,
        optimizer=training.optimizer.sha256 if training.optimizer else "",
    )
