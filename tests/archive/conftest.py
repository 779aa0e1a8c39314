"""A log that is filled and sealed, its archive, and one whose runs are over."""

import asyncio
import shutil
from pathlib import Path

import pytest

from agent0.assembly.log.export import export
from agent0.infra.integrity import archive as archives
from agent0.settings import Settings
from tests.archive.logs import fill, settings_of


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Nobody changes it."""
    return asyncio.run(fill(settings_of(tmp_path_factory.mktemp("filled"))))


@pytest.fixture(scope="session")
def exported(filled: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "log"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archives, "EVENTS", 20)
        found = asyncio.run(export(filled, path))
    assert found["artifacts"] == 4 and found["absent"] and found["segments"] > 1, found
    return path


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "EVENTS", 20)


@pytest.fixture
def over(filled: Settings, tmp_path: Path) -> Settings:
    """A copy of the filled home."""
    held = settings_of(tmp_path / "home")
    shutil.copytree(filled.home, held.home, symlinks=True)
    return held
