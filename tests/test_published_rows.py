"""Rows as their publishers write them and as people's tools leave them: read as they are, or refused by name."""

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from agent0.errors import ConfigError, NotFoundError, RequirementsError
from agent0.evaluation.benchmarks import Item, benchmarks, read_items
from agent0.infra.storage.datasets import find, load
from agent0.verification.labelled_pairs import decoded, read_pairs
from tests.terminal import agent0

DATA = Path(__file__).parent / "data" / "published_rows.jsonl"
CASES = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
ROW = {"question": "Mia has 4 boxes of 6 pens. How many?", "answer": "4*6=<<4*6=24>>24\n#### 24"}


def lines(*rows: Any) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def text_of(case: dict[str, Any]) -> str:
    if "text" in case:
        return str(case["text"])
    return json.dumps(case["rows"]) if case["file"].endswith(".json") else lines(*case["rows"])


def read(case: dict[str, Any], folder: Path) -> list[Item]:
    entry = benchmarks()[case["benchmark"]]
    (folder / case["file"]).write_bytes(text_of(case).encode())
    rows = find(folder, entry.files, entry.name, entry.parts)
    return read_items(entry, rows.text, rows.name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_rows_are_read_as_they_are_or_refused_by_name(case: dict[str, Any], tmp_path: Path) -> None:
    if "refused" in case:
        with pytest.raises(ConfigError) as refused:
            read(case, tmp_path)
        said = f"{refused.value}"
        assert re.search(case["refused"], said, re.DOTALL) and case["file"] in said, said
        return
    first, *others = read(case, tmp_path)
    assert (first.gold, len(others) + 1) == (case["gold"], case.get("n", 1))
    assert case.get("question", "") in first.question and first.id == case.get("item", first.id)
    assert case.get("facts", {}).items() <= dict(first.facts).items()
    assert not first.problem or case.get("imports", "") in first.problem.test


@pytest.mark.parametrize("case", [case for case in CASES if "refused" not in case], ids=lambda case: case["id"])
def test_rows_once_converted_stay_as_they_are(case: dict[str, Any]) -> None:
    """What ``bench fetch`` writes is read as the file that it fetched is."""
    from agent0.evaluation.benchmarks import converted

    entry = benchmarks()[case["benchmark"]]
    once = [row for _, row in converted(entry, text_of(case), case["file"])]
    text = lines(*once)
    assert [row for _, row in converted(entry, text, case["file"])] == once
    assert read_items(entry, text, case["file"]) == read_items(entry, text_of(case), case["file"])


def test_every_kind_of_file_gives_the_same_rows(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    text = lines(ROW, {"question": "1+1?", "answer": "#### 2"})
    rows = [json.loads(line) for line in text.splitlines()]
    parquet = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), parquet)
    packed = gzip.compress(text.encode())
    files = {
        "gsm8k_test.jsonl": text.encode(),
        "gsm8k_test.json": json.dumps(rows).encode(),
        "gsm8k_test.jsonl.gz": packed,
        "gsm8k_test.parquet": parquet.getvalue().to_pybytes(),
        "gsm8k.jsonl": text.encode("utf-8-sig"),
        "gsm8k.parquet": parquet.getvalue().to_pybytes(),
    }
    plain = read_items(benchmarks()["gsm8k"], text, "x")
    for number, (name, data) in enumerate(files.items()):
        (folder := tmp_path / str(number)).mkdir()
        (folder / name).write_bytes(data)
        rows_file = find(folder, ("gsm8k_test.jsonl",), "gsm8k")
        assert (rows_file.name, read_items(benchmarks()["gsm8k"], rows_file.text, "x")) == (name, plain)
        itself = find(folder / name, ("gsm8k_test.jsonl",), "gsm8k")
        assert itself == rows_file, "a file may be named in place of its folder"
    for name, data in {"a.jsonl": packed, "b.jsonl": text.encode("utf-16"), "c.gz": text.encode()}.items():
        (tmp_path / name).write_bytes(data)
        assert load(tmp_path / name).text == text, "by what it holds, whatever its name says"


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.jsonl", gzip.compress(b"x" * 99_999, mtime=0)[:40], "ends in the middle"),
        ("a.jsonl", b"\x1f\x8bno gzip", "cannot be read"),
        ("a.parquet", b"PAR1 and no more", "cannot be read"),
        ("a.jsonl", b'{"question": "caf\xe9"}', "UTF-8"),
        ("a.jsonl", b"\xff\xfe\x00", "cannot be read"),
        ("a.parquet", b"", "no rows"),
    ],
)
def test_a_file_that_is_damaged_is_refused_by_name(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ConfigError) as refused:
        read_items(benchmarks()["gsm8k"], load(tmp_path / name).text, name)
    assert why in str(refused.value) and name in str(refused.value)


def test_parquet_without_its_reader_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "pyarrow.parquet", raising=False)
    (tmp_path / "gsm8k_test.parquet").write_bytes(b"PAR1....PAR1")
    with pytest.raises(RequirementsError, match="pyarrow"):
        find(tmp_path, ("gsm8k_test.jsonl",), "gsm8k")


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="bench fetch gsm8k"):
        find(tmp_path, ("gsm8k_test.jsonl",), "gsm8k")
    with pytest.raises(NotFoundError):
        find(tmp_path / "gsm8k_test.jsonl", ("gsm8k_test.jsonl",), "gsm8k")


def test_the_list_counts_what_a_run_can_read_and_names_what_it_cannot(tmp_path: Path) -> None:
    (tmp_path / "gsm8k_test.jsonl").write_text("\ufeff" + lines(ROW, ROW))
    (tmp_path / "bbh_logic.json").write_text(json.dumps({"examples": [{"input": "i", "target": "Yes"}] * 3}))
    (tmp_path / "mbpp_sanitized.jsonl").write_text(lines({"task_id": 1}))
    (tmp_path / "svamp.jsonl").write_text('{"ID"')
    listed = agent0("bench", "list", "--data", str(tmp_path), "--json", home=tmp_path / "home").json
    rows = {row["benchmark"]: (row["rows"], row["problem"]) for row in listed if not row["made"]}
    assert rows["gsm8k"] == (2, "") and rows["bbh"] == (3, "") and rows["aime24"] == (None, "")
    assert rows["mbpp"][0] is None and "mbpp_sanitized.jsonl, line 1" in rows["mbpp"][1]
    assert rows["svamp"][0] is None and "cut off" in rows["svamp"][1]
    said = agent0("bench", "list", "--data", str(tmp_path), home=tmp_path / "home")
    assert "mbpp_sanitized.jsonl, line 1" in said.out + said.err
    words = ("--data", str(tmp_path), "--provider", "scripted")
    refused = agent0("bench", "run", "mbpp", *words, home=tmp_path / "home")
    assert (refused.code, "mbpp_sanitized.jsonl, line 1" in refused.err) == (2, True)


PAIR = {"pair_id": "1", "gold": "5", "candidate": r"\boxed{5}", "form": "response", "label": "accept"}


def test_pairs_with_a_byte_order_mark_or_other_line_ends_are_pairs() -> None:
    text = json.dumps(PAIR)
    for data in (text.encode("utf-8-sig"), text.encode() + b"\r\n", b"\xef\xbb\xbf\r\n" + text.encode()):
        assert read_pairs(decoded(data, "pairs.jsonl"), "pairs.jsonl") == [PAIR]


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["kind"] == "gold-with-its-solution"], ids=lambda case: case["id"]
)
def test_a_gold_of_a_pair_is_one_answer_too(case: dict[str, Any]) -> None:
    text = json.dumps({**PAIR, "gold": case["rows"][0]["answer"]})
    if "refused" in case:
        with pytest.raises(ConfigError, match=r"pairs\.jsonl, line 1: .*gold"):
            read_pairs(text, "pairs.jsonl")
    elif case["benchmark"] != "aime24":
        assert read_pairs(text, "pairs.jsonl")[0]["gold"] == case["gold"]


TASK = {
    "canary": "x",
    "examples": [{"input": "True and False is", "target": "False"}, {"input": "not False is", "target": "True"}],
}
LETTER = {"examples": [{"input": "Which?\nOptions:\n(A) a\n(B) b", "target": "(B)"}]}


@pytest.mark.parametrize("place", ["", "bbh"])
def test_a_folder_of_the_published_files_of_tasks_is_read_as_it_is(tmp_path: Path, place: str) -> None:
    (tmp_path / place).mkdir(exist_ok=True)
    for name, content in {"web_of_lies.json": TASK, "navigate.json": LETTER, "package.json": {"name": "x"}}.items():
        (tmp_path / place / name).write_text(json.dumps(content, indent=2))
    entry = benchmarks()["bbh"]
    rows = find(tmp_path, entry.files, entry.name, entry.parts)
    items = read_items(entry, rows.text, rows.name)
    assert [item.id for item in items] == ["bbh/navigate/0", "bbh/web_of_lies/0", "bbh/web_of_lies/1"]
    assert [item.cluster for item in items] == ["navigate", "web_of_lies", "web_of_lies"] and items[0].gold == "(B)"
    (tmp_path / place / "snarks.json").write_text(json.dumps({"examples": [{"input": "q"}]}))
    with pytest.raises(ConfigError, match=r"snarks\.json, row 1: no row of bbh.*It has input"):
        other = find(tmp_path, entry.files, entry.name, entry.parts)
        read_items(entry, other.text, other.name)
    assert other.sha256 != rows.sha256
    (tmp_path / "bbh_logic.jsonl").write_text(lines({"id": "bbh/a/1", "question": "q", "answer": "True"}))
    assert find(tmp_path, entry.files, entry.name, entry.parts).name == "bbh_logic.jsonl"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (lines({"question": "q", "answer": "Mia has 24 pens."}), "line 1: no row of gsm8k"),
        ('{"question": "q", "answer"', "line 1: no JSON"),
        ("<html>", "It is a web page"),
        ("", "has no rows"),
        (lines({"question": "q", "answer": "#### 3"}) + "{}\n", "line 2: no row of gsm8k"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_before_a_run_is(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "gsm8k_test.jsonl").write_text(text)
    result = agent0("bench", "run", "gsm8k", "--data", str(tmp_path), "--provider", "scripted")
    shown = " ".join((result.out + result.err).split())
    assert result.code == 2 and "Benchmark run" not in shown and "Traceback" not in shown
    assert "gsm8k_test.jsonl" in shown and named in shown
