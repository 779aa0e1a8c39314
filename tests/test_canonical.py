"""One form of what has several, and never of two things."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.grading import answer_in, grade

SMALL = st.integers(1, 59)


def equal(gold: str, said: str) -> bool:
    return grade(gold, said).correct is True


@given(SMALL, st.integers(0, 99), st.integers(1, 9999))
def test_cents_are_hundredths_of_a_dollar(dollars: int, cents: int, other: int) -> None:
    gold, worth = rf"\${dollars}.{cents:02}", 100 * dollars + cents
    assert equal(gold, f"{worth} cents") and equal(gold, f"{dollars} dollars and {cents} cents")
    assert equal(gold, f"{other} cents") is (other == worth)


@given(SMALL, st.integers(1, 11), st.integers(1, 11))
def test_feet_and_inches_are_one_length(feet: int, inches: int, other: int) -> None:
    gold = rf"{feet} \text{{ ft }} {inches} \text{{ in}}"
    assert equal(gold, f"{feet}'{other}\"") is (inches == other)


@given(SMALL, SMALL, SMALL, SMALL)
def test_clock_like_durations_are_their_seconds(hours: int, minutes: int, seconds: int, other: int) -> None:
    gold = f"{hours}:{minutes:02}:{seconds:02}"
    assert equal(gold, f"{hours} hours {minutes} minutes {other} seconds") is (seconds == other)


@given(st.integers(2, 30), st.integers(0, 60), st.integers(2, 30), st.integers(0, 60))
def test_terms_of_a_progression_are_a_residue(step: int, start: int, other: int, begin: int) -> None:
    same = step == other and (start - begin) % step == 0
    assert equal(rf"n \equiv {start} \pmod{{{step}}}", f"n = {other}k + {begin}") is same


@given(st.sampled_from("ijk"), st.integers(2, 9), st.permutations([0, 0, 1]))
def test_a_multiple_of_one_direction_is_one_vector(unit: str, factor: int, places: list[int]) -> None:
    said = rf"\langle {', '.join(str(factor * place) for place in places)} \rangle"
    assert equal(rf"{factor}\mathbf{{{unit}}}", said) is (places.index(1) == "ijk".index(unit))


@given(st.integers(2, 9), st.integers(2, 9))
def test_rows_and_columns_keep_their_order(rows: int, columns: int) -> None:
    gold = rf"{rows} \times {columns} \text{{ matrix}}"
    assert equal(gold, f"{rows} x {columns} matrix")
    assert equal(gold, f"{columns} by {rows} matrix") is (rows == columns)


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        (r"\{1,2\}", "the set {1, 2}"),
        ("110_2", "binary 110"),
        (r"f''(x)", "f^{(2)}(x)"),
        (r"\alpha+\beta", "&alpha; + &beta;"),
    ],
)
def test_notations_of_one_kind_are_one(gold: str, said: str) -> None:
    assert equal(gold, said)


def test_a_box_that_is_taken_back_is_no_answer() -> None:
    assert answer_in(r"Some say $\boxed{17}$, but that is wrong. It stays open.") != "17"
    assert answer_in(r"$\boxed{17}$ is wrong. The answer is 18.") == "18"
    assert answer_in(r"$\boxed{17}$ is the answer.") == "17"
