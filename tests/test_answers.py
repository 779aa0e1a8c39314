"""Answers are compared without evaluating either: equal ones are found equal, and nothing hostile costs time."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.grading.normal_form import normal_form, same
from agent0.rollout.confidence.signals import agreement, token_confidence

EQUAL = [
    ("42", " 42. "),
    ("42", "42.0"),
    ("42", "+42"),
    ("1/2", "0.5"),
    ("2/4", "1/2"),
    ("-3/6", "-0.5"),
    ("1,234,567", "1234567"),
    ("$42$", "42"),
    (r"\(42\)", "42"),
    (r"\text{yes}", "Yes"),
    ("`[1, 2]`", "[1,2]"),
    ('"abc"', "ABC"),
    ("[ 1 , 2 ]", "[1,2]"),
    ("{'a': 1}", "{'a':1}"),
    ("true", "True"),
    ("Ann  Bob", "ann bob"),
    ("$\\text{'7'}$", "7.00"),
]
DIFFERENT = [
    ("42", "43"),
    ("1/3", "0.333"),
    ("1,2", "12"),
    ("12,34", "1234"),
    ("[1,2]", "[2,1]"),
    ("1/0", "2/0"),
    ("", "0"),
    ("ab", "a b"),
    ("-1", "1"),
    ("1e3", "1000"),
    ("0x10", "16"),
]


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_one_answer_in_two_spellings(left: str, right: str) -> None:
    assert same(left, right) and same(right, left)


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_two_answers(left: str, right: str) -> None:
    assert not same(left, right)


@given(st.text(max_size=3000))
def test_any_text_has_a_normal_form_which_is_its_own(text: str) -> None:
    form = normal_form(text)
    assert isinstance(form, str)
    assert same(text, text)
    assert same(f"  {text} ", text)


@given(st.fractions(), st.sampled_from(["{}", "${}$", r"\({}\)", "`{}`", " {} ", "{}."]))
def test_exact_numbers(number: Fraction, wrap: str) -> None:
    assert normal_form(wrap.format(number)) == str(number)


@given(st.fractions(), st.fractions())
def test_numbers_are_same_where_they_are_equal(left: Fraction, right: Fraction) -> None:
    assert same(str(left), str(right)) is (left == right)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**12), max_value=10**12))
def test_decimals_are_exact(number: object) -> None:
    assert normal_form(f"{number:f}") == str(Fraction(str(number)))


@pytest.mark.parametrize(
    "hostile", ["9" * 1999, "9" * 399 + "/" + "9" * 399, "(" * 1999, "$" * 1999, "1," * 900, "`" * 10**6]
)
def test_hostile_answers_are_bounded(hostile: str) -> None:
    """A normal form is never much longer than what was looked at, whatever the digits."""
    assert len(normal_form(hostile)) <= max(2000, len(hostile))


@given(st.lists(st.none() | st.sampled_from(["1", "1.0", "2", "x"]), max_size=9))
def test_agreement_counts_forms(answers: list[str | None]) -> None:
    found = agreement(answers)
    forms = [None if a is None else normal_form(a) for a in answers]
    given_ = [f for f in forms if f is not None]
    assert found.majority == (max(dict.fromkeys(given_), key=given_.count) if given_ else None)
    assert found.share == (forms.count(found.majority) / len(forms) if given_ else 0.0)
    assert 0 <= found.entropy <= 1.0987
    assert agreement(["1", "1.0"]).entropy == 0


@given(st.none() | st.floats(-1e300, 10))
def test_confidence_is_a_probability(logprob: float | None) -> None:
    value = token_confidence(logprob)
    assert value is None if logprob is None else 0 <= value <= 1
