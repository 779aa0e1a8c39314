"""``agent0 verify pairs``: what it counts, and what it says of rows that are none."""

import json
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ((GOOD, "{broken"), "line 2: no JSON"),
        (({**GOOD, "candidate": 5},), "line 1: candidate is missing or no text"),
        (({**GOOD, "label": "maybe"},), "neither accept nor reject"),
        ((GOOD, GOOD), "'a' occurs twice"),
        (("",), "has no rows"),
        (("[1]",), "pair_id is missing"),
        (({"pair_id": "x"},), "setup is missing"),
    ],
)
def test_rows_that_are_none_are_named(tmp_path: Path, rows: tuple[Any, ...], told: str) -> None:
    said = decide(tmp_path, *rows)
    assert said.code == 2
    assert told in said.err
