"""A log leaves and comes back as it was, or not at all; what is to be forgotten is gone and the seals still hold."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_check import verify as verify_artifacts
from agent0.assembly.log.export import export
from agent0.assembly.log.integrity import verify
from agent0.assembly.log.restore import bring
from agent0.assembly.runtime.read_models import catch_up, refresh
from agent0.errors import ConfigError, LogError, NotFoundError, OperationError
from agent0.events.runs import RunFinished, RunStarted
from agent0.events.values import Artifact
from agent0.infra.integrity import archive as archives
from agent0.infra.integrity.archive import manifest_of
from agent0.infra.integrity.archive_place import DamagedError, open_archive
from agent0.infra.integrity.seal_journal import SealFile
from agent0.settings import Settings
from tests.archive.logs import (
    SECRET,
    STORY,
    bodies,
    empty,
    flipped,
    naming,
    seal,
    segment,
    settings_of,
    sound,
    sums,
    told,
)

# --- out and in -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [pytest.param("log", marks=pytest.mark.slow), "log.tar"])
async def test_what_comes_back_is_what_left(filled: Settings, tmp_path: Path, name: str) -> None:
    path, new = tmp_path / name, settings_of(tmp_path / "new")
    await export(filled, path)
    assert path.is_file() == name.endswith(".tar") and [p.name for p in tmp_path.iterdir()] == [name]
    found = await bring(new, path)
    assert await bodies(new) == await bodies(filled) and found["last"] == len(await bodies(filled))
    assert (stream := SealFile(new.home).read().stream) and stream.last == found["last"]  # what no seal covers, too
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
    told = json.loads(b"".join(place.parts("manifest.json", 1 << 20)))
    segment = told["segments"][1]
    lines = archives.zstandard.ZstdDecompressor().decompress((path / segment["file"]).read_bytes()).splitlines()
    data = b"".join(line + b"\n" for line in change(lines))
    new = archives.zstandard.ZstdCompressor().compress(data)
    (path / segment["file"]).write_bytes(new)
    segment |= {"bytes": len(data), "sha256": archives.hashlib.sha256(new).hexdigest()}
    retold(path, **told)


def retold(path: Path, **changes: Any) -> None:
    """A manifest that says something else and vouches for it."""
    told = json.loads((path / "manifest.json").read_text()) | changes
    del told["sha256"]
    told["sha256"] = archives._digest(told)
    (path / "manifest.json").write_text(json.dumps(told))


def unnamed(path: Path) -> None:
    """The manifest no longer speaks of one artifact."""
    held = json.loads((path / "manifest.json").read_text())["artifacts"]
    retold(path, artifacts=[one for one in held if one["media"] != "application/x-tar"])


def swapped(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], lines[4], lines[3], *lines[5:]]


def disguised(lines: list[bytes]) -> list[bytes]:
    """Two events in each other's place, renumbered."""
    three, four = (line.partition(b',"body":') for line in lines[3:5])
    return [*lines[:3], three[0] + three[1] + four[2], four[0] + four[1] + three[2], *lines[5:]]


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
    "no number": (lambda path: retold(path, first="x"), "manifest.json cannot be read: first: Input should be a valid"),
    "no numbers of an archive": (lambda path: retold(path, last=10**15), "it cannot hold events 1 to 10"),
    "no stretches": (lambda path: retold(path, redacted=[3]), "are no stretches"),
    "an unknown field": (lambda path: retold(path, more=1), "more: Unexpected"),
    "an artifact that nobody speaks of": (unnamed, "artifact .* is named by its events, and neither in it nor said"),
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
    foreign = tmp_path / "x.tar"
    for content, why in ((b"no tar", "it cannot be read as a tar"), (b"", "it holds no file")):
        foreign.write_bytes(content)
        with pytest.raises(NotFoundError, match=rf"x.tar is no archive. It does not begin as one: {why}"):
            await bring(new, foreign)
    with tarfile.open(foreign, "w") as tar:
        tar.add(__file__, "notes.txt")
    with pytest.raises(NotFoundError, match=r"x.tar is no archive. .* its member 'notes.txt' is no file of an archive"):
        await bring(new, foreign)
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
from agent0.assembly.log.restore import bring
from agent0.infra.log import restore as log_restore
from tests.archive.logs import settings_of

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


@pytest.mark.parametrize("stage", ["storing", pytest.param("after", marks=pytest.mark.slow)])
async def test_a_killed_import_leaves_all_or_nothing(
    exported: Path, filled: Settings, tmp_path: Path, stage: str
) -> None:
    new = settings_of(tmp_path / "new")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, stage, str(new.home), str(exported)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
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
    task = next(e.task for e in STORY if e.type == "TaskProposed")
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


@pytest.mark.parametrize("text", ["(", "a*", "", "t9-999"])
async def test_a_pattern_that_is_none_or_takes_everything_or_nothing_is_refused(
    filled: Settings, tmp_path: Path, text: str
) -> None:
    with pytest.raises(ConfigError, match="--redact"):
        await export(filled, tmp_path / "log", redact=(text,))
    assert not [*tmp_path.iterdir()]


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
