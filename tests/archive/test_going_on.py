"""A log that is full goes on under the same numbers, and nothing that a fact names is thrown away."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_check import collect
from agent0.assembly.log.artifact_check import verify as verify_artifacts
from agent0.assembly.log.full_history import history
from agent0.assembly.log.integrity import verify
from agent0.assembly.log.restore import bring
from agent0.assembly.log.rollover import archive
from agent0.assembly.log.rollover_recovery import finish
from agent0.assembly.routing.billing import open_ledger
from agent0.assembly.runtime import doctor
from agent0.assembly.runtime.read_models import catch_up, open_views
from agent0.assembly.validate.requirements import examine as looked_at
from agent0.errors import BudgetExhaustedError, NotFoundError, OperationError
from agent0.events.runs import RunFinished, RunStarted
from agent0.events.values import Artifact
from agent0.infra.gateway.ledger import Account
from agent0.infra.integrity import archive as archives
from agent0.infra.integrity.archive import Manifest, manifest_of
from agent0.infra.integrity.archive_check import examine
from agent0.infra.integrity.archive_place import open_archive
from agent0.infra.integrity.seal_journal import SealFile
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.provenance.artifact_refs import named, named_within
from agent0.settings import Settings
from tests.archive.logs import bodies, flipped, naming, seal, settings_of, sound, sums, told
from tests.terminal import agent0 as call


@pytest.mark.parametrize("killed", [pytest.param(False, marks=pytest.mark.slow), True])
async def test_an_archived_log_goes_on_under_the_same_numbers(
    over: Settings, filled: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    before, path = await bodies(over), tmp_path / "old.tar"
    if killed:
        monkeypatch.setattr("agent0.assembly.log.rollover.finish", _nothing)
    await archive(over, path)
    monkeypatch.undo()
    monkeypatch.setattr(archives, "EVENTS", 20)
    async with open_log(over) as log:
        info = await log.info()
        assert (info.first_seq, info.last_seq) == (len(before) + 1, len(before) + 1)
        assert (await log.message(info.first_seq)).type == "LogContinued"
        with pytest.raises(NotFoundError, match=r"run r1 are in an archive.*old.tar.*events import"):
            await anext(log.read("r1"))
        assert await log.append([naming(Artifact(sha256="0" * 64, size=1), "new", "r2")]) == [info.first_seq + 1]
        await seal(over, log)
        await finish(over, log.server)  # harmless
        await catch_up(over, log)
    assert await sound(over) and (await bodies(over))[: len(before)] == before
    live = sums(over)
    async with open_log(over, "reader") as log:
        done = await (await open_views(over, log)).rebuild(history(over, log), check=True)
        assert done.digests == live
    new = settings_of(tmp_path / "new")
    await bring(new, path)
    assert await bodies(new) == before
    path.unlink()
    async with open_log(over, "reader") as log:
        with pytest.raises(NotFoundError, match=r"Events 1 to \d+ are in an archive.*old.tar"):
            await (await open_views(over, log)).rebuild(history(over, log))


@pytest.mark.parametrize("killed", [pytest.param(False, marks=pytest.mark.slow), True])
async def test_budgets_go_on_behind_an_archive(
    over: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    kept, past = Account("user", "someone", 100), Account("day", "2020-01-01", 100)
    vendor = Account("provider", "openai", 200)
    async with open_log(over) as log:
        held = await open_ledger(over, log).reserve((kept, past, vendor), 60)
        await open_ledger(over, log).settle(held, 60)
        held = await open_ledger(over, log).reserve((kept, vendor), 30)  # one message, of the provider's budget
    if killed:
        monkeypatch.setattr("agent0.assembly.log.rollover.finish", _nothing)
    await archive(over, tmp_path / "old.tar")
    async with open_log(over) as log:
        with pytest.raises(BudgetExhaustedError):
            await open_ledger(over, log).reserve((kept,), 11)
        await open_ledger(over, log).settle(held, 30)
        balance = await open_ledger(over, log).balance(kept)
        assert (balance.spent, balance.open, balance.cap) == (90, (), 100)
        assert (await open_ledger(over, log).balance(past)).spent == 0


def test_a_run_in_an_archive_says_where_it_is(over: Settings, tmp_path: Path) -> None:
    put = call("events", "archive", str(tmp_path / "old"), "--json", home=over.home)
    assert put.code == 0, put.err
    said = call("run", "check", "r1", home=over.home)
    assert said.code == 1 and str(tmp_path / "old") in said.err
    assert call("run", "show", "r1", "--json", home=over.home).json["run"] == "r1"  # the tables still know it
    assert call("events", "verify", "--json", home=over.home).json["archives"] == [str(tmp_path / "old")]


async def _nothing(*_: object) -> None:
    """A process that ended here."""


async def test_a_run_that_is_not_over_keeps_its_log(over: Settings, tmp_path: Path) -> None:
    async with open_log(over) as log:
        await log.append([told(RunStarted(name="n", profile="p", seed=0, config={}, config_sha=""), "open")])
    with pytest.raises(OperationError, match=r"not over.*open"):
        await archive(over, tmp_path / "old")
    async with open_log(over) as log:
        await log.append([told(RunFinished(iterations=1, tasks=1, attempts=1, state_sha=""), "open")])
        with pytest.raises(OperationError, match="Others use the log"):
            await archive(over, tmp_path / "old")
    assert not (tmp_path / "old").exists()


KILLED_SEALER = """
import asyncio, os, signal, sys
from pathlib import Path
from agent0.assembly.runtime.app import open_log
from agent0.assembly.log.integrity import sealer
from agent0.infra.integrity.seal_journal import SealFile
from tests.archive.logs import naming, settings_of
from agent0.events.values import Artifact

async def main(held):
    async with open_log(held, make=True) as log:
        await log.append([naming(Artifact(sha256="0" * 64, size=1), f"a{n}") for n in range(40)])
        SealFile.note = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        await sealer(held, log).step(all=True)

asyncio.run(main(settings_of(Path(sys.argv[1]))))
"""


async def test_a_sealer_that_is_killed_leaves_a_chain_that_goes_on(tmp_path: Path) -> None:
    held = settings_of(tmp_path / "home")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    killed = subprocess.run([sys.executable, "-c", KILLED_SEALER, str(held.home)], env=environment, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert SealFile(held.home).read().seals == ()  # it was in the log, and nowhere else
    async with open_log(held) as log:
        assert [seal.last for seal in SealFile(held.home).read().seals] == [15]
        await seal(held, log)
        found = await verify(held, log)
        assert (found.differences, found.seals, found.sealed) == ((), 3, 41)


# --- artifacts --------------------------------------------------------------------------------------------------------


async def test_only_what_nobody_names_is_thrown_away(over: Settings) -> None:
    store = FileArtifacts(over.home)
    unnamed, again, young = (store.put(text) for text in (b"unnamed", b"put again", b"young"))
    for path in (over.home / "artifacts").rglob("??/*"):
        os.utime(path, (1, 1))
    for one in (young, again):
        store.put(store.get(one))  # an event will name it soon
    looked = await collect(over)
    assert (looked["unnamed"], looked["unnamed_bytes"], looked["young"], looked["deleted"]) == (1, 7, 2, 0)
    assert store.get(unnamed)
    done = await collect(over, delete=True)
    assert (done["deleted"], done["deleted_bytes"]) == (1, 7)
    with pytest.raises(NotFoundError):
        store.get(unnamed)
    assert store.get(again) and store.get(young)
    whole = await verify_artifacts(over)
    assert whole["damaged"] == [] and whole["missing"] == [
        digest for digest in whole["missing"] if not store.path(Artifact(sha256=digest, size=0)).exists()
    ]


def test_a_damaged_artifact_is_named_though_only_another_one_names_it(over: Settings) -> None:
    store = FileArtifacts(over.home)
    inner = store.put(b"kept")
    store.path(inner).write_bytes(b"keqt")
    said = call("artifacts", "verify", "--json", home=over.home)
    assert (said.code, said.json["damaged"]) == (1, [inner.sha256])
    counted = call("artifacts", "gc", "--json", home=over.home)
    assert (counted.code, counted.json["unnamed"], counted.json["deleted"]) == (0, 0, 0)


def test_what_is_put_while_it_is_thrown_away_stays(tmp_path: Path) -> None:
    store = FileArtifacts(tmp_path)
    one = store.put(b"x")
    assert not store.remove(one, store.path(one).stat().st_mtime) and store.get(one) == b"x"
    assert store.remove(one, store.path(one).stat().st_mtime + 1)
    assert store.put(b"x") == one and store.get(one) == b"x"


def test_artifacts_are_found_however_deep() -> None:
    one, two = Artifact(sha256="a" * 64, size=1), Artifact(sha256="b" * 64, size=2, media="x/y")
    deep = {"data": [{"x": one.model_dump()}, [[{"sha256": "c" * 64}, two.model_dump()]]], "sha256": "d" * 64}
    assert sorted(named(deep), key=lambda a: a.sha256) == [one, two]
    lines = Artifact(sha256="e" * 64, size=1, media="application/jsonl")
    assert list(named_within(lines, f"{one.model_dump_json()}\n{{}}\n".encode())) == [one]
    assert list(named_within(lines, b"{not json")) == []


def test_the_commands_round_trip_and_say_what_they_did(filled: Settings, tmp_path: Path) -> None:
    path = tmp_path / "log.tar"
    out = call("events", "export", str(path), "--json", home=filled.home)
    assert out.code == 0, out.err
    looked = call("events", "verify", str(path), "--json", home=tmp_path / "new")
    assert (looked.code, looked.json["state"], looked.json["sha256"]) == (0, "whole", out.json["sha256"])
    came = call("events", "import", str(path), "--json", home=tmp_path / "new")
    assert came.code == 0, came.err
    flipped(path)
    broken = call("events", "verify", str(path), home=tmp_path / "new")
    assert broken.code == 1


def test_the_manifest_vouches_for_itself(exported: Path) -> None:
    place = open_archive(exported)
    manifest = manifest_of(place)
    assert isinstance(manifest, Manifest) and examine(place, manifest) == []
    assert json.loads(manifest.to_json()) == json.loads(b"".join(place.parts("manifest.json", 1 << 20)))


@pytest.mark.parametrize(("size", "state"), [(70_000, "ok"), (85_000, "warn")])
async def test_a_log_that_fills_up_is_told_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, state: str
) -> None:
    held = settings_of(tmp_path / "home", **{"nats.max_bytes": "100000"})
    async with open_log(held, make=True) as log:
        await log.append([naming(Artifact(sha256="0" * 64, size=1), message="m" * size)])
    monkeypatch.setattr(doctor, "LOOKS", {"log": doctor.LOOKS["log"]})
    found = {check.name: check async for check in looked_at(held, doctor.LOOKS)}
    assert found["log size"].state == state and "events archive" in found["log size"].fix
