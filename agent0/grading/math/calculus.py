"""Sums, integrals, limits, derivatives and determinants of exact algebra, where they come to an exact value."""

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise

from agent0.grading.math import algebra
from agent0.grading.math.algebra import Applied, Quotient
from agent0.grading.math.angles import E

LARGEST_MATRIX, HIGHEST, FEWEST, FARTHEST = 5, 12, 8, 1_000
_ZERO, _ONE = algebra.number(0), algebra.number(1)
Polynomial = dict[Fraction, Quotient]
"""The coefficient of each power of a variable."""


class NoPolynomialError(ValueError):
    """A variable is in an expression otherwise than by its powers."""


def determinant(rows: Sequence[Sequence[Quotient]]) -> Quotient:
    """The determinant of a square matrix, along its first row."""
    if len(rows) == 1:
        return rows[0][0]
    total = _ZERO
    for position, entry in enumerate(rows[0]):
        minor = determinant([[*row[:position], *row[position + 1 :]] for row in rows[1:]])
        part = algebra.multiply(entry, minor)
        total = algebra.add(total, algebra.negative(part) if position % 2 else part)
    return total


def geometric_sum(first: Sequence[Quotient]) -> Quotient | None:
    """The sum of all terms where each of the ``first`` is the same part of the one before it; else None."""
    values = [value for term in first if (value := algebra.rational(term))]
    if len(values) < len(first):
        return None
    ratio = values[1] / values[0]
    steady = abs(ratio) < 1 and all(after == ratio * before for before, after in pairwise(values))
    return algebra.number(values[0] / (1 - ratio)) if steady else None


def sum_of_powers(body: Quotient, variable: str, start: int, end: Quotient) -> Quotient | None:
    """The sum of a polynomial from ``start`` to a symbolic ``end``, None where a power is high or no whole number."""
    total = _ZERO
    if abs(start) > FARTHEST:
        return None
    for power, factor in polynomial(body, variable).items():
        if power.denominator != 1 or not 0 <= power <= HIGHEST:
            return None
        before = range(1, start) if start > 0 else range(start, 1)
        lower = sum(Fraction(n) ** int(power) for n in before) * (1 if start > 0 else -1)
        upper = algebra.subtract(_power_sum(int(power), end), algebra.number(lower))
        total = algebra.add(total, algebra.multiply(factor, upper))
    return total


def _power_sum(power: int, end: Quotient) -> Quotient:
    """1^p + ... + n^p at ``end``, through its first values (Lagrange)."""
    values = [Fraction(0)]
    for n in range(1, power + 2):
        values.append(values[-1] + Fraction(n) ** power)
    total = _ZERO
    for n, value in enumerate(values):
        part = algebra.number(value)
        for other in (other for other in range(len(values)) if other != n):
            step = algebra.subtract(end, algebra.number(other))
            part = algebra.multiply(part, algebra.multiply(step, algebra.number(Fraction(1, n - other))))
        total = algebra.add(total, part)
    return total


def polynomial(value: Quotient, variable: str) -> Polynomial:
    """The coefficient of each power of ``variable``.

    Raises:
        NoPolynomialError: it is there in another way.
    """
    inside = re.compile(rf"(?<![A-Za-z]){variable}(?![A-Za-z])")
    below = Quotient(value.below, _ONE.below)
    if any(inside.search(base) for base in below.bases):
        raise NoPolynomialError("no polynomial")
    terms: Polynomial = {}
    for monomial, factor in value.above.items():
        power = sum((exponent for base, exponent in monomial if base == variable), Fraction(0))
        rest = tuple((base, exponent) for base, exponent in monomial if base != variable)
        if any(inside.search(base) for base, _ in rest):
            raise NoPolynomialError("no polynomial")
        part = algebra.divide(Quotient({rest: factor}, _ONE.below), below)
        terms[power] = algebra.add(terms.get(power, _ZERO), part)
    return terms


def integral(body: Quotient, variable: str, low: Quotient, high: Quotient) -> Quotient | None:
    """The definite integral of a polynomial, None where a logarithm is in it."""
    total = _ZERO
    for power, factor in polynomial(body, variable).items():
        if power == -1:
            return None
        ends = [algebra.power(end, algebra.number(power + 1)) for end in (high, low)]
        part = algebra.multiply(factor, algebra.number(1 / (power + 1)))
        total = algebra.add(total, algebra.multiply(part, algebra.subtract(*ends)))
    return total


def slope(body: Quotient, variable: str) -> Quotient:
    """Return the derivative of a polynomial by ``variable``, at ``variable``."""
    return _at(_slopes(polynomial(body, variable)), algebra.symbol(variable))


def _slopes(terms: Polynomial) -> Polynomial:
    return {p - 1: algebra.multiply(factor, algebra.number(p)) for p, factor in terms.items() if p}


def _at(terms: Polynomial, position: Quotient) -> Quotient:
    parts = [algebra.multiply(factor, algebra.power(position, algebra.number(p))) for p, factor in terms.items()]
    return reduce(algebra.add, parts, _ZERO)


def limit_at_infinity(body: Quotient, variable: str) -> Quotient | None:
    """The limit of a quotient of polynomials, or of such a power as ``(1 + a/x)^{bx}``; None where it is infinite."""
    base = next(iter(body.bases), "")
    if isinstance(base, Applied) and base.function == "^":
        growth = algebra.multiply(algebra.subtract(base.arguments[0], _ONE), base.arguments[1])
        inside = _leading(base.arguments[0], variable) if algebra.same(body, algebra.symbol(base)) else None
        exponent = _leading(growth, variable) if inside and algebra.same(inside, _ONE) else None
        return None if exponent is None else algebra.power(E, exponent)
    return _leading(body, variable)


def _leading(body: Quotient, variable: str) -> Quotient | None:
    above, below = _both(body, variable)
    tops = [max((power for power, factor in terms.items() if factor.above), default=None) for terms in (above, below)]
    if tops[0] is None or tops[1] is None or tops[0] < tops[1]:
        return _ZERO if tops[1] is not None else None
    return algebra.divide(above[tops[0]], below[tops[1]]) if tops[0] == tops[1] else None


def _both(value: Quotient, variable: str) -> list[Polynomial]:
    """Both sides of a quotient by powers of ``variable``."""
    return [polynomial(Quotient(terms, _ONE.below), variable) for terms in (value.above, value.below)]


def limit_at(value_at: Callable[[], Quotient], body: Quotient, variable: str, position: Quotient) -> Quotient | None:
    """The value at ``position``; of a quotient of polynomials that are 0 there by their derivatives (l'Hôpital)."""
    try:
        return value_at()
    except (algebra.UndefinedError, ZeroDivisionError):
        above, below = _both(body, variable)
    for _ in range(HIGHEST):
        values = [_at(terms, position) for terms in (above, below)]
        if values[1].above:
            return algebra.divide(*values)
        if values[0].above:
            return None
        above, below = _slopes(above), _slopes(below)
    return None
