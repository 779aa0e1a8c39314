"""Exact sines, cosines and powers of e at multiples of 15 degrees."""

from fractions import Fraction

from agent0.grading.math import algebra
from agent0.grading.math.algebra import Quotient


def _in_half_turns(angle: Quotient) -> Fraction | None:
    """The rational number of half turns (multiples of pi) that ``angle`` is, None where it is none."""
    if not angle.above:
        return Fraction(0)
    return algebra.rational(algebra.multiply(angle, algebra.inverse(algebra.symbol("pi"))))


def _sine(half_turns: Fraction) -> Quotient | None:
    """The exact sine of a multiple of 15 degrees."""
    twelfths = half_turns * 12
    if twelfths.denominator != 1:
        return None
    step = int(twelfths) % 24
    value = _SINES[min(step % 12, 12 - step % 12)]
    return algebra.negative(value) if step > 12 else value


def _root_of(number: int) -> Quotient:
    return algebra.power(algebra.number(number), algebra.number(Fraction(1, 2)))


def _sines() -> list[Quotient]:
    """Sines of 0, 15, ... 90 degrees."""
    half, quarter = algebra.number(Fraction(1, 2)), algebra.number(Fraction(1, 4))
    roots = {n: _root_of(n) for n in (2, 3, 6)}
    return [
        algebra.number(0),
        algebra.multiply(quarter, algebra.add(roots[6], algebra.negative(roots[2]))),
        half,
        algebra.multiply(half, roots[2]),
        algebra.multiply(half, roots[3]),
        algebra.multiply(quarter, algebra.add(roots[6], roots[2])),
        algebra.number(1),
    ]


_SINES = _sines()
E = algebra.symbol("e")


def turned(exponent: Quotient) -> Quotient | None:
    """Return ``e ** exponent`` by its cosine and sine, where ``exponent`` is i times a multiple of 15 degrees; else
    None."""
    if not any(base == "i" for terms in (exponent.above, exponent.below) for monomial in terms for base, _ in monomial):
        return None
    half_turns = _in_half_turns(algebra.multiply(exponent, algebra.negative(algebra.symbol("i"))))
    sine, cosine = (None, None) if half_turns is None else (_sine(half_turns), _sine(half_turns + Fraction(1, 2)))
    if sine is None or cosine is None:
        return None
    return algebra.add(cosine, algebra.multiply(algebra.symbol("i"), sine))


def of_angle(name: str, inside: Quotient) -> Quotient | None:
    """The exact value of a function of a multiple of 15 degrees, None at every other angle.

    Raises:
        UndefinedError: it has none.
    """
    half_turns = _in_half_turns(inside)
    sine, cosine = (None, None) if half_turns is None else (_sine(half_turns), _sine(half_turns + Fraction(1, 2)))
    if sine is None or cosine is None:
        return None
    above, below = {"sin": (sine, None), "cos": (cosine, None), "tan": (sine, cosine), "cot": (cosine, sine),
                    "sec": (None, cosine), "csc": (None, sine)}[name]  # fmt: skip
    above = algebra.number(1) if above is None else above
    return above if below is None else algebra.multiply(above, algebra.inverse(below))
