"""Stores an attempt's work folders between its calls: in the artifact store, or in memory where nobody
reads them later."""

import asyncio
from collections.abc import Iterator, Mapping
from functools import cached_property

from agent0.errors import NotFoundError
from agent0.events.base import sha256
from agent0.events.values import Artifact
from agent0.ports.storage import Artifacts
from agent0.tools.snapshots import Files, entries, load, save


class Scratch:
    """An in-memory artifact store for attempts whose folders no event names; what was not put here is read from
    ``behind``."""

    def __init__(self, behind: Artifacts | None = None) -> None:
        self._held: dict[str, bytes] = {}
        self._behind = behind

    def put(self, data: bytes, media: str = "application/octet-stream") -> Artifact:
        """Hold ``data`` in memory under its sha256."""
        artifact = Artifact(sha256=sha256(data), size=len(data), media=media)
        self._held[artifact.sha256] = data
        return artifact

    def get(self, artifact: Artifact) -> bytes:
        """The content.

        Raises:
            NotFoundError: it was never put here, and is not ``behind``.
        """
        if artifact.sha256 not in self._held and self._behind:
            return self._behind.get(artifact)
        if artifact.sha256 not in self._held:
            raise NotFoundError(f"Artifact {artifact.sha256[:12]} is not of this attempt.")
        return self._held[artifact.sha256]

    def discard(self, artifact: Artifact) -> None:
        """Let go of the content."""
        self._held.pop(artifact.sha256, None)


class StoredFolder(Mapping[str, bytes]):
    """A stored work folder, read lazily: an attempt may go back to any of its folders, and seldom does."""

    def __init__(self, manifest: Artifact | None, artifacts: Artifacts) -> None:
        self.manifest, self._artifacts = manifest, artifacts

    @cached_property
    def _entries(self) -> dict[str, Artifact]:
        return entries(self.manifest, self._artifacts)

    def sizes(self) -> dict[str, int]:
        """Bytes by name."""
        return {name: artifact.size for name, artifact in self._entries.items()}

    def __getitem__(self, name: str) -> bytes:
        return self._artifacts.get(self._entries[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class Keeper:
    """Stores an attempt's work folder whenever it changed; ``work`` is the manifest of the last one."""

    def __init__(self, artifacts: Artifacts, work: Artifact | None, files: Files) -> None:
        self.work = work
        self._artifacts, self._files = artifacts, files

    async def keep(self, files: Files) -> StoredFolder:
        """Store ``files`` off the event loop, as a folder may be large; returns the stored folder.

        Raises:
            DependencyError: it cannot be stored.
        """
        if isinstance(files, StoredFolder):
            self.work = files.manifest
        elif files is not self._files and files != self._files:
            self.work = await asyncio.to_thread(save, files, self._artifacts)
        self._files = files
        return StoredFolder(self.work, self._artifacts)


async def opened(work: Artifact | None, artifacts: Artifacts) -> dict[str, bytes]:
    """Read a stored work folder, off the event loop.

    Raises:
        NotFoundError, LogError: it is missing or damaged.
    """
    return await asyncio.to_thread(load, work, artifacts) if work else {}
