"""A good file of another framework is named as what it is, by whoever takes a file; one of ours, or a damaged one, is
never taken for it."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from agent0.provenance.foreign_files import foreign_format, foreign_kind
from tests.terminal import agent0

TURNS = [{"role": "user", "content": "2+2?"}]
REPLY = [{"role": "assistant", "content": "4"}]
VERIFIERS = {"example_id": 0, "prompt": TURNS, "completion": REPLY, "answer": "4", "reward": 1.0, "task": "sums"}
ATIF = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s",
    "agent": {"name": "a", "version": "1"},
    "steps": [{"step_id": 1, "source": "user", "message": "2+2?"}],
}
SAMPLES = {
    "doc_id": 3,
    "doc": {"q": "2+2?"},
    "target": "4",
    "resps": [["4"]],
    "filtered_resps": ["4"],
    "exact_match": 1,
}
INSPECT = {"version": 2, "status": "success", "eval": {"task": "sums", "model": "m"}, "samples": []}
FOREIGN: dict[str, tuple[str, str]] = {
    "rows": ("verifiers", json.dumps(VERIFIERS) + "\n" + json.dumps(VERIFIERS)),
    "rows with a mark": ("verifiers", "\ufeff" + json.dumps(VERIFIERS)),
    "rows after blank lines": ("verifiers", "\n\n" + json.dumps(VERIFIERS) + "\n"),
    "rows in an array": ("verifiers", json.dumps([VERIFIERS, VERIFIERS])),
    "rows of text": ("verifiers", json.dumps({**VERIFIERS, "prompt": "2+2?", "completion": "4"})),
    "a trajectory on one line": ("ATIF", json.dumps(ATIF)),
    "a trajectory over lines": ("ATIF", json.dumps(ATIF, indent=2)),
    "an early trajectory": ("ATIF", json.dumps({**ATIF, "schema_version": "ATIF-v1.0"}, indent=1)),
    "samples": ("lm-evaluation-harness", json.dumps(SAMPLES) + "\n"),
    "samples without a filter": (
        "lm-evaluation-harness",
        json.dumps({key: value for key, value in SAMPLES.items() if key != "filtered_resps"}),
    ),
    "a log of Inspect": ("Inspect", json.dumps(INSPECT, indent=2)),
}
PAIR = {"pair_id": "1", "gold": "4", "candidate": "4", "form": "number", "label": "correct"}
NONE: dict[str, str] = {
    "nothing": "",
    "blanks": " \n\n",
    "a pair": json.dumps(PAIR),
    "a pair with more fields": json.dumps({**PAIR, **VERIFIERS}),
    "no JSON": "prompt completion reward",
    "cut JSON": json.dumps(VERIFIERS)[:-9],
    "words of it inside a text": json.dumps({"note": json.dumps(ATIF)}),
    "another version word": json.dumps({"schema_version": "2.0", "steps": []}),
    "a version that is no text": json.dumps({"schema_version": ["ATIF-v1.7"], "steps": []}),
    "a list of numbers": "[1, 2]",
    "an empty list": "[]",
    "endless nesting": "[" * 100_000,
    "objects in objects": '{"a":' * 100_000,
    "a preference row": json.dumps({"prompt": TURNS, "chosen": REPLY, "rejected": REPLY}),
    "our own export": json.dumps({"task": "t", "attempt": "t-a0", "transcript": TURNS, "reward": 1.0}),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_known(name: str) -> None:
    kind, text = FOREIGN[name]
    assert kind in foreign_kind(text)


@pytest.mark.parametrize("name", NONE)
def test_what_is_no_foreign_file_is_none(name: str) -> None:
    assert foreign_kind(NONE[name]) == ""


@pytest.mark.parametrize("name", ["rows", "a trajectory over lines", "samples", "a log of Inspect"])
@pytest.mark.parametrize("words", [("events", "import"), ("events", "verify"), ("verify", "pairs")], ids=" ".join)
def test_commands_that_take_a_file_name_it(tmp_path: Path, words: tuple[str, ...], name: str) -> None:
    kind, text = FOREIGN[name]
    (tmp_path / "given").write_text(text, encoding="utf-8")
    answer = agent0(*words, str(tmp_path / "given"), home=tmp_path / "home")
    assert answer.code == 2 and kind in answer.err
    assert ("agent0 trajectory import" if foreign_format(text) else "agent0 verify pairs") in answer.err
    assert "damaged" not in answer.err and not (tmp_path / "home").exists()


@pytest.mark.parametrize("words", [("events", "import"), ("view",)])
def test_a_damaged_archive_is_still_called_damaged_and_any_other_file_never(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    given = tmp_path / "given.tar"
    for content in (b"\xff\x00" * 2000, b"Dear all,\n"):
        given.write_bytes(content)
        answer: Any = agent0(*words, str(given), home=tmp_path / "home")
        assert answer.code == 1 and "is no archive" in answer.err and "is damaged" not in answer.err
    with tarfile.open(given, "w") as tar:
        tar.addfile(tarfile.TarInfo("manifest.json"))
    given.write_bytes(given.read_bytes()[:512] + b"\xff" * 512)
    assert "is damaged" in agent0(*words, str(given), home=tmp_path / "home").err
