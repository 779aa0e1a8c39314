"""Part of the rim: what events name, against what the artifact store holds."""

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent0.assembly.log.full_history import history
from agent0.assembly.runtime.read_models import reading_log
from agent0.provenance.artifact_refs import may_name, mentioned, named, named_within
from agent0.settings import Settings
from events.checkpoints import CheckpointPruned
from events.values import Artifact

if TYPE_CHECKING:
    from infra.log.event_log import Log
    from infra.storage.artifacts import FileArtifacts

YOUNG_S = 3600.0
"""Nothing younger is thrown away: it is written before the event that names it."""


@dataclass
class _Named:
    """``named``: what is an artifact by its form. ``mentioned``: every digest in a text, whatever it means there."""

    named: dict[str, Artifact] = field(default_factory=dict)
    mentioned: set[str] = field(default_factory=set)
    pruned: set[str] = field(default_factory=set)
    """Thrown away by a person's word, so nobody misses them."""
    events: int = 0


async def verify(settings: Settings) -> dict[str, Any]:
    """Every artifact that events name, and what those name, read and compared with its digest."""
    store = _store(settings)
    async with reading_log(settings) as log:
        found = await _named(settings, log, store)
    states = {digest: store.verify(one) for digest, one in sorted(found.named.items())}
    wrong = {
        digest: word for digest, word in states.items() if word and not (word == "missing" and digest in found.pruned)
    }
    return {
        "state": "broken" if wrong else "whole",
        "pruned": len(found.pruned),
        "events": found.events,
        "artifacts": len(found.named),
        "bytes": sum(one.size for one in found.named.values()),
        "missing": [digest for digest, word in wrong.items() if word == "missing"],
        "damaged": [digest for digest, word in wrong.items() if word == "damaged"],
    }


async def collect(settings: Settings, delete: bool = False) -> dict[str, Any]:
    """Artifacts that no event of the log or of its archives names, old enough to be left over: counted, or deleted."""
    store, before = _store(settings), time.time() - YOUNG_S
    there = list(store.stored())  # first: whatever is named from now on was put from now on, or is looked up again
    async with reading_log(settings) as log:
        found = await _named(settings, log, store)
    kept = found.mentioned | set(found.named)
    left = [(one, put) for one, put in there if one.sha256 not in kept]
    old = [one for one, put in left if put < before]
    gone = [one for one in old if store.remove(one, before)] if delete else []
    return {
        "stored": len(there),
        "stored_bytes": sum(one.size for one, _ in there),
        "named": len(there) - len(left),
        "young": len(left) - len(old),
        "unnamed": len(old),
        "unnamed_bytes": sum(one.size for one in old),
        "deleted": len(gone),
        "deleted_bytes": sum(one.size for one in gone),
    }


def _store(settings: Settings) -> "FileArtifacts":
    from infra.storage.artifacts import FileArtifacts

    return FileArtifacts(settings.home)


async def _named(settings: Settings, log: "Log", store: "FileArtifacts") -> _Named:
    import json

    from agent0.assembly.log.integrity import seal_file

    found, known = _Named(), seal_file(settings).read()
    found.mentioned |= {one.manifest for one in known.archives}
    first = known.first - 1
    async for chunk in history(settings, log)(first, 0) if await log.last_seq() > first else _none():
        for _, body in chunk:
            found.events += 1
            found.mentioned |= mentioned(body)
            raw = json.loads(body)
            found.named |= {one.sha256: one for one in named(raw.get("data"))}
            if raw.get("type") == CheckpointPruned.__name__:
                found.pruned.add(raw["data"]["adapter"])
    _follow(found, store)
    return found


async def _none() -> Any:
    return
    yield


def _follow(found: _Named, store: "FileArtifacts") -> None:
    """What artifacts name in turn; one that is not there, or damaged, names nothing."""
    from agent0.errors import Agent0Error

    waiting, seen = list(found.named.values()), set(found.named)
    while waiting:
        one = waiting.pop()
        if not may_name(one):
            continue
        try:
            data = store.get(one)
        except Agent0Error:
            continue
        found.mentioned |= mentioned(data)
        new = {each.sha256: each for each in named_within(one, data) if each.sha256 not in seen}
        found.named |= new
        seen |= set(new)
        waiting += new.values()
