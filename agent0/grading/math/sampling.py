"""Values of exact expressions at points: whether two functions are one, or differ by a constant.

Only for what exact algebra leaves open: sines, logarithms, absolute values. No rounded number is let in by it: whoever
asks refuses decimals and long figures first.
"""

import cmath
import hashlib
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from agent0.grading.math.algebra import Quotient, Terms

MOST_CHARACTERS, DEEPEST = 4_000, 12
NEAR, NOISE = 1e-10, 1e-13
"""Difference that binary fractions make: relative to the values, and to the terms that cancel in them."""
SMALLEST, LARGEST, MOST_FIGURES = 1e-200, 1e200, 10**15
"""Magnitudes and figures that binary fractions hold."""
_LOG = 0.7312890625
"""``log`` without a base is of some base, but not of e."""
_FUNCTIONS: dict[str, Callable[[complex], complex]] = {
    "sin": cmath.sin, "cos": cmath.cos, "ln": cmath.log, "log": lambda x: cmath.log(x) * _LOG, "arcsin": cmath.asin,
    "arccos": cmath.acos, "arctan": cmath.atan, "sinh": cmath.sinh, "cosh": cmath.cosh,
    "abs": lambda x: complex(abs(x)),
}  # fmt: skip
Point = Mapping[str, float]


class NoValueError(ValueError):
    """Something in it has no value at this point."""


class Sample(NamedTuple):
    """A value, and the sum of the magnitudes of the terms that it is the sum of."""

    value: complex
    scale: float


def sample_at(expression: Quotient, point: Point) -> Sample:
    """The value of ``expression`` where its variables are ``point``; of a constant only where no term of it is so small
    beside the others that binary fractions lose it.

    Raises:
        NoValueError: it has none, or none that binary fractions hold.
    """
    try:
        above, below = _terms(expression.above, point), _terms(expression.below, point)
        return Sample(above.value / below.value, above.scale / abs(below.value))
    except (ArithmeticError, ValueError) as error:
        raise NoValueError(str(error)) from error


def value_at(expression: Quotient, point: Point) -> complex:
    """The value of ``expression`` where its variables are ``point``: see ``sample_at``.

    Raises:
        NoValueError: it has none, or none that binary fractions hold.
    """
    return sample_at(expression, point).value


def near(one: complex, other: complex, scale: float = 0.0) -> bool:
    """Whether both are the same but for the last digits of binary fractions: relative to both magnitudes, however small
    or large, and to the ``scale`` of terms that cancel in them."""
    return abs(one - other) <= max(NEAR * max(abs(one), abs(other)), NOISE * scale)


def variables(expression: Quotient) -> set[str]:
    """Names of ``expression`` that are no constants, functions or made names."""
    known = {"pi", "e", "i", "exp", "infty", *_FUNCTIONS}
    return {name for name in expression.names if name not in known and not name.startswith("N_") and len(name) < 12}


def _terms(terms: Terms, point: Point) -> Sample:
    products = []
    for monomial, factor in terms.items():
        value = _number(factor, point)
        for base, exponent in monomial:
            value *= _base(base, point, 0) ** float(exponent)
        products.append(value)
    return _summed(products, point)


def _number(factor: Fraction, point: Point) -> complex:
    if not point and max(abs(factor.numerator), factor.denominator) > MOST_FIGURES:
        raise NoValueError("more figures than a binary fraction has")
    return complex(float(factor))


def _summed(products: Sequence[complex], point: Point) -> Sample:
    total, scale = sum(products, 0j), sum(map(abs, products))
    least = min(map(abs, products), default=1.0)
    lost = least < NEAR * scale or (len(products) > 1 and abs(total) < NEAR * scale)
    masked = SMALLEST < scale < LARGEST or not products or (bool(point) and not scale)
    if not masked or (not point and lost):
        raise NoValueError("a magnitude that binary fractions do not hold")
    return Sample(total, scale)


def _base(base: str, point: Point, depth: int) -> complex:
    if depth > DEEPEST or len(base) > MOST_CHARACTERS:
        raise NoValueError("nested too deeply")
    if base.isdigit():
        return complex(int(base))
    if base in point:
        return complex(point[base])
    if base in _CONSTANTS:
        return _CONSTANTS[base]
    if base.startswith("N_"):
        return complex(1 + int.from_bytes(hashlib.sha256(base.encode()).digest()[:4]) / 2**32)
    if base.startswith("("):
        below, above = _top(base, "^")
        return _key(below[1:-1], point, depth + 1) ** _key(above[1:-1], point, depth + 1)
    return _applied(base, point, depth)


_CONSTANTS = {"pi": complex(cmath.pi), "e": complex(cmath.e), "i": 1j}


def _applied(base: str, point: Point, depth: int) -> complex:
    name, bracket, inside = base.partition("(")
    if not bracket or not inside.endswith(")"):
        raise NoValueError(f"{base[:20]} is not known")
    value = _key(inside[:-1], point, depth + 1)
    if name.startswith("log["):
        return cmath.log(value) / cmath.log(_key(name[4:-1], point, depth + 1))
    if name not in _FUNCTIONS:
        raise NoValueError(f"{name[:20]} is not known")
    return _FUNCTIONS[name](value)


def _key(text: str, point: Point, depth: int) -> complex:
    """The value of a normal form (``algebra.key``)."""
    if text.startswith("("):
        above, below = _top(text, "/")
        if below:
            return _key(above[1:-1], point, depth + 1) / _key(below[1:-1], point, depth + 1)
    products = []
    for term in _cut(text, "+"):
        factor, *powers = _cut(term, "*")
        value = _number(Fraction(factor), point)
        for power in powers:
            base, exponent = _top(power, "^")
            value *= _base(base, point, depth + 1) ** float(Fraction(exponent))
        products.append(value)
    return sum(products, 0j) if len(products) == 1 else _summed(products, point).value


def _cut(text: str, sign: str) -> list[str]:
    """Pieces of ``text`` between the signs outside of brackets."""
    out, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == sign and depth == 0:
            out.append(text[start:place])
            start = place + 1
    return [*out, text[start:]]


def _top(text: str, sign: str) -> tuple[str, str]:
    """What stands before and behind the last ``sign`` outside of brackets."""
    pieces = _cut(text, sign)
    return (sign.join(pieces[:-1]), pieces[-1]) if len(pieces) > 1 else (text, "")
