"""Functions of exact values: trigonometry, binomials, factorials, whole parts, magnitudes."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import reduce

from agent0.grading.math import algebra
from agent0.grading.math.algebra import Applied, Quotient, opaque
from agent0.grading.math.angles import E, of_angle, turned
from agent0.grading.math.lexer import UnreadableError

MOST_FACTORS, MOST_DOUBLE_FACTORS, LARGEST_CHOICE, MOST_CHOSEN, FARTHEST = 5_000, 50, 10**6, 300, 8
"""Of a factorial, a double factorial and a binomial that are computed; between factorials that are compared."""


def function(name: str, inside: Quotient, base: Quotient | None) -> Quotient:
    """Quotients of sine and cosine for the other four; ln and log alike."""
    if name == "exp":
        return turned(inside) or algebra.power(E, inside)
    if base is not None:
        return algebra.symbol(Applied(name, inside, base))
    if name not in ("sin", "cos", "tan", "cot", "sec", "csc"):
        return algebra.symbol(Applied(name, inside))
    if (exact := of_angle(name, inside)) is not None:
        return exact
    unit, sine, cosine = algebra.number(1), *(algebra.symbol(Applied(f, inside)) for f in ("sin", "cos"))
    above, below = {"sin": (sine, unit), "cos": (cosine, unit), "tan": (sine, cosine), "cot": (cosine, sine),
                    "sec": (unit, cosine), "csc": (unit, sine)}[name]  # fmt: skip
    return algebra.divide(above, below)


def binomial(above: Quotient, below: Quotient) -> Quotient:
    """Return the binomial coefficient: a number where both are whole, else a quotient of factorials."""
    n, k = algebra.whole(above), algebra.whole(below)
    if n is None or k is None:
        rest = factorial(algebra.subtract(above, below))
        return algebra.divide(factorial(above), algebra.multiply(factorial(below), rest))
    if not (0 <= n <= LARGEST_CHOICE and k >= 0 and (min(k, n - k) <= MOST_CHOSEN or n <= MOST_FACTORS)):
        raise UnreadableError("a binomial that is not computed")
    return algebra.number(math.comb(n, k))


def rounded(value: Quotient, to: Callable[[Fraction], int]) -> Quotient:
    """Round a rational with ``to`` (floor or ceiling).

    Raises:
        UnreadableError: ``value`` is no rational.
    """
    inside = algebra.rational(value)
    if inside is None:
        raise UnreadableError("the whole part of what is no rational")
    return algebra.number(to(inside))


def magnitude(value: Quotient) -> Quotient:
    """Of a number; ``|x|`` is a base of its own, and so is its square root."""
    inside = algebra.rational(value)
    if inside is not None:
        return algebra.number(abs(inside))
    return algebra.symbol(Applied("abs", min(value, algebra.negative(value), key=algebra.key)))


def factorial(base: Quotient) -> Quotient:
    """A number; ``(n+2)!`` as ``(n+1)(n+2)`` times the variable that ``n!`` is."""
    value = algebra.rational(base)
    if value is not None:
        if value.denominator != 1 or not 0 <= value <= MOST_FACTORS:
            raise UnreadableError("a factorial that is not computed")
        return algebra.number(math.factorial(int(value)))
    shift = base.above.get(algebra.ONE, Fraction(0)) if set(base.below) == {algebra.ONE} else Fraction(0)
    if shift.denominator != 1 or abs(shift) > FARTHEST:
        return algebra.symbol(opaque(f"{algebra.key(base)}!"))
    rest = algebra.subtract(base, algebra.number(shift))
    factors = (algebra.add(rest, algebra.number(n)) for n in range(min(1, int(shift) + 1), max(1, int(shift) + 1)))
    whole = reduce(algebra.multiply, factors, algebra.number(1))
    name = algebra.symbol(opaque(f"{algebra.key(rest)}!"))
    return algebra.multiply(name, whole) if shift > 0 else algebra.divide(name, whole)


def double_factorial(base: Quotient) -> Quotient:
    """Return ``base!!`` as a number, or as a symbol where ``base`` is no rational.

    Raises:
        UnreadableError: ``base`` is no whole number, or too large.
    """
    value = algebra.rational(base)
    if value is None:
        return algebra.symbol(opaque(f"{algebra.key(base)}!!"))
    if value.denominator != 1 or not 0 <= value <= MOST_DOUBLE_FACTORS:
        raise UnreadableError("a factorial that is not computed")
    return algebra.number(math.prod(range(int(value), 0, -2)))
