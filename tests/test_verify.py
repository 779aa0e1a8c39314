"""``agent0 verify pairs``: what it counts, and what it says of rows that are none."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent0.errors import ConfigError
from agent0.grading.pairs import read_pairs
from tests.terminal import Said, agent0

GOOD = {"pair_id": "a", "gold": "1/2", "candidate": "0.5", "form": "answer", "label": "accept", "policy": False}
CODE = {"pair_id": "c", "setup": "", "test": "assert f(1) == 2", "entry_point": "f", "label": "accept"}


def decide(folder: Path, *rows: Any) -> Said:
    path = folder / "pairs.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return agent0("verify", "pairs", str(path), "--json", home=folder / "home")


def test_answers_and_programs_are_counted(tmp_path: Path) -> None:
    rows = [
        GOOD,
        {**GOOD, "pair_id": "b", "candidate": r"so \boxed{0.5} it is", "form": "response"},
        {**GOOD, "pair_id": "d", "candidate": "0.51", "label": "reject"},
        {**GOOD, "pair_id": "e", "candidate": "0.6"},
        {**GOOD, "pair_id": "f", "policy": True},
        {**GOOD, "pair_id": "g", "gold": r"\cos 2x", "candidate": r"1 - 2\sin^2 x"},
        {**CODE, "candidate": "def f(x): return 2"},
        {**CODE, "pair_id": "h", "candidate": "def f(x): return object()", "label": "reject"},
    ]
    found = decide(tmp_path, *rows).json
    assert (found["n"], found["wrong"], found["undecided"]) == (7, ["e"], 1)
    assert found["accuracy"] == pytest.approx(6 / 7)
    assert (found["tpr"], found["fpr"]) == (pytest.approx(4 / 5), 0.0)
    assert found["policy"]["n"] == 1
    assert 0 < found["lower95"] < found["accuracy"]


BROKEN = [
    ((GOOD, "{broken"), "line 2: no JSON"),
    (("[" * 100_000,), "line 1: no JSON"),
    (({**GOOD, "candidate": 5},), "line 1: candidate is missing or no text"),
    (({**GOOD, "gold": None},), "line 1: gold is missing or no text"),
    ((GOOD, {**GOOD, "pair_id": "b", "gold": " "}), "line 2: gold is empty"),
    (({**GOOD, "pair_id": ""},), "line 1: pair_id is empty"),
    (({**GOOD, "label": "maybe"},), "line 1: label 'maybe' is none of accept, reject"),
    (({**GOOD, "form": "essay"},), "line 1: form 'essay' is none of answer, response"),
    (({**GOOD, "policy": "no"},), "line 1: policy is neither true nor false"),
    (({**GOOD, "kind": "poem"},), "line 1: kind 'poem' is none of binary, truth, choice"),
    ((GOOD, GOOD), "'a' occurs twice"),
    (("",), "has no rows"),
    (("[1]",), "line 1: no JSON object"),
    (({"pair_id": "x"},), "line 1: setup is missing"),
    (({**CODE, "candidate": "", "test": 1},), "line 1: test is missing or no text"),
]


@pytest.mark.parametrize(("rows", "told"), BROKEN)
def test_rows_that_are_none_are_named_with_file_line_and_field(rows: tuple[Any, ...], told: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_pairs("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), "pairs.jsonl")
    assert f"pairs.jsonl{', ' if 'line' in told else ''}" in str(error.value)
    assert told in str(error.value)


def test_the_command_says_so_and_ends_with_2(tmp_path: Path) -> None:
    said = decide(tmp_path, GOOD, "{broken")
    assert (said.code, "line 2: no JSON" in said.err) == (2, True)
