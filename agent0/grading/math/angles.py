"""Exact sines, cosines and powers of e at multiples of 15 degrees."""

from fractions import Fraction

from agent0.grading.math import algebra
from agent0.grading.math.algebra import Quotient

E, PI, IMAGINARY = (algebra.symbol(name) for name in ("e", "pi", "i"))


def _root(radicand: int, factor: Fraction) -> Quotient:
    return algebra.multiply(
        algebra.number(factor), algebra.power(algebra.number(radicand), algebra.number(Fraction(1, 2)))
    )


_half, _quarter = Fraction(1, 2), Fraction(1, 4)
_SINES = (
    algebra.number(0),
    algebra.add(_root(6, _quarter), _root(2, -_quarter)),
    algebra.number(_half),
    _root(2, _half),
    _root(3, _half),
    algebra.add(_root(6, _quarter), _root(2, _quarter)),
    algebra.number(1),
)
"""Of 0, 15, ... 90 degrees."""


def _sine(step: int) -> Quotient:
    """The sine of ``step`` times 15 degrees."""
    value = _SINES[min(step % 12, 12 - step % 12)]
    return algebra.negative(value) if step % 24 > 12 else value


def _sine_and_cosine(angle: Quotient) -> tuple[Quotient, Quotient] | None:
    """Exact ones at a multiple of 15 degrees, None at every other angle."""
    step = algebra.whole(algebra.multiply(algebra.number(12), algebra.divide(angle, PI)))
    return None if step is None else (_sine(step), _sine(step + 6))


def turned(exponent: Quotient) -> Quotient | None:
    """Return ``e ** exponent`` by its cosine and sine, where ``exponent`` is i times a multiple of 15 degrees; else
    None."""
    if "i" not in exponent.bases or (pair := _sine_and_cosine(algebra.divide(exponent, IMAGINARY))) is None:
        return None
    return algebra.add(pair[1], algebra.multiply(IMAGINARY, pair[0]))


def of_angle(name: str, inside: Quotient) -> Quotient | None:
    """The exact value of a function of a multiple of 15 degrees, None at every other angle.

    Raises:
        UndefinedError: it has none.
    """
    pair = _sine_and_cosine(inside)
    if pair is None:
        return None
    unit = algebra.number(1)
    above, below = {"sin": (pair[0], unit), "cos": (pair[1], unit), "tan": pair, "cot": pair[::-1],
                    "sec": (unit, pair[1]), "csc": (unit, pair[0])}[name]  # fmt: skip
    return algebra.divide(above, below)
