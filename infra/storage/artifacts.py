"""Content-addressed files: what is too large for an event is written and fsynced before the event that names it."""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from agent0.errors import DependencyError, LogError, NotFoundError
from agent0.events.values import Artifact
from agent0.infra.storage.files import file_digest, whole_file
from agent0.ports.storage import Artifacts

_DIGEST = re.compile(r"[0-9a-f]{64}")


class FileArtifacts(Artifacts):
    """``<home>/artifacts/ab/cdef…``: the digest is the name, so the same content is stored once."""

    def __init__(self, home: Path) -> None:
        self._root = home / "artifacts"

    def put(self, data: bytes, media: str = "application/octet-stream") -> Artifact:
        """Store ``data`` under its sha256; on disk when this returns.

        Raises:
            DependencyError: the disk is full or the folder cannot be written.
        """
        artifact = Artifact(sha256=hashlib.sha256(data).hexdigest(), size=len(data), media=media)
        path = self.path(artifact)
        try:
            if not _touched(path):
                self._write(path, data)
        except OSError as error:
            fix = "Free disk space, or point AGENT0_HOME at a folder you can write to."
            raise DependencyError("artifact store", f"{path}: {error.strerror}.", fix) from error
        return artifact

    def get(self, artifact: Artifact) -> bytes:
        """The content of ``artifact``.

        Raises:
            NotFoundError: not in the store.
            LogError: the content does not match its digest.
        """
        try:
            data = self.path(artifact).read_bytes()
        except FileNotFoundError as error:
            fix = "Copy the folder artifacts/ of the machine that wrote it."
            raise NotFoundError(f"Artifact {artifact.sha256[:12]} is not in the store.", "", fix) from error
        if hashlib.sha256(data).hexdigest() != artifact.sha256:
            why = "The file was changed after it was written."
            raise LogError(f"Artifact {artifact.sha256[:12]} is damaged.", why, "Restore it from a backup.")
        return data

    def verify(self, artifact: Artifact) -> str:
        """What is wrong with the stored content: ``missing``, ``damaged``, or nothing. It is read in parts."""
        try:
            actual = file_digest(self.path(artifact))
        except FileNotFoundError:
            return "missing"
        return "" if actual == artifact.sha256 else "damaged"

    def stored(self) -> Iterator[tuple[Artifact, float]]:
        """Everything that is there, with the time (seconds since 1970) at which somebody last put it."""
        for path in sorted(self._root.glob("??/*")):
            digest = path.parent.name + path.name
            if _DIGEST.fullmatch(digest):
                status = path.stat()
                yield Artifact(sha256=digest, size=status.st_size), status.st_mtime

    def remove(self, artifact: Artifact, older_than: float) -> bool:
        """Take ``artifact`` away unless somebody put it again since ``older_than``; whether it is gone."""
        path = self.path(artifact)
        aside = path.with_name(f".{uuid4().hex}")
        path.rename(aside)  # who puts it from now on writes it anew
        if aside.stat().st_mtime >= older_than:
            aside.replace(path)
            return False
        aside.unlink()
        return True

    def discard(self, artifact: Artifact) -> None:
        """Delete what no event names, nor ever will."""
        self.path(artifact).unlink(missing_ok=True)

    def path(self, artifact: Artifact) -> Path:
        """Where the content lies.

        Raises:
            NotFoundError: the digest is none, so it can be no part of a path.
        """
        if not _DIGEST.fullmatch(artifact.sha256):
            raise NotFoundError(f"{artifact.sha256[:64]!r} is no sha256 digest.")
        return self._root / artifact.sha256[:2] / artifact.sha256[2:]

    def _write(self, path: Path, data: bytes) -> None:
        """A half-written file never has the final name, and a named file survives a power loss."""
        for folder in (self._root.parent, self._root, path.parent):  # transcripts are private
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with whole_file(path) as fresh:
            fresh.write_bytes(data)
        for folder in (path.parent, self._root):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _touched(path: Path) -> bool:
    """Whether it is there; its age begins anew: an event will name it soon."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True
