"""Part of the rim: what events name, against what the artifact store holds."""

import json
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypedDict

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.log.full_history import history
from agent0.assembly.log.integrity import seal_file
from agent0.assembly.runtime.read_models import reading_log
from agent0.errors import Agent0Error
from agent0.events.checkpoints import CheckpointPruned, CheckpointTrained
from agent0.events.runs import RunDeleted, RunStarted
from agent0.events.values import Artifact
from agent0.infra.log.artifacts.shared import SharedArtifacts
from agent0.infra.log.event_log import Log
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.provenance.artifact_refs import may_name, mentioned, named, named_within
from agent0.settings import Settings

YOUNG_S = 3600.0
"""Nothing younger is thrown away: it is written before the event that names it."""


@dataclass
class Named:
    """``named``: what is an artifact by its form. ``mentioned``: every digest in a text, whatever it means there."""

    named: dict[str, Artifact] = field(default_factory=dict)
    mentioned: set[str] = field(default_factory=set)
    pruned: set[str] = field(default_factory=set)
    """Thrown away by a person's word, so nobody misses them."""
    deleted: bool = False
    """Of a run that a person deleted."""
    parent: str = ""
    """The run that this one is a fork of."""
    trained: set[str] = field(default_factory=set)
    """Digests that its trainings made."""
    used: set[str] = field(default_factory=set)
    """Digests that its other events name."""
    events: int = 0


class StoreCheck(TypedDict):
    """How the store compares with the log: ``state`` is whole or broken; digests ``missing`` and ``damaged``."""

    state: str
    pruned: int
    events: int
    artifacts: int
    bytes: int
    missing: list[str]
    damaged: list[str]


async def verify(settings: Settings) -> StoreCheck:
    """Every artifact that events name, and what those name, read and compared with its digest."""
    store = artifact_store(settings)
    async with reading_log(settings) as log:
        by_run = await named_by_run(settings, log, store)
    kept, deleted = _together(by_run.values(), False), _together(by_run.values(), True)
    pruned = kept.pruned | deleted.pruned | (deleted.named.keys() - kept.named.keys())
    everything = {**deleted.named, **kept.named}
    states = {digest: store.verify(artifact) for digest, artifact in sorted(everything.items())}
    wrong = {
        digest: state for digest, state in states.items() if state and not (state == "missing" and digest in pruned)
    }
    return {
        "state": "broken" if wrong else "whole",
        "pruned": sum(states.get(digest) == "missing" for digest in pruned),
        "events": kept.events + deleted.events,
        "artifacts": len(everything),
        "bytes": sum(artifact.size for artifact in everything.values()),
        "missing": [digest for digest, state in wrong.items() if state == "missing"],
        "damaged": [digest for digest, state in wrong.items() if state == "damaged"],
    }


async def collect(settings: Settings, delete: bool = False) -> dict[str, int]:
    """Artifacts that no event of the log or of its archives names but those of deleted runs, old enough to be left
    over: counted, or deleted."""
    store, before = artifact_store(settings), time.time() - YOUNG_S
    there = list(store.stored())  # first: whatever is named from now on was put from now on, or is looked up again
    async with reading_log(settings) as log:
        names = _together((await named_by_run(settings, log, store)).values(), False)
    kept = names.mentioned | set(names.named)
    left = [(artifact, put) for artifact, put in there if artifact.sha256 not in kept]
    old = [artifact for artifact, put in left if put < before]
    gone = [artifact for artifact in old if store.remove(artifact, before)] if delete else []
    shared = {}
    if isinstance(store, SharedArtifacts):
        behind = await store.collect(kept, datetime.fromtimestamp(before, UTC), delete)
        shared = {"shared_unnamed": behind, "shared_deleted": behind if delete else 0}
    return {
        "stored": len(there),
        "stored_bytes": sum(artifact.size for artifact, _ in there),
        "named": len(there) - len(left),
        "young": len(left) - len(old),
        "unnamed": len(old),
        "unnamed_bytes": sum(artifact.size for artifact in old),
        "deleted": len(gone),
        "deleted_bytes": sum(artifact.size for artifact in gone),
        **shared,
    }


async def named_by_run(settings: Settings, log: Log, store: FileArtifacts) -> dict[str, Named]:
    """What the events of each run name, and what those artifacts name in turn. What the log itself keeps is under the
    name of no run."""
    runs, seals = defaultdict[str, Named](Named), seal_file(settings).read()
    runs[""].mentioned |= {archive.manifest for archive in seals.archives}
    first = seals.first - 1
    if await log.last_seq() > first:
        async for chunk in history(settings, log)(first, 0):
            for _, body, _ in chunk:
                _add(body, runs)
    for names in runs.values():
        _follow(names, store)
    return dict(runs)


def _add(body: bytes, runs: dict[str, Named]) -> None:
    raw = json.loads(body)
    of_run, data, kind = runs[str(raw.get("run", ""))], raw.get("data") or {}, raw.get("type")
    names = {artifact.sha256: artifact for artifact in named(data)}
    of_run.events += 1
    of_run.mentioned |= mentioned(body)
    of_run.named |= names
    match kind:
        case CheckpointPruned.__name__:
            of_run.pruned |= {data["adapter"], *filter(None, [data.get("optimizer")])}
        case RunDeleted.__name__:
            of_run.deleted = True
        case RunStarted.__name__:
            of_run.parent = data.get("parent") or ""
        case CheckpointTrained.__name__:
            of_run.trained |= names.keys()
        case _:
            of_run.used |= names.keys()


def _together(runs: Iterable[Named], deleted: bool) -> Named:
    """What all that are ``deleted``, or all others, name."""
    everything = Named()
    for names in runs:
        if names.deleted == deleted:
            everything.named |= names.named
            everything.mentioned |= names.mentioned
            everything.pruned |= names.pruned
            everything.events += names.events
    return everything


def _follow(names: Named, store: FileArtifacts) -> None:
    """What artifacts name in turn; one that is not there, or damaged, names nothing."""
    waiting, visited = list(names.named.values()), set(names.named)
    while waiting:
        artifact = waiting.pop()
        if not may_name(artifact):
            continue
        try:
            data = store.get(artifact)
        except Agent0Error:
            continue
        names.mentioned |= mentioned(data)
        new = {each.sha256: each for each in named_within(artifact, data) if each.sha256 not in visited}
        names.named |= new
        visited |= set(new)
        waiting += new.values()
