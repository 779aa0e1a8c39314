"""Every wrong answer has a class of mistake, and the class says what went wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.evaluation.failure_modes import CLASSES, error_type


@pytest.mark.parametrize(
    ("reason", "end", "answer", "told"),
    [
        ("no answer", "no_answer", None, "no_answer"),
        ("no program", "answered", "x", "no_answer"),
        ("no answer", "length", None, "truncated"),
        ("AssertionError: 3", "length", "4", "wrong_value"),
        ("no answer", "turn_limit", None, "out_of_turns"),
        ("no answer", "budget", None, "out_of_turns"),
        ("no letter of a choice", "answered", "maybe", "format"),
        ("nested too deeply", "answered", "((((", "format"),
        ("too many digits", "answered", "9" * 60, "format"),
        ("the program does not run: SyntaxError: invalid syntax", "answered", "x", "format"),
        ("the program does not run: NameError: name 'x' is not defined", "answered", "x", "crash"),
        ("call 3 of 4 did not return: timeout", "answered", "x", "timeout"),
        ("call 3 of 4 did not return: memory", "answered", "x", "crash"),
        ("TypeError: 'int' object is not callable", "answered", "x", "crash"),
        ("AssertionError: input 2 of 9", "answered", "x", "wrong_value"),
        ("different", "answered", "4", "wrong_value"),
        ("letter", "answered", "B", "wrong_value"),
        ("scored 0.05", "answered", "x", "wrong_value"),
    ],
)
def test_what_went_wrong_is_told(reason: str, end: str, answer: str | None, told: str) -> None:
    assert error_type(False, reason, end, answer) == told


@given(st.text(), st.text(), st.none() | st.text())
def test_every_verdict_has_one_class_and_right_ones_none(reason: str, end: str, answer: str | None) -> None:
    assert error_type(True, reason, end, answer) == ""
    assert error_type(None, reason, end, answer) == "undecided"
    assert error_type(False, reason, end, answer) in CLASSES
