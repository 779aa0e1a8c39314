"""A log leaves and comes back as it was, or not at all; one that is full goes on under the same numbers; what is to be
forgotten is gone and the seals still hold; and nothing that a fact names is thrown away."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent0 import assembly_doctor as doctor
from agent0.assembly import open_log
from agent0.assembly_archive import export
from agent0.assembly_artifacts import collect
from agent0.assembly_artifacts import verify as verify_artifacts
from agent0.assembly_history import history
from agent0.assembly_import import bring
from agent0.assembly_renewal import archive, finish
from agent0.assembly_seals import sealer, verify
from agent0.assembly_tables import catch_up, live_path, open_views, refresh
from agent0.configuration import load
from agent0.errors import ConfigError, LogError, NotFoundError, OperationError
from agent0.references import named, named_within
from agent0.settings import Settings
from agent0.snapshots import save
from events.alarms import AlarmRaised
from events.base import Event, Recorded, record
from events.runs import RunFinished, RunStarted
from events.values import Artifact
from infra import archive as archives
from infra import storage
from infra.archive import DamagedError, Manifest, examine, manifest_of, open_archive
from infra.artifacts import FileArtifacts
from infra.log import Log
from infra.seal_file import SealFile
from projections import tables
from projections.views import digests
from tests.story import whole_run
from tests.terminal import agent0 as call

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STORY = whole_run(iterations=1, tasks=2, attempts=2)
SECRET = "the patient's name"


def settings_of(home: Path, **more: str) -> Settings:
    return load("scripted", {"home": str(home), "nats.seal_every": "15", **more}, {})


def told(event: Event, run: str = "r1") -> Recorded:
    return record(event, run=run, time=NOON)


def naming(artifact: Artifact, name: str = "a", run: str = "r1", message: str = "m") -> Recorded:
    facts = {"kept": artifact.model_dump()}
    return told(AlarmRaised(alarm=name, severity="info", message=message, facts=facts), run)


async def seal(held: Settings, log: Log) -> None:
    async with sealer(held, log):
        pass


async def fill(held: Settings) -> Settings:
    """A home with a told run, three artifacts (one names two more), seals and tables."""
    store = FileArtifacts(held.home)
    folder = save({"notes.txt": b"kept", "more.txt": SECRET.encode()}, store)
    assert folder
    async with open_log(held, make=True) as log:
        await log.append(STORY)
        await log.append([naming(folder), naming(store.put(b"weights", "application/x-tar"), "b", message=SECRET)])
        await seal(held, log)
        await catch_up(held, log)
    return held


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Nobody changes it."""
    return asyncio.run(fill(settings_of(tmp_path_factory.mktemp("filled"))))


@pytest.fixture(scope="module")
def exported(filled: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "log"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archives, "EVENTS", 20)
        found = asyncio.run(export(filled, path))
    assert found["artifacts"] == 4 and found["absent"] and found["segments"] > 1, found
    return path


async def bodies(held: Settings) -> list[tuple[int, bytes]]:
    before = SealFile(held.home).read().first - 1
    async with open_log(held, "reader") as log:
        return [one async for chunk in history(held, log)(before, 0) for one in chunk]


def sums(held: Settings) -> dict[str, str]:
    with closing(storage.connect(live_path(held).resolve(), read_only=True)) as db:
        return digests(db, tables())


async def sound(held: Settings) -> bool:
    async with open_log(held, "reader") as log:
        return not (await verify(held, log)).differences


def empty(home: Path) -> bool:
    return not any((home / name).exists() for name in ("nats", "seals.jsonl", "tables"))


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "EVENTS", 20)


# --- out and in -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["log", "log.tar"])
async def test_what_comes_back_is_what_left(filled: Settings, tmp_path: Path, name: str) -> None:
    path, new = tmp_path / name, settings_of(tmp_path / "new")
    await export(filled, path)
    assert path.is_file() == name.endswith(".tar") and [p.name for p in tmp_path.iterdir()] == [name]
    found = await bring(new, path)
    assert await bodies(new) == await bodies(filled) and found["last"] == len(await bodies(filled))
    assert await refresh(new) == "" and sums(new) == sums(filled)
    assert (await verify_artifacts(new))["missing"] == (await verify_artifacts(filled))["missing"]
    async with open_log(new) as log:  # and it goes on
        assert await log.append([told(RunStarted(name="n", profile="p", seed=0, config={}, config_sha=""), "r2")])
        await seal(new, log)
    assert await sound(new) and not (new.home / ".importing").exists()
    with pytest.raises(OperationError, match="has a log already"):
        await bring(new, path)
    with pytest.raises(ConfigError, match="is there already"):
        await export(filled, path)


def packed(path: Path, change: Any) -> None:
    """Change the lines of the second segment and every digest that would tell."""
    place = open_archive(path)
    told = json.loads(place.read("manifest.json"))
    segment = told["segments"][1]
    lines = archives.zstandard.ZstdDecompressor().decompress((path / segment["file"]).read_bytes()).splitlines()
    data = b"".join(line + b"\n" for line in change(lines))
    new = archives.zstandard.ZstdCompressor().compress(data)
    (path / segment["file"]).write_bytes(new)
    segment |= {"bytes": len(data), "sha256": archives.hashlib.sha256(new).hexdigest()}
    del told["sha256"]
    told["sha256"] = archives._digest(told)
    (path / "manifest.json").write_text(json.dumps(told))


def swapped(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], lines[4], lines[3], *lines[5:]]


def disguised(lines: list[bytes]) -> list[bytes]:
    """Two events in each other's place, renumbered."""
    three, four = (line.partition(b',"body":') for line in lines[3:5])
    return [*lines[:3], three[0] + three[1] + four[2], four[0] + four[1] + three[2], *lines[5:]]


def segment(path: Path, number: int) -> Path:
    return sorted((path / "segments").iterdir())[number]


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


HARM = {
    "a flipped byte": (lambda path: flipped(segment(path, 1)), r"000000000021-.*does not have its digest"),
    "a missing segment": (lambda path: segment(path, 1).unlink(), r"events 21 to 40\) is missing"),
    "swapped events": (lambda path: packed(path, swapped), "event 25 stands where 24 should"),
    "swapped and renumbered": (lambda path: packed(path, disguised), r"events 1[56] to [23]\d.*differ from the seal"),
    "an event less": (lambda path: packed(path, lambda lines: lines[:-1]), "ends at event 39"),
    "a line of no event": (
        lambda path: packed(path, lambda lines: [*lines[:2], b"{}", *lines[3:]]),
        "line 3 is no event",
    ),
    "another manifest": (lambda path: flipped(path / "manifest.json"), "manifest.json"),
    "a damaged artifact": (lambda path: flipped(next((path / "artifacts").rglob("??/*"))), "artifact .* its digest"),
    "a missing artifact": (lambda path: shutil.rmtree(path / "artifacts"), "artifact .* is missing"),
}


@pytest.mark.parametrize("harm", HARM)
async def test_a_damaged_archive_is_told_by_place_and_leaves_nothing(exported: Path, tmp_path: Path, harm: str) -> None:
    path, new = tmp_path / "log", settings_of(tmp_path / "new")
    shutil.copytree(exported, path)
    change, said = HARM[harm]
    change(path)
    with pytest.raises(DamagedError, match=said):
        await bring(new, path)
    assert empty(new.home)


async def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    new = settings_of(tmp_path / "new")
    with pytest.raises(NotFoundError, match="There is no archive"):
        await bring(new, tmp_path / "nothing")
    with pytest.raises(NotFoundError, match="has no manifest"):
        await bring(new, tmp_path)
    (tmp_path / "x.tar").write_bytes(b"no tar")
    with pytest.raises(DamagedError, match="cannot be read"):
        await bring(new, tmp_path / "x.tar")
    assert empty(new.home)


async def test_a_damaged_log_is_not_exported(filled: Settings, tmp_path: Path) -> None:
    held = settings_of(tmp_path / "home")
    shutil.copytree(filled.home, held.home)
    [block] = held.home.rglob("streams/A0_EV/msgs/*.blk")
    data = bytearray(block.read_bytes())
    data[data.index(SECRET.encode())] ^= 0xFF
    block.write_bytes(data)
    with pytest.raises(LogError, match="gap"):
        await export(held, tmp_path / "log")
    assert [p.name for p in tmp_path.iterdir()] == ["home"]


async def test_an_id_that_was_stored_twice_comes_back_twice(tmp_path: Path) -> None:
    held, new = settings_of(tmp_path / "old", **{"nats.duplicate_window_s": "0.2"}), settings_of(tmp_path / "new")
    event = told(RunFinished(iterations=1, tasks=1, attempts=1, state_sha=""))
    async with open_log(held, make=True) as log:
        for _ in range(2):
            await log.client.jetstream().publish(event.subject, event.to_json())
        await seal(held, log)
    await export(held, tmp_path / "log")
    await bring(new, tmp_path / "log")
    assert await bodies(new) == await bodies(held) and await sound(new)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from agent0.assembly_import import bring
from infra import log_restore
from tests.test_archive import settings_of

stage, home, path = sys.argv[1:]
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if stage == "storing":
    store = log_restore._store
    async def once(link, part):
        await store(link, part)
        die()
    log_restore._store = once
else:
    rename = Path.rename
    Path.rename = lambda self, to: (rename(self, to), die() if self.name == "nats" else None)
asyncio.run(bring(settings_of(Path(home)), Path(path)))
"""


@pytest.mark.parametrize("stage", ["storing", "after"])
async def test_a_killed_import_leaves_all_or_nothing(
    exported: Path, filled: Settings, tmp_path: Path, stage: str
) -> None:
    new = settings_of(tmp_path / "new")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, stage, str(new.home), str(exported)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    if stage != "after":
        assert empty(new.home)
        await bring(new, exported)
    assert await bodies(new) == await bodies(filled) and await sound(new)
    assert SealFile(new.home).read().seals == SealFile(filled.home).read().seals


# --- forgetting -------------------------------------------------------------------------------------------------------


async def test_what_is_forgotten_is_gone_and_the_seals_hold(filled: Settings, tmp_path: Path) -> None:
    task = next(e.task for e in STORY if e.task != "-")
    path, new = tmp_path / "log", settings_of(tmp_path / "new")
    found = await export(filled, path, redact=(task, "patient's name"))
    place = open_archive(path)
    manifest = manifest_of(place)
    left = b"".join(body for part in archives.events_of(place, manifest) for _, body in part)
    assert SECRET.encode() not in left
    assert not any(SECRET.encode() in p.read_bytes() for p in (path / "artifacts").rglob("??/*"))
    gone = sum(e.task == task for e in STORY) + 1
    assert (found["redacted"], found["withheld"]) == (gone, 2)
    assert task not in path.joinpath("manifest.json").read_text()
    await bring(new, path)
    assert await sound(new)
    assert await refresh(new) == ""
    before, after = dict(await bodies(filled)), dict(await bodies(new))
    changed = [seq for seq in before if before[seq] != after[seq]]
    assert len(changed) == gone and list(before) == list(after)
    known = SealFile(new.home)
    text = known.path.read_text()
    known.path.write_text(text.replace(json.dumps([*manifest.redacted], separators=(",", ":")), "[]"))
    async with open_log(new, "reader") as log:  # who only says that something was forgotten has taken it out
        hidden = (await verify(new, log)).differences
        assert {one.problem for one in hidden} == {"hidden"} and [one.first for one in hidden] == changed


@pytest.mark.parametrize("text", ["(", "a*", ""])
async def test_a_pattern_that_is_none_or_takes_everything_is_refused(
    filled: Settings, tmp_path: Path, text: str
) -> None:
    with pytest.raises(ConfigError, match="--redact"):
        await export(filled, tmp_path / "log", redact=(text,))


async def test_one_run_leaves_with_its_numbers_and_nothing_of_others(tmp_path: Path) -> None:
    held, new = settings_of(tmp_path / "old"), settings_of(tmp_path / "new")
    async with open_log(held, make=True) as log:
        for part in range(3):
            for run in ("other", "mine") if part else ("other",):
                await log.append([naming(Artifact(sha256="0" * 64, size=1), f"{run}{part}{n}", run) for n in range(8)])
            await seal(held, log)
        await catch_up(held, log)
    found = await export(held, tmp_path / "log", run="mine")
    assert (found["first"], found["elsewhere"], found["runs"]) == (9, 16, 1)  # it begins behind the seal before it
    await bring(new, tmp_path / "log")
    old = {seq: body for seq, body in await bodies(held) if b'"run":"mine"' in body}
    assert {seq: body for seq, body in await bodies(new) if b'"run":"mine"' in body} == old
    assert not any(b"other" in body for _, body in await bodies(new)) and await sound(new)
    assert await refresh(new) == ""
    with pytest.raises(NotFoundError, match="no run"):
        await export(held, tmp_path / "none", run="nobody")


# --- going on ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def over(filled: Settings, tmp_path: Path) -> Settings:
    """A copy of the filled home."""
    held = settings_of(tmp_path / "home")
    shutil.copytree(filled.home, held.home, symlinks=True)
    return held


@pytest.mark.parametrize("killed", [False, True])
async def test_an_archived_log_goes_on_under_the_same_numbers(
    over: Settings, filled: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    before, path = await bodies(over), tmp_path / "old.tar"
    if killed:
        monkeypatch.setattr("agent0.assembly_renewal.finish", _nothing)
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


def test_a_run_in_an_archive_says_where_it_is(over: Settings, tmp_path: Path) -> None:
    put = call("events", "archive", str(tmp_path / "old"), "--json", home=over.home)
    assert put.code == 0, put.err
    said = call("events", "tail", "--run", "r1", home=over.home)
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
from agent0.assembly import open_log
from agent0.assembly_seals import sealer
from infra.seal_file import SealFile
from tests.test_archive import naming, settings_of
from events.values import Artifact

async def main(held):
    async with open_log(held, make=True) as log:
        await log.append([naming(Artifact(sha256="0" * 64, size=1), f"a{n}") for n in range(40)])
        SealFile.note = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        await sealer(held, log).step(all=True)

asyncio.run(main(settings_of(Path(sys.argv[1]))))
"""


async def test_a_sealer_that_is_killed_leaves_a_chain_that_goes_on(tmp_path: Path) -> None:
    held = settings_of(tmp_path / "home")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
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
    assert json.loads(manifest.to_json()) == json.loads(place.read("manifest.json"))


@pytest.mark.parametrize(("size", "state"), [(70_000, "ok"), (85_000, "warn")])
async def test_a_log_that_fills_up_is_told_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, state: str
) -> None:
    held = settings_of(tmp_path / "home", **{"nats.max_bytes": "100000"})
    async with open_log(held, make=True) as log:
        await log.append([naming(Artifact(sha256="0" * 64, size=1), message="m" * size)])
    monkeypatch.setattr(doctor, "_LOOKS", {"log": doctor._LOOKS["log"]})
    found = {check.name: check async for check in doctor.examine(held)}
    assert found["log size"].state == state and "events archive" in found["log size"].fix
