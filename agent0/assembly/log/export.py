"""Part of the rim: the log, or one run of it, leaves as an archive."""

import json
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.log.integrity import seal_file
from agent0.assembly.runtime.stamping import code_rev, utc_now
from agent0.errors import LogError, NotFoundError
from agent0.events.alarms import LOG, LogSealed
from agent0.events.base import sha256
from agent0.events.runs import RunStarted
from agent0.events.values import Artifact
from agent0.infra.integrity.archive import ArchiveWriter, Manifest, manifest_of, stretches
from agent0.infra.integrity.archive_check import examine
from agent0.infra.integrity.archive_place import open_archive
from agent0.infra.integrity.sealer import begin, require
from agent0.infra.log.event_log import Log
from agent0.infra.log.restore import place_of
from agent0.infra.log.set_aside import require_filed
from agent0.ports.storage import Artifacts
from agent0.provenance.artifact_refs import may_name, named, named_within
from agent0.provenance.hash_chain import Chain
from agent0.provenance.redaction import Redaction, tombstone
from agent0.settings import Settings


@dataclass
class _Taken:
    """What an export has read so far."""

    chain: Chain
    begin: Chain
    runs: set[str] = field(default_factory=set)
    artifacts: dict[str, Artifact] = field(default_factory=dict)
    left_out: dict[str, Artifact] = field(default_factory=dict)
    """Named by what was redacted."""
    redacted: list[int] = field(default_factory=list)
    elsewhere: list[int] = field(default_factory=list)
    spent: set[str] = field(default_factory=set)
    """What of the redaction took something."""


@dataclass(frozen=True)
class ExportRequest:
    """What to export: only the events of ``runs`` where some are named, without what ``redaction`` takes out; with the
    ``settings`` of a backup, as TOML."""

    runs: frozenset[str] = frozenset()
    redaction: Redaction = field(default_factory=lambda: Redaction.of(()))
    settings: str = ""


async def export(settings: Settings, path: Path, run: str = "", redact: Sequence[str] = ()) -> dict[str, object]:
    """Write the log, or one run with its ancestors, to ``path``: a folder, or one file where it ends in ``.tar``.

    Raises:
        LogError: the log is damaged. NotFoundError: no such run. ConfigError: the path is taken, or there is nothing
            to redact.
    """
    redaction = Redaction.of(redact)
    async with open_log(settings, "reader") as log:
        runs = await _ancestry(log, run) if run else frozenset[str]()
        manifest, _ = await write(settings, log, path, ExportRequest(runs, redaction))
    return describe_archive(path, manifest)


def describe_archive(path: Path, manifest: Manifest) -> dict[str, object]:
    """Describe an archive: its extent, and counts of what it holds."""
    return {
        "path": str(path),
        "first": manifest.first,
        "last": manifest.last,
        "events": manifest.last - manifest.first + 1,
        "segments": len(manifest.segments),
        "seals": len(manifest.seals),
        "runs": len(manifest.runs),
        "artifacts": len(manifest.artifacts),
        "absent": list(manifest.absent),
        "redacted": _count(manifest.redacted),
        "elsewhere": _count(manifest.elsewhere),
        "withheld": manifest.withheld,
        "sha256": sha256(manifest.to_json()),
    }


def _count(pairs: Sequence[int]) -> int:
    return sum(last - first + 1 for first, last in zip(pairs[::2], pairs[1::2], strict=True))


async def _ancestry(log: Log, run: str) -> frozenset[str]:
    """``run``, and the runs that it is a fork of."""
    ancestors: set[str] = set()
    while run and run not in ancestors:
        ancestors.add(run)
        begins = [r.event async for r in log.read(run, ("RunStarted",))]
        if not begins and not await log.last_seq(run):
            raise NotFoundError(f"There is no run {run!r}.", fix="See: agent0 run list")
        run = next((event.parent for event in begins if isinstance(event, RunStarted)), "")
    return frozenset(ancestors)


async def write(settings: Settings, log: Log, path: Path, request: ExportRequest) -> tuple[Manifest, bytes]:
    """Write what ``request`` asks of the log to ``path``; its manifest, and that as it was written."""
    begin, until = await _extent(settings, log, request.runs)
    with ArchiveWriter(path) as writer:
        taken = await _take(log, begin, until, request, writer.add)
        segments = writer.close()
        store = artifact_store(settings)
        artifacts, absent, withheld = _carried(store, taken, request.redaction, writer.add_artifact)
        request.redaction.require_found(taken.spent)
        manifest = Manifest(
            created=(await log.info()).created,
            made=utc_now().isoformat(),
            code_rev=code_rev(),
            first=begin.last + 1,
            last=until,
            before=begin.digest,
            after=taken.chain.close(),
            segments=segments,
            seals=tuple(taken.chain.met),
            runs=tuple(sorted(taken.runs - {LOG})),
            artifacts=artifacts,
            absent=absent,
            redacted=stretches(taken.redacted),
            elsewhere=stretches(taken.elsewhere),
            withheld=withheld,
            settings=request.settings,
        )
        return manifest, writer.finish(manifest)


async def _extent(settings: Settings, log: Log, runs: frozenset[str]) -> tuple[Chain, int]:
    """Where an export begins, as a chain, and its last sequence: for one run from the seal before its first event to
    the one behind its last."""
    whole, end = begin(seal_file(settings).read(), whole=True), await log.last_seq()
    if not runs:
        return whole, end
    first, last = end, 0
    for run in runs:
        async with aclosing(log.read(run)) as events:  # type: ignore[type-var]
            first = min(first, (await anext(events)).seq)
        last = max(last, await log.last_seq(run))
    async for stored in log.read(LOG, (LogSealed.__name__,)):
        if isinstance(stored.event, LogSealed):
            if stored.event.last < first:
                whole = Chain(last=stored.event.last, digest=stored.event.sha256)
            elif stored.event.last >= last:
                return whole, stored.seq
    return whole, end


async def _take(
    log: Log, begin: Chain, until: int, request: ExportRequest, add: Callable[[int, bytes], None]
) -> _Taken:
    taken = _Taken(Chain(last=begin.last, digest=begin.digest), begin)
    if until <= begin.last:
        return taken
    async with aclosing(log.read_stored(begin.last, until)) as chunks:  # type: ignore[type-var]
        async for chunk in chunks:
            for seq, body, subject in chunk:
                require_filed(seq, body, subject)
                require(taken.chain.feed(seq, body))
                add(seq, _kept(taken, request, seq, body))
    return taken


def _kept(taken: _Taken, request: ExportRequest, seq: int, body: bytes) -> bytes:
    """``body``, or what stands for it."""
    place_of(seq, body)  # what could not be brought back is not carried away
    raw = json.loads(body)
    run, kind = raw["run"], raw["type"]
    if kind == "EventRedacted":  # left out of the archive that this log was imported from
        (taken.redacted if run != LOG else taken.elsewhere).append(seq)
        return body
    if request.runs and run not in request.runs and run != LOG:
        taken.elsewhere.append(seq)
        return tombstone(raw, body, seq, "elsewhere")
    artifacts = {artifact.sha256: artifact for artifact in named(raw["data"])}
    if by := request.redaction.takes(raw, body):
        taken.spent |= by
        taken.redacted.append(seq)
        taken.left_out |= artifacts
        return tombstone(raw, body, seq, "forgotten")
    taken.runs.add(run)
    taken.artifacts |= artifacts
    return body


def _carried(
    store: Artifacts, taken: _Taken, redaction: Redaction, add: Callable[[Artifact, bytes], None]
) -> tuple[tuple[Artifact, ...], tuple[str, ...], int]:
    """Carry what the events name, and what that names: (carried, absent, number withheld)."""
    carried: dict[str, Artifact] = {}
    absent: set[str] = set()
    withheld = set(taken.left_out) - set(taken.artifacts)
    waiting = list(taken.artifacts.values())
    while waiting:
        artifact = waiting.pop()
        if artifact.sha256 in {*carried, *absent, *withheld}:
            continue
        try:
            data = store.get(artifact)
        except (NotFoundError, LogError):
            absent.add(artifact.sha256)
            continue
        if by := redaction.finds(data):
            taken.spent |= by
            withheld.add(artifact.sha256)
            continue
        carried[artifact.sha256] = artifact.model_copy(update={"size": len(data)})
        add(artifact, data)
        waiting += named_within(artifact, data) if may_name(artifact) else ()
    return tuple(carried[key] for key in sorted(carried)), tuple(sorted(absent)), len(withheld)


def look_into(path: Path) -> tuple[dict[str, object], Sequence[str]]:
    """An archive as JSON values, and everything that is wrong with it."""
    storage = open_archive(path)
    manifest = manifest_of(storage)
    wrong = examine(storage, manifest)
    return {"state": "broken" if wrong else "whole", **describe_archive(path, manifest)}, wrong
