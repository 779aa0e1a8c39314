"""Files of traces that are no lines of JSON: Inspect's archives, tables and pages; what is hostile in them is refused
by file and field, and an import that was cut off goes on from its file alone."""

import asyncio
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from agent0.assembly.log.access import open_log
from agent0.errors import ConfigError
from agent0.experiments.interchange.foreign_run import events_of
from agent0.experiments.interchange.formats import foreign_file
from agent0.infra.storage import eval_archive
from agent0.infra.storage.datasets import load
from agent0.ports.storage import Dataset
from tests.api.conftest import seeing
from tests.kept_open import attached
from tests.memory import MemoryArtifacts
from tests.pasts import keep, settings_at, tell
from tests.story_gains import NOON
from tests.terminal import agent0 as call
from tests.test_interchange import LOG, NODES, ROUND_TRIP, ROW, TRACE, USER, exported, imported, rows_file

CALL = {"id": "c", "type": "function", "function": "python", "arguments": {"code": "print(4)"}}
THOUGHT = [{"type": "reasoning", "reasoning": "Easy."}, {"type": "text", "text": "I compute."}]
MESSAGES = [
    USER,
    {"role": "assistant", "content": THOUGHT, "tool_calls": [CALL]},
    {"role": "tool", "content": "4", "tool_call_id": "c", "function": "python"},
    {"role": "assistant", "content": "It is \\boxed{4}."},
]
SAMPLES = [{**LOG["samples"][0], "id": number, "messages": MESSAGES} for number in range(3)]
TOKENS: dict[str, Any] = {
    "node_id": "n", "prompt_token_ids": [1, 2], "completion_token_ids": [3, 4], "per_token_logps": [-0.5, -1.0],
    "loss_mask": [0, 0, 1, 1], "request": {"messages": [USER]},
    "response": {"choices": [{"message": {"role": "assistant", "content": "\\boxed{4}"}}]},
}  # fmt: skip


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with a run of ours, whose server stands."""
    folder = tmp_path_factory.mktemp("files")
    keep(folder, *tell())
    with attached(folder):
        yield folder


def archive(*files: tuple[str, object], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as writing:
        for name, content in files:
            writing.writestr(name, content if isinstance(content, str | bytes) else json.dumps(content))
    return out.getvalue()


HEADER = {name: value for name, value in LOG.items() if name != "samples"}
FILES = [("header.json", HEADER), *((f"samples/{sample['id']}_epoch_1.json", sample) for sample in SAMPLES)]


def zstd(*files: tuple[str, object]) -> bytes:
    """An archive as Inspect writes them, which the zip of this Python does not."""
    out, directory = b"", b""
    for name, content in files:
        plain = json.dumps(content).encode()
        packed = pyarrow.Codec("zstd").compress(plain).to_pybytes()
        common = struct.pack("<HHHHHIIIHH", 45, 0, 93, 0, 0, zlib.crc32(plain), len(packed), len(plain), len(name), 0)
        directory += b"PK\1\2" + struct.pack("<H", 45) + common + struct.pack("<HHHII", 0, 0, 0, 0, len(out))
        directory += name.encode()
        out += b"PK\3\4" + common + name.encode() + packed
    ends = struct.pack("<HHHHIIH", 0, 0, len(files), len(files), len(directory), len(out), 0)
    return out + directory + b"PK\5\6" + ends


@pytest.mark.parametrize("pack", [archive, zstd])
def test_an_archive_is_read_as_the_log_that_it_is(kept: Path, tmp_path: Path, pack: Callable[..., bytes]) -> None:
    path = tmp_path / f"{pack.__name__}.eval"
    path.write_bytes(pack(*FILES))
    result = imported(kept, path)
    assert result["format"] == "inspect" and (result["tasks"], result["attempts"]) == (3, 3)
    row = exported(kept, result["run"])[0]
    assert row["reward"] == 1.0 and row["tool_calls"] == 1 and row["answer"] == "4"
    assert [turn["thinking"] for turn in row["transcript"]] == ["", "Easy.", "", ""]
    assert row["transcript"][2]["name"] == "python"


def test_an_archive_of_an_evaluation_that_was_cut_off_has_what_was_done(tmp_path: Path) -> None:
    (tmp_path / "a.eval").write_bytes(archive(("_journal/start.json", {"version": 2, "eval": LOG["eval"]}), *FILES[1:]))
    assert len(foreign_file(load(tmp_path / "a.eval"), "").attempts) == 3


def test_what_no_event_keeps_of_a_sample_may_be_as_large_as_it_is(tmp_path: Path) -> None:
    heavy = {**SAMPLES[0], "attachments": {"a": "x" * 300_000}, "events": [{"a": "y" * 300_000}], "store": {}}
    (tmp_path / "a.eval").write_bytes(archive(FILES[0], ("samples/0.json", heavy)))
    (attempt,) = foreign_file(load(tmp_path / "a.eval"), "").attempts
    assert {"attachments", "events"} <= {*attempt.losses} and "store" not in attempt.losses
    texts = [{**MESSAGES[0], "content": "x" * 300_000}]
    (tmp_path / "b.eval").write_bytes(archive(FILES[0], ("samples/0.json", {**heavy, "messages": texts})))
    with pytest.raises(ConfigError, match=r"samples\.0\.messages\.0\.content"):
        foreign_file(load(tmp_path / "b.eval"), "")


def _encrypted() -> bytes:
    content = bytearray(archive(*FILES))
    for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(mark) + at] |= 1
    return bytes(content)


def _sum(document: object) -> bytes:
    return struct.pack("<I", zlib.crc32(json.dumps(document).encode()))


def _bomb() -> bytes:
    return archive(FILES[0], ("samples/1_epoch_1.json", b"[" + b" " * 3_000_000))


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a cut archive": (lambda: archive(*FILES)[:-60], "damaged"),
    "another content": (lambda: zstd(*FILES).replace(_sum(HEADER), b"\0\0\0\0"), "Bad CRC-32"),
    "an encrypted one": (_encrypted, "encrypted"),
    "more than it says": (_bomb, "too large unpacked"),
    "no header": (lambda: archive(*FILES[1:]), "without header.json"),
    "a header that is none": (lambda: archive(("header.json", "[1]"), *FILES[1:]), "no JSON object"),
    "a sample that is cut": (lambda: archive(FILES[0], ("samples/1.json", '{"id": 1')), "'samples/1.json' is no JSON"),
    "one file twice": (lambda: archive(FILES[0], FILES[1], FILES[1]), "each file once"),
    "a sample of another kind": (lambda: archive(FILES[0], ("samples/1.json", {"id": 1})), "sample 1: no row"),
    "a path that leads away": (lambda: archive(("../header.json", HEADER)), "without header.json"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_and_leaves_nothing(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent0.infra.storage.datasets.LARGEST", 2_000_000)
    content, why = HOSTILE[name]
    (tmp_path / "theirs.eval").write_bytes(content())
    answer = call("trajectory", "import", str(tmp_path / "theirs.eval"), home=tmp_path / "home")
    assert answer.code == 2 and "theirs.eval" in answer.err and why in answer.err, answer.err
    assert len(answer.err.strip().splitlines()) == 1 and not (tmp_path / "home").exists()


def test_sizes_that_an_archive_states_are_not_believed() -> None:
    content = archive(*FILES)
    with pytest.raises(ValueError, match="too large unpacked"):
        eval_archive.eval_log(content, 400)
    with pytest.raises(ValueError, match="too large unpacked"):
        eval_archive.eval_log(zstd(*FILES), 400)


def test_a_table_comes_back_with_the_same_rewards_and_tokens(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []
    with monkeypatch.context() as patch:
        patch.setattr("typer.echo", lambda content, nl: written.append(content))
        assert call("trajectory", "export", "r1", "--format", "parquet", home=kept).code == 0
    (tmp_path / "ours.parquet").write_bytes(*written)
    result = imported(kept, tmp_path / "ours.parquet")
    assert result["format"] == "openai-chat" and not any(line["losses"] for line in result["lines"])
    for before, after in zip(exported(kept, "r1"), exported(kept, result["run"]), strict=True):
        assert [before[name] for name in ROUND_TRIP] == [after[name] for name in ROUND_TRIP]


def test_every_task_is_one_prompt(kept: Path) -> None:
    rows, attempts = exported(kept, "r1", "trl-prompt"), exported(kept, "r1")
    assert len(rows) == len({row["task"] for row in attempts}) < len(attempts)
    assert all(row["prompt"][-1]["role"] == "user" and isinstance(row["answer"], str) for row in rows)


def test_a_page_of_attempts_obeys_none_of_their_texts(kept: Path, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>\u202e{{7*7}}"
    row = {**ROW, "prompt": [{**USER, "content": evil}], "completion": [{"role": "assistant", "content": evil}]}
    result = imported(kept, rows_file(tmp_path / "evil.jsonl", row))
    page = call("trajectory", "export", result["run"], "--format", "html", home=kept)
    assert page.code == 0 and "default-src 'none'" in page.out
    assert "<script" not in page.out and "<img" not in page.out and "\u202e" not in page.out and "{{7*7}}" in page.out
    whole = call("trajectory", "export", "r1", "--format", "html", "--redact", "boxed", home=kept).out
    assert whole.count("<details") == len(exported(kept, "r1")) and "boxed" not in whole


BAD_TRACES: dict[str, tuple[dict[str, Any], str]] = {
    "a mask that is too short": ({"loss_mask": [0, 0, 1]}, "Field 'turns.0'"),
    "a mark that is none": ({"loss_mask": [0, 0, 1, 2]}, "turns.0.loss_mask.3"),
    "an id below zero": ({"completion_token_ids": [3, -4]}, "turns.0.completion_token_ids.1"),
    "no question": ({"request": {}, "response": {}}, "turns.0.request.messages"),
    "a megabyte": ({"node_id": "x" * 1_000_000}, "turns.0.node_id"),
}


@pytest.mark.parametrize("name", BAD_TRACES)
def test_a_bad_training_trace_is_named_by_line_and_field(tmp_path: Path, name: str) -> None:
    change, field = BAD_TRACES[name]
    good = {"schema_version": 1, "turns": [TOKENS]}
    path = rows_file(tmp_path / "traces.jsonl", good, {**good, "turns": [{**TOKENS, **change}]})
    answer = call("trajectory", "import", str(path), home=tmp_path / "home")
    assert answer.code == 2 and "traces.jsonl, line 2" in answer.err and field in answer.err, answer.err
    assert not (tmp_path / "home").exists()


def test_what_a_training_trace_masks_is_not_trained_on() -> None:
    later = {**TOKENS, "node_id": "m", "prompt_token_ids": [1, 2, 3, 4, 5], "loss_mask": [0] * 7}
    rows = Dataset("t", json.dumps({"schema_version": 1, "turns": [TOKENS, later]}), "0" * 64)
    (attempt,) = foreign_file(rows, "").attempts
    assert attempt.trajectory is not None and attempt.trajectory.token_ids == (1, 2, 3, 4, 5, 3, 4)
    assert attempt.trajectory.mask == (0, 0, 1, 1, 0, 0, 0) and attempt.trajectory.logprobs[5:] == (0.0, 0.0)


def test_an_import_that_was_cut_off_goes_on_from_its_file_alone(kept: Path, tmp_path: Path) -> None:
    path = rows_file(
        tmp_path / "cut.jsonl", *({**TRACE, "nodes": [NODES[0], NODES[2]], "id": f"{n}"} for n in range(3))
    )
    told = events_of(foreign_file(load(path), ""), MemoryArtifacts(), NOON, "")

    async def begin() -> None:
        async with open_log(settings_at(kept), make=True) as log:
            await log.append(told[:5])

    asyncio.run(begin())
    refused = call("run", "resume", told[0].run, "--detach", home=kept)
    assert refused.code == 1 and len(refused.err.strip().splitlines()) == 1
    assert "was cut off" in refused.err and "agent0 trajectory import cut.jsonl" in refused.err
    assert imported(kept, path)["events"] == len(told) - 5
    assert "is finished" in call("run", "resume", told[0].run, home=kept).err


def test_a_file_that_was_cut_off_as_one_format_goes_on_as_no_other(kept: Path, tmp_path: Path) -> None:
    path = rows_file(tmp_path / "both.jsonl", *({**ROW, "example_id": n} for n in range(3)))
    told = events_of(foreign_file(load(path), ""), MemoryArtifacts(), NOON, "")

    async def begin() -> None:
        async with open_log(settings_at(kept), make=True) as log:
            await log.append(told[:5])

    asyncio.run(begin())
    refused = call("trajectory", "import", str(path), "--format", "trl", home=kept)
    assert refused.code == 2 and "was imported as verifiers" in refused.err and "--format verifiers" in refused.err
    assert len(refused.err.strip().splitlines()) == 1
    assert imported(kept, path)["events"] == len(told) - 5


def test_pages_and_comparisons_take_a_foreign_run_as_one_of_ours(kept: Path, tmp_path: Path) -> None:
    wrong = {**ROW, "completion": [{"role": "assistant", "content": "\\boxed{5}"}], "reward": 0.0}
    first = imported(kept, rows_file(tmp_path / "first.jsonl", ROW, wrong))["run"]
    second = imported(kept, rows_file(tmp_path / "second.jsonl", wrong, ROW, ROW))["run"]
    for words in (("report", first), ("run", "ledger", first), ("task", "list", first)):
        answer = call(*words, home=kept)
        assert answer.code == 0 and "Traceback" not in answer.err, (words, answer.err)
    pages = seeing(kept)
    for path in ("", "/iterations/0", "/tasks/t0-000", "/trajectories/t0-000-a0", "/trajectories/t0-000-a0.html"):
        assert pages.get(f"/runs/{first}{path}", headers={"Accept": "text/html"}).status_code == 200, path
    compared = call("experiment", "compare", first, second, home=kept)
    assert compared.code == 0, compared.err
    for format in ("jsonl", "atif", "trl", "trl-unpaired", "inspect", "pi", "verifiers", "verifiers-trace"):
        assert exported(kept, first, format)
