"""Answers in other notations, written before the rules for them were."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.grading import answer_in, grade
from agent0.grading.answer_types import left_undone
from agent0.grading.comparison.words.calendar import time_of
from agent0.grading.math.symbolic import compared
from agent0.verification.labelled_pairs import read_pairs

PAIRS = Path(__file__).parent / "data" / "spelled_pairs.jsonl"
BY_CAUSE: dict[str, list[dict[str, Any]]] = defaultdict(list)
for _row in read_pairs(PAIRS.read_text(encoding="utf-8"), PAIRS.name):
    BY_CAUSE[_row["category"]].append(_row)


@pytest.mark.parametrize("cause", BY_CAUSE)
def test_pairs_of_every_cause_are_decided_as_labelled(cause: str) -> None:
    """Without the symbolic engine, which is asked about few."""
    rows = BY_CAUSE[cause]
    labels = [row["label"] for row in rows]
    assert min(labels.count("accept"), labels.count("reject")) >= 20
    found = [(row, compared(row["gold"], row["candidate"], reply=row["form"] == "response")) for row in rows]
    wrong = [
        (row["gold"], row["candidate"])
        for row, verdict in found
        if not verdict.symbolic and (verdict.correct is True) != (row["label"] == "accept")
    ]
    assert wrong == []
    assert sum(verdict.symbolic for _, verdict in found) <= (30 if cause in ("engine", "arcsine") else 8)


@given(st.integers(0, 23), st.integers(0, 59))
def test_hours_with_an_h_are_those_of_the_whole_day(hour: int, minute: int) -> None:
    assert time_of(f"{hour}h{minute:02}") == (60 * hour + minute, True)


@given(st.integers(2, 60), st.integers(-500, 500), st.integers(-500, 500))
def test_congruences_are_equal_where_their_residues_are(modulus: int, one: int, other: int) -> None:
    gold, said = rf"x \equiv {one} \pmod{{{modulus}}}", f"{other} (mod {modulus})"
    assert grade(gold, said).correct is ((one - other) % modulus == 0)
    assert grade(gold, rf"x \equiv {one} \pmod{{{modulus + 1}}}").correct is False
    both = {one % modulus, other % modulus}
    assert grade(rf"x \equiv {one}, {other} \pmod{{{modulus}}}", f"x = {one} (mod {modulus})").correct is (
        len(both) == 1
    )


@given(st.sampled_from(["sin", "cos", "tan"]), st.integers(0, 24))
def test_functions_of_multiples_of_15_degrees_are_exact(function: str, n: int) -> None:
    import math

    if function == "tan" and n % 12 == 6:
        return
    value = getattr(math, function)(math.radians(15 * n))
    near = {math.sin(math.radians(15 * k)) for k in range(24)} | {math.tan(math.radians(15 * k)) for k in range(6)}
    assert any(abs(abs(value) - abs(other)) < 1e-9 for other in near)
    for k in range(24):
        if function == "tan" and k % 12 == 6:
            continue
        same = abs(getattr(math, function)(math.radians(15 * k)) - value) < 1e-9
        assert (grade(rf"\{function} {15 * n}^\circ", rf"\{function} {15 * k}^\circ").correct is True) is same


def test_work_left_undone_stays_so() -> None:
    for wanted, said in (("10", "5C2"), ("10", "5 choose 2"), ("6", r"\gcd(12,18)"), ("1/2", r"\sin 30^\circ")):
        assert grade(wanted, said).correct is False and left_undone("value", wanted, said), said
        assert grade(said, wanted).correct is True
    for wanted, said in (("1/3", "0.(3)"), ("7", r"x \equiv 7 \pmod{11}"), (r"\{1,2\}", "{1; 2}"), ("[1,2]", "[1; 2]")):
        assert not left_undone("value", wanted, said), said


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        ("7", r"\frac{14}{2}"),
        ("12", "24/2"),
        (r"\frac{4}{9}", r"4 \cdot \frac{1}{9}"),
        (r"12\frac{3}{5}", r"12 + \frac{3}{5}"),
    ],
)
def test_what_is_equal_may_still_be_no_answer(gold: str, said: str) -> None:
    """Whoever wants a number wants it written as one; who has it unevaluated takes its value."""
    refused = compared(gold, said)
    assert refused.correct is False and "undone" in refused.reason
    assert compared(gold, gold).correct is compared(said, gold).correct is True


HOSTILE = [
    "[1;" * 150, "5C" * 200, r"\begin{cases}" * 60, "x≠±" * 120, "(mod 5)" * 60, "f∘" * 150, "1h" * 200, "E[" * 200,
    "0." + "(1)" * 100, r"x \equiv " * 50, "]0,1[" * 80, "and x > " * 60, r"\lfloor" * 60, "⌊" * 300,
]  # fmt: skip


@pytest.mark.parametrize("said", HOSTILE, ids=lambda text: ascii(text[:12]))
@pytest.mark.parametrize(
    "gold", ["[1,2]", "5:15 p.m.", r"x \equiv 3 \pmod 5", r"\begin{cases}1&x<0\\2&x\ge0\end{cases}"]
)
def test_hostile_text_is_no_answer(gold: str, said: str) -> None:
    assert compared(gold, said).correct is not True
    assert compared(gold, f"The answer is {said}.", reply=True).correct is not True


@given(
    st.text("[](){};,hmodC≠±=<>|x12. \\", max_size=60), st.sampled_from(["[1,2]", "x=1, y=2", "3:15 p.m.", "x \\ne 1"])
)
def test_any_text_gets_a_verdict(said: str, gold: str) -> None:
    assert grade(gold, said).correct in (True, False, None)
    assert grade(gold, answer_in(said) or "").correct in (True, False, None)
    assert grade(gold, gold).correct is True
