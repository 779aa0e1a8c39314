"""Numbers and quantities that may differ by a tolerance that a row of a file names."""

import re
from dataclasses import dataclass
from fractions import Fraction

from agent0.grading.comparison.quantities import parts
from agent0.grading.math.algebra import rational
from agent0.grading.math.cleaning import clean
from agent0.grading.math.parser import read
from agent0.grading.math.units import Dimension, measure

_tolerance = re.compile(r"(\d{1,30}(?:\.\d{1,30})?|\.\d{1,30})(?:[eE](-?\d{1,2}))?\s?(%?)", re.ASCII)


@dataclass(frozen=True)
class Measured:
    """A number with its unit: the dimension, and how many units of the system it is; ``dimension`` None: no unit that
    is known."""

    number: Fraction
    dimension: Dimension | None = None
    scale: Fraction = Fraction(1)


def is_tolerance(text: str) -> bool:
    """Whether ``text`` is a number from 0 up, or such a number of percent."""
    return _tolerance.fullmatch(text.strip()) is not None


def measured_in(text: str) -> Measured | None:
    """The number that an answer is, with its unit; None where it is none."""
    numbers = [*parts(text)]
    if len(numbers) == 1 and (unit := measure(numbers[0][1])):
        number = _number(numbers[0][0])
        return None if number is None else Measured(number, *unit)
    number = _number(clean(text).text)
    return None if number is None else Measured(number)


def _number(text: str) -> Fraction | None:
    try:
        return rational(read(text))
    except ValueError:  # unreadable, undefined or too large
        return None


def within(expected: str, answer: str, tolerance: str) -> bool | None:
    """Whether ``answer`` differs from ``expected`` by at most ``tolerance``: absolute, in the unit of ``expected``, or
    with ``%`` a share of it. None where one of them is no number, or they measure different things."""
    limit, right, value = _tolerance.fullmatch(tolerance.strip()), measured_in(expected), measured_in(answer)
    if limit is None or right is None or value is None:
        return None
    number = value.number
    if right.dimension is not None and value.dimension is not None:
        if right.dimension != value.dimension:
            return None
        number = number * value.scale / right.scale
    allowed = Fraction(limit[1]) * Fraction(10) ** int(limit[2] or 0)
    return abs(number - right.number) <= (allowed * abs(right.number) / 100 if limit[3] else allowed)
