"""Archives made to fill memory or disk, to hang their reader, or to reach other files: each is refused by name, within
bounds that the kernel holds, and leaves nothing behind."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.log.restore import _require_room, bring
from agent0.errors import DependencyError, OperationError
from agent0.infra.integrity import archive as archives
from agent0.infra.integrity.archive import manifest_of
from agent0.infra.integrity.archive_check import examine
from agent0.infra.integrity.archive_place import open_archive
from tests.archive.logs import settings_of
from tests.archive.test_round_trip import retold

SIZE, BOMB, LISTS = 64 << 30, 128 << 20, 2 << 20
DEEP = b"[" * 200_000
READER = """
import gc, json, os, resource, sys
from pathlib import Path
from tests.terminal import agent0

def answers(home, path):
    asked = (("events", "verify", path), ("events", "import", path),
             ("projections", "build", "--from", path, "--into", str(home.parent / "past.db")))
    return [(said.code, said.err) for said in (agent0(*words, home=home) for words in asked)]

def bounded(home, path):
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    return answers(home, path)

whole, *given = sys.argv[1:]
none = Path(whole).with_name("none")
assert agent0("events", "verify", whole, home=none).code == 0
assert all(code for code, _ in answers(none, str(none)))  # these two have imported what each child would
gc.freeze()
for folder, path in zip(given[::2], given[1::2]):
    if not (child := os.fork()):
        found = json.dumps(bounded(Path(folder, "home"), path))
        os.write(1, (found + chr(10)).encode())
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status == 0, (path, status)
"""
"""Verifies, imports and replays each archive in a process of its own, of little memory, that can write little."""


def manifest(path: Path) -> dict[str, Any]:
    held: dict[str, Any] = json.loads((path / "manifest.json").read_text())
    return held


def packed(path: Path, *more: tuple[tarfile.TarInfo, bytes]) -> Path:
    """The folder as a tar with ``more`` members."""
    made = path.with_suffix(".tar")
    with tarfile.open(made, "w") as tar:
        for one in sorted(p for p in path.rglob("*") if p.is_file()):
            tar.add(one, str(one.relative_to(path)))
        for member, data in more:
            tar.addfile(member, BytesIO(data))
    return made


def member(name: str, kind: bytes, **more: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type = kind
    for field, value in more.items():
        setattr(info, field, value)
    return info, b""


def holes(path: Path) -> Path:
    """A tar of a few blocks whose one member unpacks to 64 GiB."""
    source = path.parent / "holes"
    source.mkdir()
    with (source / "manifest.json").open("wb") as file:
        file.truncate(SIZE)
    made = path.with_suffix(".tar")
    subprocess.run(["tar", "--sparse", "--format=gnu", "-cf", made, "-C", source, "manifest.json"], check=True)
    assert made.stat().st_size < 1 << 15
    return made


def long_header(path: Path) -> Path:
    """An extended header that says it has 64 GiB, in a file that has them as a hole."""
    info, _ = member("x", tarfile.XHDTYPE, size=SIZE)
    made = path.with_suffix(".tar")
    with made.open("wb") as file:
        file.write(info.tobuf(tarfile.GNU_FORMAT))
        file.truncate(2 * SIZE)
    return made


def longer(path: Path) -> Path:
    """A header that says 64 GiB follow, where nothing does."""
    info, _ = member("manifest.json", tarfile.REGTYPE, size=SIZE)
    made = path.with_suffix(".tar")
    made.write_bytes(info.tobuf(tarfile.GNU_FORMAT))
    return made


def piped(name: str) -> Callable[[Path], Path]:
    return lambda path: instead(path, name, os.mkfifo)


def endless(name: str) -> Callable[[Path], Path]:
    return lambda path: instead(path, name, lambda at: at.symlink_to("/dev/zero"))


def instead(path: Path, name: str, make: Callable[[Path], Any]) -> Path:
    at = next(path.glob(name))
    at.unlink()
    make(at)
    return path


def grown(name: str) -> Callable[[Path], Path]:
    def change(path: Path) -> Path:
        os.truncate(next(path.glob(name)), SIZE)
        return path

    return change


def a_pipe(path: Path) -> Path:
    os.mkfifo(path.with_suffix(".tar"))
    return path.with_suffix(".tar")


def zeros(path: Path) -> Path:
    path.with_suffix(".tar").symlink_to("/dev/zero")
    return path.with_suffix(".tar")


def deep(path: Path) -> Path:
    (path / "manifest.json").write_bytes(DEEP)
    return path


def crowded(path: Path) -> Path:
    """Twice as many empty lists as are parsed."""
    (path / "manifest.json").write_bytes(b"[" + b"[]," * LISTS + b"[]]")
    return path


def many_wrong(path: Path) -> Path:
    """Many wrong items, each of which could be complained of."""
    retold(path, seals=[[]] * 300_000, absent=[0] * 90_000)
    return path


def crowded_event(path: Path) -> Path:
    """A segment with an event of twice as many empty lists as are parsed."""
    first = manifest(path)["segments"][0]
    data = b'{"seq":1,"body":{"media":[' + b"[]," * LISTS + b"[]]}}\n"
    (path / first["file"]).write_bytes(archives.zstandard.ZstdCompressor().compress(data))
    return restated(path, bytes=len(data))


def crowded_artifact(path: Path) -> Path:
    """An artifact of twice as many empty lists as are parsed, listed as JSON."""
    data = b"[" + b"[]," * LISTS + b"[]]"
    digest = archives.hashlib.sha256(data).hexdigest()
    (path / "artifacts" / digest[:2]).mkdir(parents=True, exist_ok=True)
    (path / "artifacts" / digest[:2] / digest[2:]).write_bytes(data)
    held = manifest(path)["artifacts"]
    retold(path, artifacts=[*held, {"sha256": digest, "size": len(data), "media": "application/json"}])
    return path


def bomb(path: Path) -> Path:
    """A segment of a few KiB that unpacks to 128 MiB, and says so."""
    first = manifest(path)["segments"][0]
    data = archives.zstandard.ZstdCompressor().compressobj(size=BOMB)
    with (path / first["file"]).open("wb") as file:
        for _ in range(BOMB >> 24):
            file.write(data.compress(bytes(1 << 24)))
        file.write(data.flush())
    return restated(path, bytes=BOMB)


def lying(path: Path) -> Path:
    """The same, and it says that it unpacks to less."""
    bomb(path)
    return restated(path, bytes=1 << 20)


def restated(path: Path, **changes: Any) -> Path:
    """The manifest with ``changes`` to its first segment, vouching for itself."""
    segments = manifest(path)["segments"]
    file = path / segments[0]["file"]
    if file.is_file():
        changes["sha256"] = archives.hashlib.sha256(file.read_bytes()).hexdigest()
    retold(path, segments=[{**segments[0], **changes}, *segments[1:]])
    return path


def many_events(path: Path) -> Path:
    first, *_ = manifest(path)["segments"]
    retold(path, last=10**9, segments=[{**first, "last": 10**9}], redacted=[], elsewhere=[])
    return path


def far_events(path: Path) -> Path:
    retold(path, first=10**30, last=10**30 - 1, segments=[], seals=[], artifacts=[], redacted=[], elsewhere=[])
    return path


def repeated(path: Path) -> Path:
    held = manifest(path)
    retold(path, segments=[*held["segments"][:1]] * 1000)
    return path


def twice(path: Path) -> Path:
    retold(path, artifacts=manifest(path)["artifacts"][:1] * 1000)
    return path


def outside(path: Path) -> Path:
    return restated(path, file="../secret")


def heavy(path: Path) -> Path:
    first, *others = manifest(path)["artifacts"]
    retold(path, artifacts=[{**first, "size": SIZE}, *others])
    return path


HOSTILE: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a tar's member with holes": (holes, r"member 'manifest\.json' is a file with holes"),
    "a tar's endless header": (long_header, r"extended header of 68,719,476,736 bytes"),
    "a tar's symbolic link": (
        lambda path: packed(path, member("segments", tarfile.SYMTYPE, linkname="/etc")),
        "member 'segments' is a symbolic link",
    ),
    "a tar's hard link": (
        lambda path: packed(path, member("artifacts/x", tarfile.LNKTYPE, linkname="manifest.json")),
        "member 'artifacts/x' is a hard link",
    ),
    "a tar's device": (
        lambda path: packed(path, member("zero", tarfile.CHRTYPE, devmajor=1, devminor=5)),
        "is a device",
    ),
    "a tar's pipe": (lambda path: packed(path, member("pipe", tarfile.FIFOTYPE)), "member 'pipe' is a pipe"),
    "a tar's member twice": (
        lambda path: packed(path, member("manifest.json", tarfile.REGTYPE)),
        r"member 'manifest\.json' stands in it twice",
    ),
    "a tar's member above": (
        lambda path: packed(path, member("../secret", tarfile.REGTYPE)),
        r"member '\.\./secret' is no file of an archive",
    ),
    "a tar's member that is longer than it": (longer, r"'manifest\.json' is cut off"),
    "a pipe for a tar": (a_pipe, "it is a pipe, and a regular file is needed"),
    "a device for a tar": (zeros, "it is a device, and a regular file is needed"),
    "a pipe for the manifest": (piped("manifest.json"), r"manifest\.json cannot be read: it is a pipe"),
    "a device for the manifest": (endless("manifest.json"), r"manifest\.json is behind a symbolic link"),
    "a huge manifest": (
        grown("manifest.json"),
        r"manifest\.json has 68,719,476,736 bytes, and at most 67,108,864 are read",
    ),
    "a crowded manifest": (
        crowded,
        r"manifest\.json has 4,194,306 brackets and commas, and at most 2,097,152 are read",
    ),
    "a manifest of many wrong items": (many_wrong, r"manifest\.json cannot be read: seals\.0: "),
    "a crowded event": (crowded_event, r"event 1 has 4,194,\d+ brackets and commas, and at most 2,097,152 are read"),
    "a deep manifest": (deep, r"manifest\.json cannot be read: it is nested too deeply"),
    "a pipe for a segment": (piped("segments/*-*20.jsonl.zst"), r"segments/\S+ cannot be read: it is a pipe"),
    "a device for a segment": (endless("segments/*-*20.jsonl.zst"), r"segments/\S+ is behind a symbolic link"),
    "a huge segment": (grown("segments/*-*20.jsonl.zst"), r"segments/\S+ has 68,719,476,736 bytes, and at most"),
    "a segment that unpacks to 128 MiB": (bomb, r"events 1 to 20 cannot take 134217728 bytes"),
    "a segment that unpacks to more than it says": (lying, r"is not as large as the manifest says"),
    "a segment elsewhere": (outside, r"'\.\./secret' is no name of events 1 to 20"),
    "a segment many times": (repeated, "no segment holds events 1 to 20"),
    "a thousand million events": (many_events, "cannot hold events 1 to 1000000000"),
    "events far away": (far_events, "cannot hold events 1000000"),
    "an artifact many times": (twice, "artifact .* is listed twice"),
    "an artifact of 64 GiB": (heavy, "artifact .* of 68719476736 bytes; at most"),
}
ARTIFACTS = {
    "a pipe for an artifact": (piped("artifacts/*/*"), r"artifacts/\S+ cannot be read: it is a pipe"),
    "a device for an artifact": (endless("artifacts/*/*"), r"artifacts/\S+ is behind a symbolic link"),
    "a crowded artifact": (
        crowded_artifact,
        r"artifact \w+ has 4,194,306 brackets and commas, and at most 2,097,152",
    ),
    "a huge artifact": (grown("artifacts/*/*"), r"artifacts/\S+ has 68,719,476,736 bytes, and at most"),
}
"""Tables are made of events alone, so that they do not meet these."""
SHAPES = HOSTILE | ARTIFACTS


@pytest.fixture(scope="module")
def answers(exported: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, list[tuple[int, str]]]]:
    """By shape: the folder that its archive is in, exit code and message of each command that reads an archive."""
    folders, given = [tmp_path_factory.mktemp("hostile") for _ in SHAPES], list[str]()
    for folder, (change, _) in zip(folders, SHAPES.values(), strict=True):
        path = folder / "given" / "log"
        shutil.copytree(exported, path)
        given += [str(folder), str(change(path))]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "COLUMNS": "4000"}
    command = [sys.executable, "-c", READER, str(exported), *given]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=800)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return dict(zip(SHAPES, zip(folders, found, strict=True), strict=True))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_hostile_archive_is_refused_by_name_and_leaves_nothing(
    answers: dict[str, tuple[Path, list[tuple[int, str]]]], shape: str
) -> None:
    (folder, found), why = answers[shape], SHAPES[shape][1]
    for code, message in found if shape in HOSTILE else found[:2]:
        assert code in (1, 2) and re.search(why, message), (code, message)
        assert "Traceback" not in message and len(message) < 4000
    assert "Nothing was changed. Use a whole copy." in found[1][1]
    left = [] if shape in HOSTILE else ["past.db"]
    assert sorted(one.name for one in folder.iterdir() if one.name not in ("given", "home")) == left
    assert not (folder / "home").exists() or not [*(folder / "home").glob("*")]


# --- what comes after -------------------------------------------------------------------------------------------------


async def test_what_does_not_fit_is_refused_before_anything_is_written(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(OperationError, match=r"nats\.max_bytes is 1,000.*Raise nats\.max_bytes"):
        await bring(settings_of(tmp_path / "small", **{"nats.max_bytes": "1000"}), exported)
    path = tmp_path / "log"
    shutil.copytree(exported, path)
    free = shutil.disk_usage(tmp_path).free
    held = manifest(path)["artifacts"]
    more = [{**held[0], "sha256": f"{n:064x}", "size": 4 << 30, "media": "x/y"} for n in range((free >> 32) + 1)]
    retold(path, artifacts=[*held, *more])
    with pytest.raises(DependencyError, match=r"The archive holds [\d,]+ bytes, and [\d,]+ are free"):
        _require_room(settings_of(tmp_path / "new"), manifest_of(open_archive(path)))
    assert [one.name for one in tmp_path.iterdir()] == ["log"]


async def test_an_import_that_fails_late_takes_back_what_it_made(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the disk is full: the server is up and holds events by then."""

    def fail(*_: object) -> None:
        raise DependencyError("disk space", "The device is full.")

    new = settings_of(tmp_path / "new")
    monkeypatch.setattr("agent0.assembly.log.restore.bring_artifacts", fail)
    with pytest.raises(DependencyError):
        await bring(new, exported)
    assert [one.name for one in new.home.iterdir() if one.name != ".import.lock"] == []
    monkeypatch.undo()
    assert (await bring(new, exported))["first"] == 1


def test_a_seal_beyond_many_missing_segments_is_not_waited_for(exported: Path, tmp_path: Path) -> None:
    """Each segment that is said to be there and is not takes memory for its events: after a hundred it is enough."""
    path = tmp_path / "log"
    shutil.copytree(exported, path)
    first = manifest(path)["segments"][0]
    spans = [(n * archives.MOST + 1, (n + 1) * archives.MOST) for n in range(1000)]
    made = [{**first, "file": archives._segment_name(*span), "first": span[0], "last": span[1]} for span in spans]
    retold(path, segments=made, last=spans[-1][1])
    place = open_archive(path)
    found = examine(place, manifest_of(place))
    assert len([one for one in found if "is missing" in one]) == 100
    assert "100 segments cannot be read; those after event 6553600 were not tried" in found
