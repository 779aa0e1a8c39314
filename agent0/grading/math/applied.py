"""Functions of exact values: sines and cosines, binomials, factorials, whole parts, magnitudes."""

import math
from collections.abc import Callable
from fractions import Fraction

from agent0.grading.math import algebra
from agent0.grading.math.algebra import Applied, Quotient, opaque
from agent0.grading.math.lexer import UnreadableError

MOST_FACTORS, MOST_DOUBLE_FACTORS, LARGEST_CHOICE, MOST_CHOSEN, FARTHEST = 5_000, 50, 10**6, 300, 8
"""Of a factorial, a double factorial and a binomial that are computed; between factorials that are compared."""
E, PI, IMAGINARY = (algebra.symbol(name) for name in ("e", "pi", "i"))
_ONE = algebra.number(1)
_half, _quarter = Fraction(1, 2), Fraction(1, 4)


def _root(radicand: int, factor: Fraction) -> Quotient:
    return algebra.number(factor) * algebra.number(radicand) ** algebra.number(_half)


_SINES = (
    algebra.number(0), _root(6, _quarter) - _root(2, _quarter), algebra.number(_half), _root(2, _half),
    _root(3, _half), _root(6, _quarter) + _root(2, _quarter), algebra.number(1),
)  # fmt: skip
"""Of 0, 15, ... 90 degrees."""


def _sine(step: int) -> Quotient:
    """The sine of ``step`` times 15 degrees."""
    value = _SINES[min(step % 12, 12 - step % 12)]
    return -value if step % 24 > 12 else value


def _sine_and_cosine(angle: Quotient) -> tuple[Quotient, Quotient] | None:
    """Exact ones at a multiple of 15 degrees, None at every other angle."""
    step = algebra.whole(algebra.number(12) * angle / PI)
    return None if step is None else (_sine(step), _sine(step + 6))


def exponential(exponent: Quotient) -> Quotient:
    """Return ``e ** exponent``; by its cosine and sine where ``exponent`` is i times a multiple of 15 degrees."""
    if "i" not in exponent.bases or (pair := _sine_and_cosine(exponent / IMAGINARY)) is None:
        return E**exponent
    return pair[1] + IMAGINARY * pair[0]


def function(name: str, inside: Quotient, base: Quotient | None) -> Quotient:
    """The value of a function: quotients of sine and cosine, exact at multiples of 15 degrees, or a base of its own.

    Raises:
        UndefinedError: it has no value.
    """
    if name == "exp":
        return exponential(inside)
    if base is not None:
        return algebra.symbol(Applied(name, inside, base))
    if name not in ("sin", "cos", "tan", "cot", "sec", "csc"):
        return algebra.symbol(Applied(name, inside))
    exact = _sine_and_cosine(inside)
    sine, cosine = exact or (algebra.symbol(Applied("sin", inside)), algebra.symbol(Applied("cos", inside)))
    above, below = {"sin": (sine, _ONE), "cos": (cosine, _ONE), "tan": (sine, cosine), "cot": (cosine, sine),
                    "sec": (_ONE, cosine), "csc": (_ONE, sine)}[name]  # fmt: skip
    return above / below


def binomial(above: Quotient, below: Quotient) -> Quotient:
    """Return the binomial coefficient: a number where both are whole, else a quotient of factorials."""
    n, k = algebra.whole(above), algebra.whole(below)
    if n is None or k is None:
        return factorial(above) / (factorial(below) * factorial(above - below))
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
    return algebra.symbol(Applied("abs", min(value, -value, key=algebra.key)))


def factorial(base: Quotient, step: int = 1) -> Quotient:
    """A number, of ``step`` 2 for ``n!!``; ``(n+2)!`` as ``(n+1)(n+2)`` times the variable that ``n!`` is.

    Raises:
        UnreadableError: ``base`` is a fraction, negative, or too large.
    """
    value = algebra.rational(base)
    if value is not None:
        if value.denominator != 1 or not 0 <= value <= (MOST_FACTORS if step == 1 else MOST_DOUBLE_FACTORS):
            raise UnreadableError("a factorial that is not computed")
        return algebra.number(math.factorial(int(value)) if step == 1 else math.prod(range(int(value), 0, -2)))
    shift = base.above.get(algebra.ONE, Fraction(0)) if set(base.below) == {algebra.ONE} else Fraction(0)
    if step > 1 or shift.denominator != 1 or abs(shift) > FARTHEST:
        return algebra.symbol(opaque(f"{algebra.key(base)}{'!' * step}"))
    rest = base - algebra.number(shift)
    factors = (rest + algebra.number(n) for n in range(min(1, int(shift) + 1), max(1, int(shift) + 1)))
    whole = math.prod(factors, start=_ONE)
    name = algebra.symbol(opaque(f"{algebra.key(rest)}!"))
    return name * whole if shift > 0 else name / whole
