"""``agent0 verify``: what is counted of pairs, what is said of rows that are none, and one verdict explained."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent0.errors import ConfigError
from agent0.events.values import ToolState
from agent0.ports.sandbox import SandboxCall, SandboxResult
from agent0.verification.labelled_pairs import decide_pairs, decoded, read_pairs
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
    assert (found["n"], found["wrong"], found["undecided"]) == (7, ["e"], 0)
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
    ((GOOD, {**GOOD, "pair_id": "b"}, GOOD), "line 3: pair_id 'a' is that of line 1 too"),
    (({key: value for key, value in GOOD.items() if key != "gold"},), "line 1: gold is missing or no text"),
    (({"pair_id": "x", "candidate": "1", "label": "accept"},), "line 1: gold is missing"),
    (({"pair_id": "x", "candidate": "", "label": "accept", "test": ""},), "line 1: setup is missing"),
    (('{"pair_id": "a", "gold": "1", "gold": "2"}',), "line 1: the field 'gold' is there twice"),
    ((GOOD, '{"pair_id": "b", "x": {"y": 1, "y": 1}}'), "line 2: the field 'y' is there twice"),
    (("",), "has no rows"),
    (("[1]",), "line 1: no JSON object"),
    (({"pair_id": "x"},), "line 1: gold is missing"),
    (({**CODE, "candidate": "", "test": 1},), "line 1: test is missing or no text"),
]


@pytest.mark.parametrize(("rows", "told"), BROKEN)
def test_rows_that_are_none_are_named_with_file_line_and_field(rows: tuple[Any, ...], told: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_pairs("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), "pairs.jsonl")
    assert f"pairs.jsonl{', ' if 'line' in told else ''}" in str(error.value)
    assert told in str(error.value)


def test_bytes_that_are_no_text_are_named_with_their_line() -> None:
    with pytest.raises(ConfigError, match=r"pairs\.jsonl, line 2: no UTF-8"):
        decoded(json.dumps(GOOD).encode() + b'\n{"gold": "\xff"}\n', "pairs.jsonl")
    assert decoded("½\n".encode(), "pairs.jsonl") == "½\n"


class _Counting:
    """A sandbox that says yes and counts how many ask at once, and how often its world is only started."""

    def __init__(self) -> None:
        self.warmed, self.inside, self.most = 0, 0, 0

    async def call(self, call: SandboxCall) -> SandboxResult:
        self.inside += 1
        self.most = max(self.most, self.inside)
        await asyncio.sleep(0)
        self.inside -= 1
        self.warmed += call.code == "pass"
        return SandboxResult(ToolState.OK, 0, "true", "", 0.0, 0.0, 0.0, "none", "test")

    async def close(self) -> None:
        """Nothing is held."""


def test_no_decision_stands_in_line_behind_another() -> None:
    sandbox = _Counting()
    hard = [{**GOOD, "pair_id": str(n), "gold": r"\int_0^\infty e^{-x} dx", "candidate": "1"} for n in range(9)]
    decided = asyncio.run(decide_pairs(hard, sandbox, 3))
    assert [one.correct for one in decided] == [True] * 9
    assert (sandbox.most, sandbox.warmed) == (3, 3), "the engine's world is there before the first clock starts"
    asyncio.run(decide_pairs([GOOD], sandbox, 3))
    assert sandbox.warmed == 3, "where nobody is asked, nothing is started"


def test_the_command_says_so_and_ends_with_2(tmp_path: Path) -> None:
    said = decide(tmp_path, GOOD, "{broken")
    assert (said.code, "line 2: no JSON" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("reply", "expected", "verdict", "place", "mend"),
    [
        (r"So \boxed{12}.", "12", "right", "the last box", ""),
        ("The answer is 13.", "12", "wrong", "a heading or sentence", "equal to 12"),
        (r"<think>\boxed{12}", "12", "wrong", "nowhere", "within a thought"),
        (r"\boxed{12} or rather \boxed{1", "12", "wrong", "not closed", "not closed"),
        (r"\boxed{6!}", "720", "wrong", "the last box", "the value"),
        ("I cannot tell.", "12", "wrong", "nowhere", "State the answer"),
        (r"\boxed{1-2\sin^2 x}", r"\cos 2x", "right", "the last box", ""),
    ],
)
def test_a_verdict_is_explained(tmp_path: Path, reply: str, expected: str, verdict: str, place: str, mend: str) -> None:
    said = agent0("verify", "answer", reply, "--expected", expected, "--json", home=tmp_path)
    explained = json.loads(said.out)
    assert explained["verdict"] == verdict and place in explained["place"] and mend in explained["mend"]
    assert explained["rule"] and bool(explained["mend"]) == (verdict != "right")


def test_a_verdict_needs_a_right_answer(tmp_path: Path) -> None:
    said = agent0("verify", "answer", "x", "--expected", " ", home=tmp_path)
    assert said.code == 2 and "There is no right answer" in said.err and "--expected" in said.err
