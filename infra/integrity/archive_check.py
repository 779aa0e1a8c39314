"""An archive read through: everything that is wrong with its events and artifacts, with its place."""

import hashlib
import json
import re
from dataclasses import dataclass, field

from agent0.errors import EarlierLogError
from agent0.events.values import Artifact
from agent0.infra.integrity.archive import Bodies, Manifest, artifact_name, bodies_of, crowded, stretches
from agent0.infra.integrity.archive_place import ArchivePlace, DamagedError
from agent0.infra.log.decoder import is_earlier
from agent0.provenance.artifact_refs import marks_at_once, may_name, named, named_within
from agent0.provenance.hash_chain import Chain

MOST_WRONG = 100
"""Segments after which the rest is not read."""


@dataclass
class _CheckedEvents:
    """What was read, and what is wrong."""

    chain: Chain
    due: int
    wrong: list[str] = field(default_factory=list)
    named: set[str] = field(default_factory=set)
    """Digests of artifacts that events name, and artifacts that these name."""


def examine(storage: ArchivePlace, manifest: Manifest) -> list[str]:
    """Everything that is wrong with the events and artifacts of ``storage``; nothing, where all is as it was."""
    findings = _CheckedEvents(Chain(last=manifest.first - 1, digest=manifest.before), manifest.first)
    _events(findings, storage, manifest)
    if not findings.wrong:
        findings.wrong += _against(findings.chain, manifest)
    for artifact in manifest.artifacts:
        _artifact(findings, storage, artifact)
    return findings.wrong or _unaccounted(findings.named, manifest)


def _events(findings: _CheckedEvents, storage: ArchivePlace, manifest: Manifest) -> None:
    failed = 0
    for segment in manifest.segments:
        if failed == MOST_WRONG:
            findings.wrong.append(
                f"{failed} segments cannot be read; those after event {findings.due - 1} were not tried"
            )
            return
        if segment.first != findings.due:
            findings.wrong.append(f"events {findings.due} to {segment.first - 1} are in no segment")
        bodies, wrong = bodies_of(storage, segment)
        if any(is_earlier(body) for _, body in bodies):
            raise EarlierLogError.of(f"The archive {storage.path}")
        findings.wrong += wrong or [str(problem) for seq, body in bodies for problem in findings.chain.feed(seq, body)]
        failed += bool(wrong)
        if wrong:
            findings.chain.skip(max(segment.last, findings.chain.last), "unreadable", "")
        findings.named |= _named(bodies)
        findings.due = segment.last + 1
    if findings.due != manifest.last + 1:
        findings.wrong.append(f"events {findings.due} to {manifest.last} are in no segment")


def _named(bodies: Bodies) -> set[str]:
    """Artifacts that these events name. A body that cannot be read names none: its seal says that it was changed."""
    out: set[str] = set()
    for _, body in bodies:
        if b'"media"' in body:
            try:
                out |= {artifact.sha256 for artifact in named(json.loads(body)["data"])}
            except (ValueError, LookupError, TypeError, RecursionError):
                continue
    return out


def _against(chain: Chain, manifest: Manifest) -> list[str]:
    if (chain.close(), tuple(chain.met)) != (manifest.after, manifest.seals):
        return ["its events are not those of its seals"]
    if stretches(chain.redacted) != stretches(_spread(manifest)):
        return ["what was left out is not what the manifest says"]
    return []


def _spread(manifest: Manifest) -> list[int]:
    pairs = [*zip(*[iter(manifest.redacted)] * 2, strict=True), *zip(*[iter(manifest.elsewhere)] * 2, strict=True)]
    return sorted(seq for first, last in pairs for seq in range(first, last + 1))


def _artifact(findings: _CheckedEvents, storage: ArchivePlace, artifact: Artifact) -> None:
    if not re.fullmatch("[0-9a-f]{64}", artifact.sha256):
        findings.wrong.append(f"{artifact.sha256[:64]!r} is no digest of an artifact")
        return
    name, rolling, kept = artifact_name(artifact), hashlib.sha256(), bytearray()
    try:
        for part in storage.parts(name, artifact.size):
            rolling.update(part)
            if may_name(artifact):
                kept += part
    except FileNotFoundError:
        findings.wrong.append(f"artifact {artifact.sha256[:12]} is missing")
        return
    except DamagedError as error:
        findings.wrong += error.found
        return
    if rolling.hexdigest() != artifact.sha256:
        findings.wrong.append(f"artifact {artifact.sha256[:12]} does not have its digest")
    elif may_name(artifact):
        _within(findings, artifact, bytes(kept))


def _within(findings: _CheckedEvents, artifact: Artifact, content: bytes) -> None:
    """What ``artifact`` names in turn."""
    if wrong := crowded(marks_at_once(artifact, content)):
        findings.wrong.append(f"artifact {artifact.sha256[:12]} has {wrong}")
    else:
        findings.named |= {other.sha256 for other in named_within(artifact, content)}


def _unaccounted(named: set[str], manifest: Manifest) -> list[str]:
    """Artifacts that are named, and neither carried nor said to be absent, beyond those withheld to be forgotten."""
    left = sorted(named - {artifact.sha256 for artifact in manifest.artifacts} - set(manifest.absent))
    why = "is named by its events, and neither in it nor said to be absent"
    return [f"artifact {digest[:12]} {why}" for digest in left] if len(left) > manifest.withheld else []
