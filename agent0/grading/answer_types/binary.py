"""What a program printed of a binary fraction: its last digits are noise of the machine, not part of the answer.

An exact answer is right where the machine would have printed this for it. A rounded one is right only where it is as
long: three digits of a number with sixteen are another number.
"""

import re
from decimal import Decimal, InvalidOperation, localcontext
from fractions import Fraction

from agent0.grading import Grade
from agent0.grading import exactly as compare
from agent0.grading.answer_types import kind
from agent0.grading.answer_types.value import exact, undone_by
from agent0.grading.math import algebra
from agent0.grading.math.algebra import Quotient
from agent0.grading.math.cleaning import clean
from agent0.grading.math.lexer import UnreadableError
from agent0.grading.math.parser import read

_PRINTED = re.compile(r"[-+]?\d+\.\d+(?:e[-+]?\d{1,3})?", re.I)
_DIGITS = 15
"""Significant digits from which on a printed number is taken for a machine's."""
_NOISE = Decimal("4e-15")
"""Relative difference that a few operations on binary fractions make."""
_CONSTANTS = {
    "pi": Decimal("3.14159265358979323846264338327950288419716939937510582"),
    "e": Decimal("2.71828182845904523536028747135266249775724709369995957"),
}


def _significant(text: str) -> int:
    return len(re.sub(r"e.*|\D", "", text.lower()).lstrip("0"))


@kind(
    "binary",
    applies=lambda s: bool(_PRINTED.fullmatch(s)) and _significant(s) >= _DIGITS,
    rank=0,
    undone=undone_by(exact),
)
def binary(expected: str, answer: str) -> Grade:
    """Against the exact value of ``answer``, to about fifteen digits."""
    found = compare(expected, answer)
    if found.correct is True:
        return found
    try:
        value, wanted = _approximate(read(clean(answer).text)), Decimal(expected)
    except (UnreadableError, algebra.TooLargeError, ArithmeticError):
        value = None
    if value is None:
        return Grade(False if found.correct is False else None, "no number to compare with", found.expected, found.got)
    near = abs(value - wanted) <= _NOISE * max(abs(wanted), abs(value))
    return Grade(near, "equal to the last digit of a machine" if near else "different", found.expected, found.got)


def _approximate(value: Quotient) -> Decimal | None:
    """Fifty digits of a number made of rationals, roots, pi and e; None where it holds anything else."""
    if not all(base.isdigit() or base in _CONSTANTS for base in value.bases):
        return None
    with localcontext(prec=50):
        above, below = (
            sum((_term(m, c) for m, c in terms.items()), Decimal(0)) for terms in (value.above, value.below)
        )
        return above / below


def _term(monomial: algebra.Monomial, factor: Fraction) -> Decimal:
    out = _decimal(factor)
    for base, exponent in monomial:
        if abs(exponent) > 1000:
            raise InvalidOperation
        out *= (_CONSTANTS.get(base) or Decimal(base)) ** _decimal(exponent)
    return out


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
