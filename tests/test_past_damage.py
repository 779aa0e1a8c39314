"""Damage to a store that holds a finished run and experiments: whoever reads or writes is told, whatever is asked for."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent0.assembly import open_log
from agent0.assembly_experiments import Rescore, rescore_run
from agent0.assembly_seals import verify
from agent0.settings import Settings
from infra.seals import BrokenLogError
from tests.pasts import keep, settings_at, tell


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a run; nobody changes it."""
    folder = tmp_path_factory.mktemp("kept")
    keep(folder, *tell())
    return folder


@pytest.fixture
def held(kept: Path, tmp_path: Path) -> Settings:
    return settings_at(Path(shutil.copytree(kept, tmp_path / "home", symlinks=True)))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Heartbeats sooner: silence is what a damaged block sounds like."""
    monkeypatch.setattr("infra.log_read.HEARTBEAT_S", 0.2)
    yield


def blocks(held: Settings) -> list[Path]:
    return sorted((held.home / "nats").rglob("streams/A0_EV/msgs/*.blk"))


async def verified(held: Settings) -> list[str]:
    async with open_log(held, "reader") as log:
        return [one.problem for one in (await verify(held, log)).differences]


def test_an_experiment_that_is_cut_off_is_missed(held: Settings) -> None:
    asyncio.run(rescore_run(held, Rescore("r1", "again", None, commit=True)))
    assert asyncio.run(verified(held)) == []
    last = blocks(held)[-1]
    last.write_bytes(last.read_bytes()[:-3000])
    (last.parent / "index.db").unlink()
    assert asyncio.run(verified(held)) == ["truncated"]

    async def write() -> None:
        async with open_log(held):
            raise AssertionError("it went on")

    with pytest.raises(BrokenLogError, match="the log ends before them; the data folder has noted"):
        asyncio.run(write())
