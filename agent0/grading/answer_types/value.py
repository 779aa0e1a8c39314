"""Numbers, expressions, equations, intervals, matrices, units: compared by exact algebra."""

import re
from collections.abc import Callable

from agent0.grading import Grade, guard
from agent0.grading import exactly as compare
from agent0.grading.answer_types import VALUE, kind
from agent0.grading.math import algebra
from agent0.grading.math.forms import Expression
from agent0.grading.math.lexer import FUNCTIONS
from agent0.grading.math.undone import is_written_out, unevaluated

_COMMANDS = "|".join(
    [*FUNCTIONS, "binom", "sqrt", "frac", "cdot", "times", "div", "over", "lfloor", "rfloor", "lceil", "rceil"]
)
_NUMERIC = re.compile(rf"(?:\\?(?:{_COMMANDS})(?![a-z])|[\d\s+*/^!().,{{}}\[\]|_-])+")
_OPERATOR = re.compile(r"[A-Za-z+*/^!]|\d\s*-")
_DATE = re.compile(r"\d{4}([-/])\d{1,2}\1\d{1,2}|\d{1,2}/\d{1,2}/\d{4}")
_DATED = re.compile(r"\b(?:dates?|days?|when)\b", re.IGNORECASE)
_Literal = Callable[[Expression], bool]


def exact(one: Expression) -> bool:
    """Whether ``one`` is written out, or has no digits to be written in: an irrational number, a symbolic form."""
    return one.literal or bool(one.infinite) or algebra.rational(one.value) is None


def undone_by(literal: _Literal) -> Callable[[str, str], bool]:
    """(expected, given) -> whether more expressions of ``answer`` than of ``expected`` are not ``literal``."""

    def undone(expected: str, answer: str) -> bool:
        return (left := unevaluated(answer, literal)) > 0 and left > unevaluated(expected, literal)

    return undone


def arithmetic_left(answer: str, question: str = "") -> bool:
    r"""Whether ``answer``, for which no right one is known, is arithmetic that is still to be done: rational, without
    free symbols, and not written as a value. ``x^2+1``, ``\sqrt{2}`` and ``3/2`` are answers; ``76*26+89``, ``14/2``
    and ``\binom{300}{0}+1`` are not. A date is one where ``question`` asks for it. Total and bounded."""
    if _DATE.fullmatch(answer.strip()) and _DATED.search(question):
        return False
    if guard(answer, answer):
        return _numeric(answer)
    return unevaluated(answer, exact, _numeric) > 0


def _numeric(text: str) -> bool:
    """Whether there is nothing in ``text`` but numbers, operators and functions, and at least one of the latter."""
    return bool(_NUMERIC.fullmatch(text) and re.search(r"\d", text) and _OPERATOR.search(text))


@kind(VALUE, applies=lambda expected: True, rank=9, undone=undone_by(is_written_out))
def value(expected: str, answer: str) -> Grade:
    """As mathematics; may ask for a symbolic engine."""
    return compare(expected, answer)
