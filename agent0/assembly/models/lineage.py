"""Part of the rim: from a checkpoint to the events that made it, and from a task to the checkpoints it touched."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict

from agent0.assembly.runtime.stamping import CodeRevision
from agent0.errors import LogError, NotFoundError, OperationError
from agent0.events.base import Recorded
from agent0.events.checkpoints import CheckpointPruned, CheckpointTrained
from agent0.events.experiments import DatasetSelected, ExperimentStarted
from agent0.events.runs import RunStarted
from agent0.events.tasks import ResultVerified, RewardAssigned, TaskAttempted, TaskProposed, TaskRequested
from agent0.events.values import Artifact
from agent0.infra.engine.adapter import same_weights, unpack
from agent0.infra.log.event_log import Log
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.ports.storage import Artifacts
from agent0.provenance.fork_history import read_branch
from agent0.training.manifest import dataset_sha, lineage_of

_PAST = ("RunStarted", "TaskRequested", "TaskProposed", "TaskAttempted", "ResultVerified", "RewardAssigned")


@dataclass(frozen=True)
class _ManifestContent:
    """What is read of a manifest: ids of events, the parent adapter's sha256, and the digest of the dataset."""

    events: frozenset[str] = frozenset()
    parent_adapter: str = ""
    dataset: str = ""


@dataclass
class _Made:
    """One checkpoint with what it says of itself."""

    stored: Recorded
    trained: CheckpointTrained
    manifest: _ManifestContent = _ManifestContent()


class TouchedCheckpoint(TypedDict):
    """A checkpoint whose dataset holds ``events`` events of a task; ``through`` names the parent whose does, if any."""

    run: str
    checkpoint: str
    role: str
    adapter: str
    events: int
    through: str


async def lineage(log: Log, artifacts: Artifacts, name: str) -> list[dict[str, object]]:
    """The checkpoint ``name`` (RUN/CHECKPOINT, or the beginning of its adapter's digest), then its parent, and so on
    to the base; each with everything it was made of, down to event ids.

    Raises:
        NotFoundError: there is no such checkpoint, or an artifact it names is gone.
        OperationError: more than one adapter begins so.
    """
    stored_events = [r async for r in log.read("", ["CheckpointTrained"])]
    record: _Made | None = _find_record(stored_events, name)
    chain = []
    while record is not None:
        chain.append(await _described(log, artifacts, record))
        record = _parent(stored_events, artifacts, record)
    return chain


async def checkpoint(log: Log, name: str) -> Recorded:
    """The ``CheckpointTrained`` of ``name``, named as for ``lineage``; errors likewise."""
    return _find_record([r async for r in log.read("", ["CheckpointTrained"])], name).stored


async def check_stored(log: Log, artifacts: FileArtifacts, name: str, adapter: Artifact | None) -> None:
    """The weights of ``name`` (RUN/CHECKPOINT) must be there and whole, where it has any.

    Raises:
        NotFoundError: they were pruned, or are gone.
        LogError: their file is damaged.
    """
    problem = await asyncio.to_thread(artifacts.verify, adapter) if adapter else ""
    if not adapter or not problem:
        return
    again = f"To make it again: agent0 experiment retrain {name.partition('/')[0]}"
    if problem == "damaged":
        why = f"The file of artifact {adapter.sha256[:12]} was changed after it was written."
        raise LogError(f"The adapter of {name} is damaged.", why, f"Restore it from a backup. {again}")
    async for stored in log.read("", ["CheckpointPruned"]):
        if isinstance(stored.event, CheckpointPruned) and stored.event.adapter == adapter.sha256:
            raise NotFoundError(f"{name} was pruned: its adapter was thrown away.", f"{stored.event.reason}.", again)
    fix = f"Copy the folder artifacts/ of the machine that wrote it. {again}"
    raise NotFoundError(f"The adapter of {name} is not in the store.", f"Artifact {adapter.sha256[:12]}.", fix)


def _find_record(stored_events: Iterable[Recorded], name: str) -> _Made:
    run, slash, checkpoint = name.partition("/")
    records = []
    for stored in stored_events:
        event = stored.event
        assert isinstance(event, CheckpointTrained)  # noqa: S101 - chosen so
        sha = event.adapter.sha256 if event.adapter else ""
        named = slash and (stored.run, event.checkpoint) == (run, checkpoint)
        if named or (not slash and len(name) >= 6 and sha.startswith(name.lower())):
            records.append(_Made(stored, event))
    if not records:
        fix = "Name RUN/CHECKPOINT, as in `agent0 run show`, or at least 6 letters of an adapter's digest."
        raise NotFoundError(f"There is no checkpoint {name[:80]!r}.", fix=fix)
    if len({record.trained.adapter for record in records}) > 1:
        raise OperationError(f"Several adapters begin with {name}.", fix="Give more of the digest.")
    return records[0]


def _parent(stored_events: Iterable[Recorded], artifacts: Artifacts, record: _Made) -> _Made | None:
    for stored in stored_events:
        event = stored.event
        if (
            isinstance(event, CheckpointTrained)
            and event.adapter
            and event.adapter.sha256 == record.manifest.parent_adapter
        ):
            return _Made(stored, event)
    return None


async def _described(log: Log, artifacts: Artifacts, record: _Made) -> dict[str, object]:
    trained, run = record.trained, record.stored.run
    if trained.manifest:
        record.manifest = _manifest(artifacts, trained.manifest)
    source = await _source(log, run)
    events = record.manifest.events
    past = [r async for r in read_branch(log, source, _PAST)]
    used = [r for r in past if r.id in events]
    tasks = sorted({r.task for r in used})
    selected = [r async for r in log.read(run, ["DatasetSelected"])]
    return {
        "run": run,
        "source": source,
        "checkpoint": trained.checkpoint,
        "role": trained.role,
        "parent": trained.parent,
        "adapter": trained.adapter.sha256 if trained.adapter else None,
        "event": record.stored.id,
        "code_rev": record.stored.code_rev,
        "commit": (code := CodeRevision.read(record.stored.code_rev)).commit,
        "dirty": code.dirty,
        "environment": trained.environment,
        "recipe": trained.recipe,
        "dataset": next((_dataset(r, trained) for r in selected if _dataset(r, trained)), ""),
        "dataset_agrees": _agrees(selected, trained, record.manifest),
        "events": [{"id": r.id, "seq": r.seq, "type": r.type, "task": r.task, "attempt": r.attempt} for r in used],
        "missing_events": len(events) - len(used),
        "tasks": tasks,
        **_versions(past, set(tasks)),
    }


def _manifest(artifacts: Artifacts, manifest: Artifact) -> _ManifestContent:
    content = json.loads(artifacts.get(manifest))
    return _ManifestContent(
        frozenset(content.get("events", ())), content.get("parent_adapter", ""), dataset_sha(content)
    )


def _dataset(stored: Recorded, trained: CheckpointTrained) -> str:
    event = stored.event
    same = isinstance(event, DatasetSelected) and event.checkpoint == trained.checkpoint
    return event.dataset if same and isinstance(event, DatasetSelected) else ""


def _agrees(selected: Iterable[Recorded], trained: CheckpointTrained, manifest: _ManifestContent) -> bool | None:
    """Whether the manifest is what the event says it is; None where no event says anything."""
    digests = [_dataset(stored, trained) for stored in selected if _dataset(stored, trained)]
    return manifest.dataset == digests[0] if digests and manifest.dataset else None


async def _source(log: Log, run: str) -> str:
    """The run whose tasks an experiment trained on; a run is its own."""
    async for stored in log.read(run, ["ExperimentStarted"]):
        if isinstance(stored.event, ExperimentStarted):
            return stored.event.run
    return run


def _versions(past: Iterable[Recorded], tasks: set[str]) -> dict[str, object]:
    """Who proposed and attempted them, who judged, what paid, and which code wrote it."""
    who: dict[str, Counter[str]] = {
        name: Counter() for name in ("teachers", "students", "verifiers", "rewards", "code")
    }
    config = ""
    for stored in past:
        event = stored.event
        if isinstance(event, RunStarted):
            config = event.config_sha
        if stored.task not in tasks:
            continue
        who["code"][stored.code_rev] += 1
        match event:
            case TaskRequested() | TaskProposed():
                who["teachers"][event.teacher] += isinstance(event, TaskProposed)
            case TaskAttempted():
                who["students"][event.student] += 1
            case ResultVerified():
                who["verifiers"][event.verifier] += 1
            case RewardAssigned():
                who["rewards"][event.set] += 1
    return {"config_sha": config, **{name: dict(sorted(versions.items())) for name, versions in who.items()}}


async def touched(log: Log, artifacts: Artifacts, run: str, task: str) -> list[TouchedCheckpoint]:
    """Every checkpoint, of any run or experiment, whose dataset or whose parents' holds an event of ``task``.

    Raises:
        NotFoundError: the run has no such task.
    """
    ids = {r.id async for r in read_branch(log, run, _PAST[1:]) if r.task == task}
    if not ids:
        raise NotFoundError(f"Run {run} has no task {task!r}.", fix=f"See: agent0 task list {run}")
    out: list[TouchedCheckpoint] = []
    through: set[str] = set()
    async for stored in log.read("", ["CheckpointTrained"]):
        event = stored.event
        if not isinstance(event, CheckpointTrained) or event.manifest is None or event.adapter is None:
            continue
        manifest = _manifest(artifacts, event.manifest)
        direct = len(ids & manifest.events)
        inherited = manifest.parent_adapter in through
        if direct or inherited:
            through.add(event.adapter.sha256)
            out.append(
                {
                    "run": stored.run,
                    "checkpoint": event.checkpoint,
                    "role": event.role,
                    "adapter": event.adapter.sha256,
                    "events": direct,
                    "through": event.parent if inherited else "",
                }
            )
    return out


def check_adapter(data: bytes) -> dict[str, object]:
    """What an adapter says of itself, whether its lineage digest follows from that, and whether its weights are those
    that it names (None: it names none), from the file alone.

    Raises:
        OperationError: it is no adapter, or says nothing of its lineage.
    """
    metadata = unpack(data).metadata
    if "lineage" not in metadata:
        raise OperationError("This adapter says nothing of its lineage.", "Another program made it.")
    return {**metadata, "agrees": lineage_of(metadata) == metadata["lineage"], "weights_agree": same_weights(data)}
