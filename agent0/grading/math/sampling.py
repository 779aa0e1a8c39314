"""Values of exact expressions at points: whether two functions are one, or differ by a constant.

Only for what exact algebra leaves open: sines, logarithms, absolute values. No rounded number is let in by it: whoever
asks refuses decimals and long figures first.
"""

import cmath
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from agent0.grading.math.algebra import Applied, Quotient, Terms

MOST_CHARACTERS, DEEPEST = 4_000, 12
NEAR, NOISE = 1e-10, 1e-13
"""Difference that binary fractions make: relative to the values, and to the terms that cancel in them."""
SMALLEST, LARGEST, MOST_FIGURES = 1e-200, 1e200, 10**15
"""Magnitudes and figures that binary fractions hold."""
_LOG = 0.7312890625
"""``log`` without a base is of some base, but not of e."""
_CONSTANTS = {"pi": complex(cmath.pi), "e": complex(cmath.e), "i": 1j}
_FUNCTIONS: dict[str, Callable[..., complex]] = {
    "sin": cmath.sin, "cos": cmath.cos, "ln": cmath.log, "arcsin": cmath.asin, "arccos": cmath.acos,
    "arctan": cmath.atan, "sinh": cmath.sinh, "cosh": cmath.cosh, "abs": lambda x: complex(abs(x)),
    "log": lambda x, base=None: cmath.log(x) * (_LOG if base is None else 1 / cmath.log(base)),
    "^": lambda base, exponent: base**exponent,
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
        above, below = (_summed(_products(terms, point, 0), point) for terms in (expression.above, expression.below))
        return Sample(above.value / below.value, above.scale / abs(below.value))
    except (ArithmeticError, ValueError) as error:
        raise NoValueError(str(error)) from error


def value_at(expression: Quotient, point: Point) -> complex:
    """The value of ``expression`` where its variables are ``point``: see ``sample_at``.

    Raises:
        NoValueError: it has none, or none that binary fractions hold.
    """
    return sample_at(expression, point).value


def near(left: complex, right: complex, scale: float = 0.0) -> bool:
    """Whether both are the same but for the last digits of binary fractions: relative to both magnitudes, however small
    or large, and to the ``scale`` of terms that cancel in them."""
    return abs(left - right) <= max(NEAR * max(abs(left), abs(right)), NOISE * scale)


def variables(expression: Quotient) -> set[str]:
    """Names of ``expression`` that are no constants, functions or made names."""
    constants = {"exp", "infty", *_CONSTANTS, *_FUNCTIONS}
    return {n for n in expression.names if n not in constants and not n.startswith("N_") and len(n) < 12}


def _products(terms: Terms, point: Point, depth: int) -> list[complex]:
    products = []
    for monomial, factor in terms.items():
        if not point and max(abs(factor.numerator), factor.denominator) > MOST_FIGURES:
            raise NoValueError("more figures than a binary fraction has")
        value = complex(float(factor))
        for base, exponent in monomial:
            value *= _base(base, point, depth) ** float(exponent)
        products.append(value)
    return products


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
    if isinstance(base, Applied) and base.function in _FUNCTIONS:
        return _FUNCTIONS[base.function](*(_inside(argument, point, depth + 1) for argument in base.arguments))
    if base.isdigit():
        return complex(int(base))
    if base in point:
        return complex(point[base])
    if base.startswith("N_"):
        return complex(1 + int.from_bytes(hashlib.sha256(base.encode()).digest()[:4]) / 2**32)
    if base not in _CONSTANTS:
        raise NoValueError(f"{base[:20]} is not known")
    return _CONSTANTS[base]


def _inside(argument: Quotient, point: Point, depth: int) -> complex:
    sides = [_products(terms, point, depth) for terms in (argument.above, argument.below)]
    above, below = (side[0] if len(side) == 1 else _summed(side, point).value for side in sides)
    return above / below
