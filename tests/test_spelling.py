"""Answers and programs as language models write them: accepted where they are right, however they are spelled."""

from collections import defaultdict
from math import factorial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.grading import answer_in, grade
from agent0.grading.answer_types import left_undone
from agent0.grading.comparison.words.calendar import same_time, time_of
from agent0.grading.math.symbolic import compared
from agent0.grading.math.units import NUMERALS
from agent0.grading.notation.names import key_of, value_of
from agent0.grading.notation.numerals import figures
from agent0.verification.labelled_pairs import read_pairs

PAIRS = Path(__file__).parent / "data" / "written_pairs.jsonl"
BY_CAUSE: dict[str, list[dict[str, Any]]] = defaultdict(list)
for _row in read_pairs(PAIRS.read_text(encoding="utf-8"), PAIRS.name):
    BY_CAUSE[_row["category"]].append(_row)


@pytest.mark.parametrize("cause", BY_CAUSE)
def test_pairs_of_every_cause_are_decided_as_labelled(cause: str) -> None:
    """Without the symbolic engine, but for logarithms, which only it knows."""
    rows = BY_CAUSE[cause]
    assert len(rows) >= 20 and {row["label"] for row in rows} == {"accept", "reject"}
    found = {row["pair_id"]: compared(row["gold"], row["candidate"], reply=row["form"] == "response") for row in rows}
    wrong = [
        (row["gold"], row["candidate"])
        for row in rows
        if (found[row["pair_id"]].correct is True) != (row["label"] == "accept") and not found[row["pair_id"]].symbolic
    ]
    assert wrong == []
    asked = [row for row in rows if found[row["pair_id"]].symbolic and row["label"] == "accept"]
    assert all(r"\l" in row["gold"] for row in asked)


@given(st.integers(-99, 99), st.sampled_from(["think", "THINKING", "reasoning"]))
def test_what_is_thought_is_no_answer(value: int, tag: str) -> None:
    for thought in (rf"\boxed{{{value}}}", f"The answer is {value}.", f"#### {value}", f"<answer>{value}</answer>"):
        assert answer_in(f"<{tag}>{thought}</{tag}> I give up.") is None
        assert answer_in(f"Hm. {thought}</{tag}> I give up.") is None
        assert answer_in(rf"<{tag}>{thought}</{tag}> \boxed{{{value + 1}}}") == str(value + 1)
    assert answer_in("<think>The answer is 3.") is None


@given(st.integers(0, 10**9))
def test_numbers_in_words_are_those_in_figures(number: int) -> None:
    assert figures(_words(number)) == str(number)
    assert grade(str(number), _words(number)).correct is True
    assert grade(str(number + 1), _words(number)).correct is False


_ONES = list(NUMERALS)[:20]
_TENS = [word for word, n in NUMERALS.items() if n >= 20 and n % 10 == 0]


def _words(number: int) -> str:
    for size, name in ((10**9, "billion"), (10**6, "million"), (10**3, "thousand"), (100, "hundred")):
        if number >= size:
            rest = number % size
            return f"{_words(number // size)} {name}" + (f" {_words(rest)}" if rest else "")
    if number < 20:
        return _ONES[number]
    return _TENS[number // 10 - 2] + (f"-{_ONES[number % 10]}" if number % 10 else "")


@given(st.integers(0, 23), st.integers(0, 59))
def test_a_time_of_day_is_one_minute_of_it(hour: int, minute: int) -> None:
    half = "p.m." if hour >= 12 else "a.m."
    assert time_of(f"{(hour - 1) % 12 + 1}:{minute:02} {half}") == (60 * hour + minute, True)


def test_factorials_are_computed_exactly() -> None:
    for number in (0, 3, 50):
        assert grade(f"{number}!", str(factorial(number))).correct is True
        assert grade(f"{number}!", str(factorial(number) + 1)).correct is False
    assert grade(r"\frac{1}{1999!}", r"\frac{2000}{2000!}").correct is True
    assert grade(r"\frac{1}{1999!}", r"\frac{2001}{2000!}").correct is False


@given(st.integers(0, 1439), st.integers(0, 1439))
def test_a_time_without_its_half_is_of_either(wanted: int, given: int) -> None:
    clocks = [f"{(one // 60 - 1) % 12 + 1}:{one % 60:02}" for one in (wanted, given)]
    halves = ["p.m." if one >= 720 else "a.m." for one in (wanted, given)]
    whole = [f"{clock} {half}" for clock, half in zip(clocks, halves, strict=True)]
    assert same_time(*whole) is (wanted == given)
    assert same_time(whole[0], clocks[1]) is same_time(clocks[0], whole[1]) is (wanted % 720 == given % 720)
    assert same_time(*clocks) is None


HOSTILE = [
    "(" * 900, "f(" * 400 + "x", "{" * 900, r"\binom{" * 200, r"\binom{10^9}{5*10^8}", "n!" * 400, "((n)!)!" * 90,
    "!" * 900, "f'" * 300, "<think>" * 20_000, "</think>" * 20_000, "<answer>" * 20_000, '"answer": "' * 20_000,
    "&#0;" * 200, "the answer is " * 20_000, "Final Answer\n" * 20_000, "one hundred " * 60, r"\textbf{" * 300,
    r"\color{red}" * 300, "a\n" * 500_000, "$" * 1_000_000, r"\boxed{" * 150_000, "(B) is " * 400, "x^{T}" * 300,
    r"\mathbf{i}+" * 300, "1," * 450, "9" * 1_000_000, "#### " * 200_000, r"\begin{pmatrix}" * 100, r"\gcd(" * 150,
    "{x : " * 300, " " * 1_000_000,
]  # fmt: skip


GOLDS = ["17", r"\{1,2\}", "f(g(x))", r"\text{(B)}", r"\binom{n}{2}", r"\langle 1,2\rangle"]


@pytest.mark.parametrize(
    ("said", "gold"),
    [(said, gold) for n, said in enumerate(HOSTILE) for gold in GOLDS[3 * (n % 2) :][: 1 if len(said) > 1000 else 3]],
    ids=lambda text: ascii(text[:12]),
)
def test_hostile_text_is_no_answer(said: str, gold: str) -> None:
    """A megabyte too: only the end of a reply is looked at, and answers of bounded length are respelled."""
    for reply in (True, False):
        found = compared(gold, said, reply=reply)
        assert found.correct is not True and not found.symbolic and found.reason


@settings(max_examples=80, deadline=None)
@given(
    st.text("()[]{}^_'!\\fgxn12,<>&;=|. ", max_size=80), st.sampled_from(["f(x)", r"\{1,2\}", "n!", "(1,2)", "noon"])
)
def test_any_text_gets_a_verdict_and_says_what_it_says(said: str, gold: str) -> None:
    assert grade(gold, said).correct in (True, False, None)
    assert grade(gold, answer_in(said) or "").correct in (True, False, None)
    assert grade(gold, gold).correct is True


def test_work_left_undone_stays_so_however_it_is_spelled() -> None:
    for said in ("5!!", r"\binom{6}{2}", "15 x 1", r"\textbf{3*5}", r"\gcd(15,30)"):
        assert left_undone("value", "15", said), said
    assert not left_undone("value", "30000", "3 x 10^4") and not left_undone("value", "15", r"\textbf{15}")


def test_names_are_kept_apart_and_equal_ones_together() -> None:
    assert key_of("f(x+1)") == key_of("f(1 + x)") != key_of("f(x-1)")
    assert len({key_of(text) for text in ("f(x)", "f'(x)", "f''(x)", "g(x)", "f(y)", "f^{-1}(x)")}) == 6
    assert key_of("P(A|B)") == key_of(r"P(A \mid B)") == key_of(r"P(A \vert B)") != key_of("P(B|A)")
    assert value_of("P(A)") == value_of("PA") and value_of("(x)(y)") == value_of("xy")
