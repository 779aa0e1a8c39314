"""A work folder as a value. Its manifest, an artifact, names each file's content by digest: equal folders have equal
manifests, unchanged files are stored once, and a rollback names an older manifest."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agent0.events.base import sha256
from agent0.events.values import Artifact
from agent0.ports.storage import Artifacts

Files = Mapping[str, bytes]
MEDIA = "application/vnd.agent0.manifest+json"
MOST_FILES, MOST_BYTES = 1500, 60 << 20
"""What a work folder may hold between calls."""
LONGEST_NAME, LONGEST_PART = 1000, 255
"""Characters of a path, bytes between two slashes."""
_PAGE = 4096
_ANSWER = re.compile(r"files ([0-9a-f]{64}) (\d{1,9})")


@dataclass(frozen=True)
class FileChange:
    """One difference between two folders, with sizes in bytes (None where there is no such file)."""

    path: str
    kind: Literal["added", "removed", "changed"]
    before: int | None
    after: int | None


def is_inside(name: str) -> bool:
    """Whether ``name`` is a relative path that stays inside a work folder, and that a file system takes."""
    try:
        parts = name.encode().split(b"/")
    except UnicodeEncodeError:
        return False
    fits = all(part not in (b"", b".", b"..") and len(part) <= LONGEST_PART for part in parts)
    return fits and "\0" not in name and len(name) < LONGEST_NAME


def kept(files: Files) -> tuple[dict[str, bytes], int]:
    """Which of ``files`` can be carried to the next call, in name order, and how many cannot.

    Names that are no text arrive escaped, so one may be too long by now, or be a file where another has a folder.
    """
    out: dict[str, bytes] = {}
    room = MOST_BYTES
    for name in sorted(files):
        size = -(-len(files[name]) // _PAGE) * _PAGE  # what it takes, however much of it was a hole
        above = (name[:at] for at, sign in enumerate(name) if sign == "/")
        if is_inside(name) and len(out) < MOST_FILES and size <= room and not any(folder in out for folder in above):
            out[name] = files[name]
            room -= size
    return out, len(files) - len(out)


def fingerprint(files: Files) -> str:
    """A digest of names and contents; empty for an empty folder."""
    if not files:
        return ""
    return sha256(json.dumps([[name, sha256(data)] for name, data in sorted(files.items())]))


def inventory(files: Files) -> dict[str, Artifact]:
    """The entries of a folder as they will be once it is stored, without storing it."""
    return {name: Artifact(sha256=sha256(data), size=len(data)) for name, data in sorted(files.items())}


def save(files: Files, artifacts: Artifacts) -> Artifact | None:
    """Store a folder; returns its manifest, None for an empty one."""
    if not files:
        return None
    entries = {name: artifacts.put(files[name]) for name in sorted(files)}
    body = json.dumps({name: [a.sha256, a.size] for name, a in entries.items()}, ensure_ascii=True)
    return artifacts.put(body.encode(), MEDIA)


def entries(manifest: Artifact | None, artifacts: Artifacts) -> dict[str, Artifact]:
    """Files of a stored folder by name.

    Raises:
        NotFoundError, LogError: the manifest is missing or damaged.
    """
    if manifest is None:
        return {}
    return {
        name: Artifact(sha256=digest, size=size) for name, (digest, size) in json.loads(artifacts.get(manifest)).items()
    }


def load(manifest: Artifact | None, artifacts: Artifacts) -> dict[str, bytes]:
    """Read a stored folder, as ``save`` was given it.

    Raises:
        NotFoundError, LogError: manifest or a file is missing or damaged.
    """
    return {name: artifacts.get(entry) for name, entry in entries(manifest, artifacts).items()}


def difference(before: Mapping[str, Artifact], after: Mapping[str, Artifact]) -> list[FileChange]:
    """List what changed between two stored folders, in name order."""
    out: list[FileChange] = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old != new:
            kind: Literal["added", "removed", "changed"] = "changed" if old and new else "added" if new else "removed"
            out.append(FileChange(name, kind, old.size if old else None, new.size if new else None))
    return out


def as_answer(manifest: Artifact | None) -> str | None:
    """Write a work folder as an answer; None for an empty one."""
    return f"files {manifest.sha256} {manifest.size}" if manifest else None


def answered_folder(answer: str | None) -> Artifact | None:
    """The work folder that an answer names; None where it names none."""
    match = _ANSWER.fullmatch(answer or "")
    return Artifact(sha256=match[1], size=int(match[2]), media=MEDIA) if match else None


def copy_folder(manifest: Artifact, source: Artifacts, target: Artifacts) -> None:
    """Store a folder of ``source`` in ``target``, too; errors as for ``load``."""
    for entry in entries(manifest, source).values():
        target.put(source.get(entry))
    target.put(source.get(manifest), MEDIA)
