"""What a run measured, written for other programs: every value is there, at its step, in the form that they read.

TensorBoard's files are read by its documented format, and by TensorBoard where it is installed; what MLflow and W&B
keep is read where they are installed (both are large, and nothing else needs them).
"""

import csv
import json
import os
import re
import sqlite3
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from agent0.assembly.tracking.measured import Point, RunSeries
from agent0.assembly.tracking.sinks import SINKS, export
from agent0.assembly.tracking.tensorboard_events import masked_crc
from agent0.errors import ConfigError, OperationError, RequirementsError
from tests.kept_open import attached
from tests.terminal import agent0 as call

ROOT = Path(__file__).parents[1]
POINTS = tuple(
    Point(series, step, 1_700_000_000.5 + step, value)
    for step, values in enumerate([(0.25, None), (0.5, -1.5), (1.0, 300.0)])
    for series, value in zip(("curve/validation", "iteration/reward"), values, strict=True)
    if value is not None
)
TRAININGS = tuple(
    Point("training/student/loss", step, 1_700_000_000.5 + step, loss) for step, loss in ((1, 0.5), (2, 0.25), (3, 1.5))
)
FOUND = RunSeries(
    "tiny-1a2b3c", "tiny", {"student.lr": 0.1, "curriculum.levels": [1, 2], "long": "x" * 900}, POINTS, TRAININGS
)
SMALL = ("--profile", "scripted", "--tasks", "3", "--attempts", "2", "--iterations", "1", "-s", "run.evaluation.test=2",
         "-s", "run.evaluation.validation=2", "-s", "sandbox.workers=1")  # fmt: skip


def expected() -> set[tuple[str, int, float]]:
    return {(point.series, point.step, point.value) for point in (*POINTS, *TRAININGS)}


def test_tables_have_a_row_for_each_step(tmp_path: Path) -> None:
    rows = [
        {"step": 0, "curve/validation": 0.25, "iteration/reward": None},
        {"step": 1, "curve/validation": 0.5, "iteration/reward": -1.5},
        {"step": 2, "curve/validation": 1.0, "iteration/reward": 300.0},
    ]
    assert FOUND.rows() == rows
    assert pyarrow.parquet.read_table(export(FOUND, "parquet", tmp_path)).to_pylist() == rows
    with export(FOUND, "csv", tmp_path).open() as file:
        read = [{k: float(v) if v else None for k, v in row.items()} for row in csv.DictReader(file)]
    assert read == rows
    with (tmp_path / "tiny-1a2b3c-steps.csv").open() as file:
        losses = {row["step"]: row["training/student/loss"] for row in csv.DictReader(file)}
    assert losses == {"1": "0.5", "2": "0.25", "3": "1.5"}


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """(number, value) of each field of a protocol buffer: whole numbers, doubles, floats, bytes."""

    def varint() -> int:
        nonlocal at
        value, shift = 0, 0
        while True:
            byte, at = message[at], at + 1
            value, shift = value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    at = 0
    while at < len(message):
        key = varint()
        number, wire = key >> 3, key & 7
        size = {1: 8, 5: 4}.get(wire, 0) or varint()
        if wire == 0:
            yield number, size
            continue
        part, at = message[at : at + size], at + size
        yield number, struct.unpack({1: "<d", 5: "<f"}[wire], part)[0] if wire in (1, 5) else part


def records(data: bytes) -> Iterator[bytes]:
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        message, sums = data[12 : 12 + size], struct.unpack("<I", data[8:12])
        assert sums[0] == masked_crc(data[:8])
        assert struct.unpack("<I", data[12 + size : 16 + size])[0] == masked_crc(message)
        yield message
        data = data[16 + size :]


def test_a_tensorboard_file_is_as_its_format_says(tmp_path: Path) -> None:
    file = export(FOUND, "tensorboard", tmp_path)
    first, *rest = [dict(fields(record)) for record in records(file.read_bytes())]
    assert re.fullmatch(r"events\.out\.tfevents\.\d{10}\.agent0", file.name) and first[3] == b"brain.Event:2"
    values = [dict(fields(dict(fields(one[5]))[1])) for one in rest]
    read = {(value[1].decode(), one[2], value[2]) for one, value in zip(rest, values, strict=True)}
    assert read == expected() and {one[1] - one[2] for one in rest} == {1_700_000_000.5}
    before = file.read_bytes()
    assert export(FOUND, "tensorboard", tmp_path).read_bytes() == before and len([*file.parent.iterdir()]) == 1


def test_its_checksum_is_that_of_the_standard() -> None:
    """CRC-32C of ``123456789`` is 0xE3069283 (RFC 3720 has the polynomial)."""
    crc = 0xE3069283
    assert masked_crc(b"123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert zlib.crc32(b"123456789") != crc, "the other CRC-32"


def test_tensorboard_reads_it(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(export(FOUND, "tensorboard", tmp_path).parent))
    found.Reload()
    assert {(tag, e.step, e.value) for tag in found.Tags()["scalars"] for e in found.Scalars(tag)} == expected()


@pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")  # MLflow's, of SQLAlchemy 2.1
def test_mlflow_keeps_it(tmp_path: Path) -> None:
    pytest.importorskip("mlflow")
    with sqlite3.connect(export(FOUND, "mlflow", tmp_path)) as db:
        assert {*db.execute("SELECT key, step, value FROM metrics")} == expected()
        params = dict(db.execute("SELECT key, value FROM params"))
        assert params == {"student.lr": "0.1", "curriculum.levels": "[1, 2]", "long": "x" * 500}
        assert [*db.execute("SELECT name, status FROM runs")] == [(FOUND.run, "FINISHED")]


def test_wandb_keeps_it_offline(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    from wandb.proto import wandb_internal_pb2

    place = export(FOUND, "wandb", tmp_path)
    (file,) = place.glob("*.wandb")
    kept = set()
    for data in wandb_records(file.read_bytes()):
        record = wandb_internal_pb2.Record.FromString(data)
        if record.WhichOneof("record_type") == "history":
            values = {(one.key or one.nested_key[0]): one.value_json for one in record.history.item}
            step = int(values.pop("training/step", values["_step"]))
            kept |= {(name, step, float(text)) for name, text in values.items() if not name.startswith("_")}
    assert kept == expected() and place.name.startswith("offline-run-")


WATCHED = """
import json, sys
from pathlib import Path
seen, watched = [], {"socket.getaddrinfo", "subprocess.Popen"}
sys.addaudithook(lambda name, given: seen.append([name, str(given)]) if name in watched else None)
from agent0.assembly.tracking.sinks import export
from tests.test_tracking import FOUND
export(FOUND, sys.argv[1], Path(sys.argv[2]))
print(json.dumps(seen))
"""
"""Exports, and prints which hosts were looked up and which programs were started."""


@pytest.mark.parametrize("package", ["mlflow", "wandb"])
def test_a_package_reports_nothing_to_its_maker(package: str, tmp_path: Path) -> None:
    """Under pytest MLflow is silent of itself, so this is a process that looks like none of a test."""
    pytest.importorskip(package)
    plain = {name: os.environ[name] for name in ("PATH", "LC_ALL") if name in os.environ} | {"HOME": str(tmp_path)}
    words = [sys.executable, "-c", WATCHED, package, str(tmp_path / "out")]
    said = subprocess.run(words, env=plain, cwd=ROOT, capture_output=True, text=True, check=True)
    seen = json.loads(said.stdout.splitlines()[-1])
    assert [given for name, given in seen if name == "socket.getaddrinfo"] == []
    if package == "wandb":  # its service is no Python: it is told
        assert any("wandb-core" in given and "--no-observability" in given for _, given in seen)


def wandb_records(data: bytes) -> Iterator[bytes]:
    """The records of a .wandb file: after 7 bytes, blocks of 32 KiB of parts (crc, length, kind), as in LevelDB."""
    assert data[:4] == b":W&B"
    at, held = 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        _, size, kind = struct.unpack("<IHB", data[at : at + 7])
        held, at = held + data[at + 7 : at + 7 + size], at + 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield held
            held = b""


@pytest.mark.parametrize("package", ["mlflow", "wandb"])
def test_a_package_that_is_missing_is_named(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(RequirementsError, match=f"{package} is not installed.*pip install {package}"):
        export(FOUND, package, tmp_path)


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no format 'tensorbord'.*Did you mean tensorboard"):
        export(FOUND, "tensorbord", tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(OperationError, match="cannot be written"):
        export(FOUND, "csv", tmp_path / "file" / "folder")


def test_a_run_is_exported_by_its_command(tmp_path: Path) -> None:
    with attached(tmp_path / "data") as home:
        begun = call("run", "start", *SMALL, "--json", home=home)
        assert begun.code == 0, begun.err
        said = call("run", "export", "LAST", "--out", str(tmp_path / "out"), "--json", home=home)
    assert said.code == 0 and said.json["written"] == str(tmp_path / "out" / f"{begun.json['run']}.csv")
    with Path(said.json["written"]).open() as file:
        rows = [*csv.DictReader(file)]
    assert [row["step"] for row in rows] == ["0", "1"] and said.json["steps"] == 2
    curve = [point["validation"] for point in begun.json["validation"]]
    assert [float(row["curve/validation"]) if row["curve/validation"] else None for row in rows] == curve
    scores = {bool(test["forced_tool"]): test["accuracy"] for test in begun.json["test"][:2]}
    assert float(rows[0]["test/accuracy"]) == scores[False] and set(SINKS) >= {"csv"}
