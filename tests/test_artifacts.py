"""The artifact store: what is put is stored once and checked when it is read."""

from pathlib import Path

import pytest

from agent0.errors import DependencyError, LogError, NotFoundError
from agent0.events.values import Artifact
from agent0.infra.storage.artifacts import FileArtifacts


async def test_artifacts_are_stored_once_and_checked(tmp_path: Path) -> None:
    store = FileArtifacts(tmp_path)
    made = store.put(b"weights", "application/x-tar")
    assert store.put(b"weights").sha256 == made.sha256 and store.get(made) == b"weights" and made.size == 7
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [made.sha256[2:]]
    store.path(made).write_bytes(b"weightS")
    with pytest.raises(LogError, match="damaged"):
        store.get(made)
    with pytest.raises(NotFoundError):
        store.get(Artifact(sha256="0" * 64, size=1, media="x"))
    with pytest.raises(NotFoundError, match="no sha256"):
        store.get(Artifact(sha256="../../etc/passwd", size=1, media="x"))


async def test_artifacts_on_a_full_disk_are_a_dependency_that_is_away() -> None:
    with pytest.raises(DependencyError, match="artifact store"):
        FileArtifacts(Path("/proc/nowhere")).put(b"x")
