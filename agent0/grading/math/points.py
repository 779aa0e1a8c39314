"""Values of exact expressions at points, to more digits than an answer may have.

They settle what exact algebra leaves open: sines, logarithms, absolute values, integrals, sums and limits. What the
digits do not hold (terms too far apart, arguments of functions too large, sums that converge slowly) has no value here,
so no number passes for one that it is only near to.
"""

import hashlib
import itertools
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from mpmath import MPContext

from agent0.grading.math.algebra import Applied, Quotient, Terms

DIGITS, SURE_DIGITS, LARGEST = 130, 100, 10**40
"""Digits of values, digits that are not noise, and the largest argument or value of a function."""
DEEPEST, MOST_TERMS, FEWEST_TERMS, SLOWEST = 1, 1_000, 40, 0.93
"""Operators within operators, terms of a sum at most and before it counts as vanishing, and what part of a term the
next one may then be."""
OPERATORS = ("int", "sum", "prod", "lim", "slope")
"""Functions of a body, the variable that is bound in it, and the ends of its range."""
Value = Any
"""A complex number of ``mpmath``, which has no types."""
Point = Mapping[str, float]

_mp = MPContext()
_mp.dps = DIGITS
_near = _mp.mpf(10) ** -SURE_DIGITS
_vanishing = _mp.mpf(10) ** -(SURE_DIGITS + 15)
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
            body, *others = map(variables, base.arguments)
            names.update(
                body - others[0] if base.function in OPERATORS else body, *others[base.function in OPERATORS :]
            )
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
        elif isinstance(base, Applied) and base.function in OPERATORS:
            values[base] = _operated(base, values)
        elif isinstance(base, Applied) and base.function in _FUNCTIONS:
            arguments = [_bounded(_quotient(argument, values)) for argument in base.arguments]
            value = _FUNCTIONS[base.function](*arguments)
            values[base] = value if base.function == "^" else _bounded(value)
        else:
            raise NoValueError(f"{base[:20]} is not known")
    return values[base]


def _bounded(value: Value) -> Value:
    if value and not _near < abs(value) < LARGEST:
        raise NoValueError("a value that is too large or too small")
    return value


def _operated(base: Applied, values: dict[str, Value]) -> Value:
    """The value of an integral, a sum, a product, a limit or a slope."""
    body, bound, *ends = base.arguments
    (name,) = bound.bases
    depth = values.get("depth", 0)
    if depth > DEEPEST or "N_" in " ".join(body.bases):
        raise NoValueError("operators that are not computed")
    outer = {key: value for key, value in values.items() if not isinstance(key, Applied)} | {"depth": depth + 1}
    low, high = (_end(end, values) for end in ends)

    def at(value: Value) -> Value:
        return _quotient(body, {**outer, name: value})

    if base.function in ("sum", "prod"):
        return _accumulated(base.function, at, low, high)
    if base.function == "int":
        return _area(at, low, high)
    if base.function == "slope":
        return _limit(lambda step: (at(low + step) - at(low)) / step)
    return _limit(lambda step: at(low + step if _mp.isfinite(low) else _mp.sign(low) / step))


def _area(at: Callable[[Value], Value], low: Value, high: Value) -> Value:
    if not (_mp.isfinite(low) and _mp.isfinite(high)):
        raise NoValueError("an integral without end")
    area, error = _mp.quadgl(at, [low, high], maxdegree=6, error=True)
    if error > _near * abs(area):
        raise NoValueError("an integral that is not computed")
    return area


def _end(end: Quotient, values: dict[str, Value]) -> Value:
    """An end of a range, which may be infinite."""
    if end.bases != {"infty"} or len(end.above) > 1:
        return _quotient(end, values)
    return _mp.inf if next(iter(end.above.values())) > 0 else -_mp.inf


def _accumulated(function: str, at: Callable[[Value], Value], low: Value, high: Value) -> Value:
    """A sum or product of a few terms, or a sum whose terms vanish fast."""
    if not _mp.isint(low) or not (_mp.isint(high) or high == _mp.inf):
        raise NoValueError("ends of a sum that are not whole")
    total, is_sum, before = _mp.mpf(function != "sum"), function == "sum", _mp.inf
    for n in range(MOST_TERMS):
        if low + n > high:
            return total
        term = at(low + n)
        total = total + term if is_sum else total * term
        if is_sum and high == _mp.inf and n > FEWEST_TERMS and abs(term) < _vanishing * abs(total):
            return total
        if high == _mp.inf and n > FEWEST_TERMS and abs(term) > SLOWEST * abs(before):
            break
        before = term
    raise NoValueError("a sum of many terms")


def _limit(at: Callable[[Value], Value]) -> Value:
    """The value that ``at`` has near 0, through values close to it (Neville)."""
    steps = [_mp.mpf(10) ** -20 * n for n in range(1, 7)]
    values = first = [at(step) for step in steps]
    for width in range(1, len(steps)):
        values = [
            (steps[n + width] * before - steps[n] * after) / (steps[n + width] - steps[n])
            for n, (before, after) in enumerate(itertools.pairwise(values))
        ]
    if abs(values[0] - first[0]) > _mp.mpf(10) ** -10 * (1 + abs(values[0])):
        raise NoValueError("a limit that is not reached")
    return values[0] if abs(values[0]) > _near * max(map(abs, first)) else _mp.mpf(0)
