"""Values of exact expressions at points, to more digits than an answer may have.

They settle what exact algebra leaves open: sines, logarithms, absolute values. What the digits do not hold (terms too
far apart, arguments of functions too large) has no value here, so no number passes for one that it is only near to.
"""

import hashlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from mpmath import MPContext

from agent0.grading.math.algebra import Applied, Quotient, Terms

DIGITS, SURE_DIGITS, LARGEST = 130, 100, 10**40
"""Digits of values, digits that are not noise, and the largest argument or value of a function."""
Value = Any
"""A complex number of ``mpmath``, which has no types."""
Point = Mapping[str, float]

_mp = MPContext()
_mp.dps = DIGITS
_near = _mp.mpf(10) ** -SURE_DIGITS
_some_base = _mp.mpf("6.2832")
"""``log`` without a base is of some base, but not of e."""
_CONSTANTS: dict[str, Value] = {"pi": +_mp.pi, "e": +_mp.e, "i": _mp.mpc(0, 1)}
_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "sin": _mp.sin, "cos": _mp.cos, "ln": _mp.ln, "arcsin": _mp.asin, "arccos": _mp.acos, "arctan": _mp.atan,
    "sinh": _mp.sinh, "cosh": _mp.cosh, "abs": _mp.fabs, "^": _mp.power,
    "log": lambda x, base=_some_base: _mp.ln(x) / _mp.ln(base),
}  # fmt: skip


class NoValueError(ValueError):
    """Something in it has no value at this point."""


def value_at(expression: Quotient, point: Point) -> Value:
    """The value of ``expression`` where its variables are ``point``.

    Raises:
        NoValueError: it has none, or none that the digits hold.
    """
    values = {**_CONSTANTS, **{name: _mp.mpf(value) for name, value in point.items()}}
    try:
        return _quotient(expression, values)
    except (ArithmeticError, ValueError) as error:
        raise NoValueError(str(error)) from error


def near(left: Value, right: Value) -> bool:
    """Whether both are the same value but for noise in its last digits."""
    return bool(abs(left - right) <= _near * max(abs(left), abs(right)))


def fraction(value: Value, largest: int) -> Fraction | None:
    """The fraction with a denominator of at most ``largest`` that a value is, None where it is none."""
    exact = Fraction(float(value.real)).limit_denominator(largest)
    return exact if near(value, _mp.mpf(exact.numerator) / exact.denominator) else None


def is_real(value: Value) -> bool:
    """Whether a value is a number on the line, but for noise."""
    return bool(abs(_mp.im(value)) <= _near * abs(value))


def variables(expression: Quotient) -> set[str]:
    """Names in ``expression`` that are no constants and stand for nothing else, those inside of functions too."""
    names: set[str] = set()
    for base in expression.bases:
        if isinstance(base, Applied):
            names.update(*map(variables, base.arguments))
        elif base not in _CONSTANTS and base != "infty" and not base.startswith("N_"):
            names.add(base)
    return names


def _quotient(expression: Quotient, values: dict[str, Value]) -> Value:
    below = _sum(expression.below, values)
    if not below:
        raise NoValueError("division by zero")
    return _sum(expression.above, values) / below


def _sum(terms: Terms, values: dict[str, Value]) -> Value:
    products = []
    for monomial, factor in terms.items():
        product = _mp.mpf(factor.numerator) / factor.denominator
        for base, exponent in monomial:
            product *= _mp.power(_base(base, values), _mp.mpf(exponent.numerator) / exponent.denominator)
        products.append(product)
    largest = max(map(abs, products), default=0)
    if any(product and abs(product) < _near * largest for product in products):
        raise NoValueError("terms that are too far apart")
    total = sum(products)
    return total if abs(total) > _near * largest else _mp.mpf(0)


def _base(base: str, values: dict[str, Value]) -> Value:
    """The value of a base, which is kept in ``values``."""
    if base not in values:
        if base.isdigit():
            values[base] = _mp.mpf(base)
        elif base.startswith("N_"):
            values[base] = 1 + _mp.mpf(int.from_bytes(hashlib.sha256(base.encode()).digest()[:4])) / 2**32
        elif isinstance(base, Applied) and base.function in _FUNCTIONS:
            arguments = [_bounded(_quotient(argument, values)) for argument in base.arguments]
            values[base] = _bounded(_FUNCTIONS[base.function](*arguments))
        else:
            raise NoValueError(f"{base[:20]} is not known")
    return values[base]


def _bounded(value: Value) -> Value:
    if value and not _near < abs(value) < LARGEST:
        raise NoValueError("a value that is too large or too small")
    return value
