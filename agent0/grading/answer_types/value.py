"""Numbers, expressions, equations, intervals, matrices, units: compared by exact algebra.

What a program printed of a binary fraction is a kind of its own: its last digits are noise of the machine, not part of
the answer. An exact answer is right where the machine would have printed this for it. A rounded one is right only where
it is as long: three digits of a number with sixteen are another number.
"""

import re
from fractions import Fraction

from agent0.grading import Grade, exactly, guard
from agent0.grading.answer_types import VALUE, kind
from agent0.grading.math import algebra
from agent0.grading.math.cleaning import clean
from agent0.grading.math.forms import Expression
from agent0.grading.math.lexer import FUNCTIONS, UnreadableError
from agent0.grading.math.parser import read
from agent0.grading.math.points import NoValueError, is_real, value_at
from agent0.grading.math.undone import is_written_out, unevaluated

NOISE = Fraction(4, 10**15)
"""Relative difference that a few operations on binary fractions make."""
_COMMANDS = "|".join([*FUNCTIONS, r"binom|sqrt|frac|cdot|times|div|over|[lr]floor|[lr]ceil"])
_numeric = re.compile(
    rf"(?=.*\d)(?=.*(?:[A-Za-z+*/^!]|\d\s*-))(?:\\?(?:{_COMMANDS})(?![a-z])|[\d\s+*/^!().,{{}}\[\]|_-])+", re.DOTALL
)
_date = re.compile(r"\d{4}([-/])\d{1,2}\1\d{1,2}|\d{1,2}/\d{1,2}/\d{4}")
_asks_for_date = re.compile(r"\b(?:dates?|days?|when)\b", re.IGNORECASE)
_printed = re.compile(r"[-+]?(?=(?:[0.]*[1-9])(?:\.?\d){14,})\d+\.\d+(?:e[-+]?\d{1,3})?", re.I)
"""A number of at least fifteen digits that count, which is taken for a machine's."""


def exact(one: Expression) -> bool:
    """Whether ``one`` is written out, or has no digits to be written in: an irrational number, a symbolic form."""
    return one.literal or bool(one.infinite) or algebra.rational(one.value) is None


def arithmetic_left(answer: str, question: str = "") -> bool:
    r"""Whether ``answer``, for which no right one is known, is arithmetic that is still to be done: rational, without
    free symbols, and not written as a value. ``x^2+1``, ``\sqrt{2}`` and ``3/2`` are answers; ``76*26+89``, ``14/2``
    and ``\binom{300}{0}+1`` are not. A date is one where ``question`` asks for it. Total and bounded."""
    if _date.fullmatch(answer.strip()) and _asks_for_date.search(question):
        return False
    if guard(answer, answer):
        return _is_numeric(answer)
    return unevaluated(answer, exact, _is_numeric) > 0


def _is_numeric(text: str) -> bool:
    """Whether there is nothing in ``text`` but numbers, operators and functions, and at least one of the latter."""
    return bool(_numeric.fullmatch(text))


@kind(VALUE, 9, lambda expected: True, is_written_out)
def value(expected: str, answer: str) -> Grade:
    """As mathematics; may ask for a symbolic engine."""
    return exactly(expected, answer)


@kind("binary", 0, _printed.fullmatch, exact)
def binary(expected: str, answer: str) -> Grade:
    """Against the exact value of ``answer``, to about fifteen digits."""
    grade = exactly(expected, answer)
    if grade.correct is True:
        return grade
    try:
        printed, value = Fraction(expected), value_at(read(clean(answer).text), {})
        difference = abs(Fraction(str(value.real)) - printed) if is_real(value) else abs(printed)
    except (UnreadableError, algebra.TooLargeError, NoValueError, ArithmeticError, ValueError):
        return Grade(False if grade.correct is False else None, "no number to compare with", grade.expected, grade.got)
    near = difference <= NOISE * abs(printed)
    return Grade(near, "equal to the last digit of a machine" if near else "different", grade.expected, grade.got)
