"""Damage to a store that holds a finished run and experiments: whoever reads or writes is told."""

import asyncio
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.log.integrity import verify
from agent0.assembly.replay.rescore import Rescore, rescore_run
from agent0.assembly.runtime.read_models import catch_up
from agent0.events.base import Recorded, decode
from agent0.events.tasks import ResultVerified, RewardAssigned
from agent0.infra.integrity.seal_journal import Journal, SealFile, Stream
from agent0.infra.integrity.sealer import BrokenLogError, extent
from agent0.infra.log.event_log import LogInfo
from agent0.provenance.redaction import tombstone
from agent0.settings import Settings
from tests.pasts import events_of, keep, settings_at, tell
from tests.terminal import agent0 as call


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
    monkeypatch.setattr("agent0.infra.log.reader.HEARTBEAT_S", 0.2)
    yield


def blocks(held: Settings) -> list[Path]:
    return sorted((held.home / "nats").rglob("streams/A0_EV/msgs/*.blk"))


async def verified(held: Settings) -> list[str]:
    async with open_log(held, "reader") as log:
        return [difference.problem for difference in (await verify(held, log)).differences]


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


def lose(held: Settings, event: Recorded) -> None:
    """The store no longer gives ``event`` out."""
    for path in blocks(held):
        data = bytearray(path.read_bytes())
        if (at := data.find(event.id.encode())) >= 0:
            data[at] ^= 0xFF
            path.write_bytes(data)


def test_a_past_is_not_told_from_a_log_that_lacks_some_of_it(held: Settings) -> None:
    assert call("run", "list", "--json", home=held.home).json[0]["run"] == "r1"
    lost = next(r for r in events_of(held, "r1")[100:] if isinstance(r.event, ResultVerified))
    lose(held, lost)
    told = rf"Event {lost.seq}: not in the log.*agent0 events verify"
    with pytest.raises(BrokenLogError, match=told):
        asyncio.run(rescore_run(held, Rescore("r1", "look", None)))
    for command in (("run", "show", "r1", "--at", str(lost.seq + 1)), ("run", "check", "r1")):
        said = call(*command, home=held.home)
        assert said.code == 1 and re.search(told, said.err) and not said.out, (command, said)


def test_a_damaged_log_is_no_empty_one(held: Settings) -> None:
    assert call("run", "list", home=held.home).code == 0
    lose(held, events_of(held, "")[-1])  # where the tables stand
    said = call("run", "list", home=held.home)
    assert said.code == 1 and "The log has no event" in said.err and "events verify" in said.err
    shutil.rmtree(held.home / "nats" / "data")
    for command in (("run", "list"), ("events", "verify")):
        said = call(*command, home=held.home)
        assert said.code == 1 and "The log is gone." in said.err, (command, said)


def test_tables_stand_in_for_seals_that_were_noted_and_are_gone(held: Settings) -> None:
    async def carry() -> None:
        async with open_log(held, "reader") as log:
            await catch_up(held, log)

    asyncio.run(carry())
    noted = SealFile(held.home)
    before = noted.read().seals
    noted.path.unlink()
    assert before and asyncio.run(verified(held)) == ["gone"]

    async def write() -> None:
        async with open_log(held):
            pass

    asyncio.run(write())
    assert noted.read().seals == before and asyncio.run(verified(held)) == []


def forgotten(told: Recorded) -> Recorded:
    body = told.to_json()
    return decode(tombstone(json.loads(body), body, told.seq, "forgotten"), told.seq)


def test_what_was_redacted_is_left_out_and_said_to_be(tmp_path: Path) -> None:
    told, artifacts = tell()
    task = next(r.task for r in told if isinstance(r.event, ResultVerified))
    receipts = [r for r in told if isinstance(r.event, RewardAssigned)]
    gone = {r.id for r in told if r.task == task} | {receipts[-1].id}
    held = keep(tmp_path, [forgotten(r) if r.id in gone else r for r in told], artifacts)
    found = asyncio.run(rescore_run(held, Rescore("r1", "look", None)))
    assert (found["redacted"], found["only_after"], found["failed"]) == (len(gone), 0, 0)
    assert found["receipts"] == sum(r.id not in gone for r in receipts)
    checked = call("run", "check", "r1", "--json", home=held.home).json
    assert checked["same"] and checked["redacted"] == min(r.seq for r in told if r.id in gone)
    said = call("experiment", "rescore", "r1", home=held.home)
    assert said.code == 0 and f"{len(gone)} events of the run were redacted" in said.out
    assert f"from event {checked['redacted']} on are left out" in call("run", "check", "r1", home=held.home).out


def test_what_reached_further_when_it_was_noted_is_cut_off_though_nothing_sealed_it() -> None:
    known = Journal(streams=(Stream("now", last=10),))
    for last, found in ((10, []), (9, [("truncated", 10, 10)])):
        told = extent(LogInfo(1, last, 100, "now"), known, 0)
        assert [(one.problem, one.first, one.last) for one in told] == found
