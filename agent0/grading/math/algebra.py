"""Exact algebra for comparing answers: quotients of polynomials over the rationals in variables, constants, roots and
function values. Bounded in every direction, so a hostile expression is refused and never computed.

A monomial is a sorted tuple of (base, exponent); bases are text, primes stand for themselves (so 12 ** (1/2) is twice
3 ** (1/2)), and whatever is not understood inside (a root of a sum, sin x) is one base, ``Applied``, that keeps its
arguments.
"""

import hashlib
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

Monomial = tuple[tuple[str, Fraction], ...]
Terms = dict[Monomial, Fraction]

MOST_TERMS, MOST_BITS, HIGHEST_POWER, LARGEST_RADICAND = 300, 4096, 64, 10**10
MOST_BITS_ALONE = 1 << 16
"""Of the one coefficient of a number or a single term: factorials of thousands."""
LONGEST_BASE = 4_000
"""Characters of a base; functions within functions would repeat it beyond measure."""
ONE: Monomial = ()


class TooLargeError(ValueError):
    """A number or polynomial is too large to compute with exactly."""


class UndefinedError(ValueError):
    """An operation has no value, such as a division by zero."""


@dataclass(frozen=True)
class Quotient:
    """``above / below``, neither reduced nor expanded further than needed; use ``same`` to compare.

    Operators are exact. They raise UndefinedError where a divisor is 0, and TooLargeError where the value is large.
    """

    above: Terms
    below: Terms

    def __add__(self, other: "Quotient") -> "Quotient":
        if self.below == other.below:
            return Quotient(_sum(self.above, other.above), self.below)
        above = _sum(_product(self.above, other.below), _product(other.above, self.below))
        return Quotient(above, _product(self.below, other.below))

    def __neg__(self) -> "Quotient":
        return Quotient({m: -c for m, c in self.above.items()}, self.below)

    def __sub__(self, other: "Quotient") -> "Quotient":
        return self + -other

    def __mul__(self, other: "Quotient") -> "Quotient":
        return _folded(_product(self.above, other.above), _product(self.below, other.below))

    def __truediv__(self, other: "Quotient") -> "Quotient":
        return self * inverse(other)

    def __pow__(self, exponent: "Quotient") -> "Quotient":
        """Rational exponents of single terms, small whole ones of anything; else a base of its own."""
        value = rational(exponent)
        if value is None:
            return symbol(Applied("^", self, exponent))
        return _whole(self, int(value)) if value.denominator == 1 else _root(self, value)

    @property
    def bases(self) -> set[str]:
        """Every base in it that is no number."""
        bases = {base for terms in (self.above, self.below) for monomial in terms for base, _ in monomial}
        return {base for base in bases if not base.isdigit()}

    @property
    def names(self) -> set[str]:
        """Variables, constants and functions, also those inside of a base."""
        return set(re.findall(r"[A-Za-z]\w*", " ".join(self.bases)))


class Applied(str):
    """A base that is a function of ``arguments``, spelled by their normal forms; ``^`` is a power."""

    function: str
    arguments: tuple[Quotient, ...]

    def __new__(cls, function: str, *arguments: Quotient) -> "Applied":
        """Spell it so that equal functions of equal normal forms are equal texts."""
        keys = [key(argument) for argument in arguments]
        text = "^".join(f"({k})" for k in keys) if function == "^" else f"{function}({','.join(keys)})"
        if len(text) > LONGEST_BASE:
            raise TooLargeError("a function of a large expression")
        base = super().__new__(cls, text)
        base.function, base.arguments = function, arguments
        return base


def opaque(meaning: str) -> str:
    """The name of a variable that stands for ``meaning``, the same one each time."""
    return f"N_{int.from_bytes(hashlib.sha256(meaning.encode()).digest()[:6])}"


def number(value: Fraction | int) -> Quotient:
    """The quotient of a whole number or fraction, without symbols."""
    _check_bits(Fraction(value), MOST_BITS_ALONE)
    return Quotient({ONE: Fraction(value)} if value else {}, {ONE: Fraction(1)})


def symbol(name: str) -> Quotient:
    """A variable or constant; ``i`` is the imaginary unit."""
    return Quotient({((name, Fraction(1)),): Fraction(1)}, {ONE: Fraction(1)})


def inverse(value: Quotient) -> Quotient:
    """1 / value.

    Raises:
        UndefinedError: value is 0.
    """
    if not value.above:
        raise UndefinedError("division by zero")
    return _folded(value.below, value.above)


def whole(value: Quotient) -> int | None:
    """The whole number it is, None where it is none."""
    fraction = rational(value)
    return int(fraction) if fraction is not None and fraction.denominator == 1 else None


def rational(value: Quotient) -> Fraction | None:
    """The number it is, None where it is none."""
    if set(value.above) <= {ONE} and set(value.below) == {ONE}:
        return value.above.get(ONE, Fraction(0)) / value.below[ONE]
    return None


def same(left: Quotient, right: Quotient) -> bool:
    """Whether they are equal wherever both are defined."""
    return _product(left.above, right.below) == _product(right.above, left.below)


def proportional(left: Quotient, right: Quotient) -> bool:
    """Whether one is a rational multiple, not 0, of the other."""
    terms, others = _product(left.above, right.below), _product(right.above, left.below)
    if not terms or terms.keys() != others.keys():
        return False
    first = next(iter(terms))
    ratio = terms[first] / others[first]
    return all(terms[m] == ratio * others[m] for m in terms)


def key(value: Quotient) -> str:
    """A normal form as text: equal texts, equal values (the converse may fail for quotients of sums)."""
    for terms in (value.above, value.below):
        for factor in terms.values():
            _check_bits(factor, MOST_BITS)
    lead = next((value.below[m] for m in sorted(value.below)), Fraction(1))
    above, below = (
        "+".join(f"{c / lead}{''.join(f'*{b}^{e}' for b, e in m)}" for m, c in sorted(terms.items()))
        for terms in (value.above, value.below)
    )
    return above or "0" if below == "1" else f"({above})/({below})"


def _folded(above: Terms, below: Terms) -> Quotient:
    """With a divisor of one term moved above."""
    if len(below) != 1:
        return Quotient(above, below)
    ((monomial, factor),) = below.items()
    turned = {tuple((base, -exponent) for base, exponent in monomial): 1 / factor}
    return Quotient(_product(above, turned), {ONE: Fraction(1)})


def _sum(left: Terms, right: Terms) -> Terms:
    out = dict(left)
    for monomial, factor in right.items():
        out[monomial] = out.get(monomial, Fraction(0)) + factor
    return _bounded(out)


def _product(left: Terms, right: Terms) -> Terms:
    if len(left) * len(right) > MOST_TERMS * 8:
        raise TooLargeError("too many terms")
    out: Terms = {}
    for first, factor in left.items():
        for second, multiplier in right.items():
            monomial, more = _merged((*first, *second))
            out[monomial] = out.get(monomial, Fraction(0)) + factor * multiplier * more
    return _bounded(out)


def _bounded(terms: Terms) -> Terms:
    out = {m: c for m, c in terms.items() if c}
    if len(out) > MOST_TERMS:
        raise TooLargeError("too many terms")
    for factor in out.values():
        _check_bits(factor, MOST_BITS if len(out) > 1 else MOST_BITS_ALONE)
    return out


def _check_bits(value: Fraction, most: int) -> None:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > most:
        raise TooLargeError("too many digits")


def _merged(factors: Iterable[tuple[str, Fraction]]) -> tuple[Monomial, Fraction]:
    """One factor a base; whole powers of primes and of i go into the coefficient."""
    exponents: dict[str, Fraction] = {}
    for base, exponent in factors:
        exponents[base] = exponents.get(base, Fraction(0)) + exponent
    coefficient = Fraction(1)
    for base in [b for b in exponents if b.isdigit() or b == "i"]:
        period = 2 if base == "i" and exponents[base].denominator == 1 else 1
        whole, rest = divmod(exponents[base], period)
        if abs(whole) > MOST_BITS_ALONE:
            raise TooLargeError("a large power")
        if base != "i":
            coefficient *= Fraction(int(base)) ** whole
        elif period == 2:
            coefficient *= Fraction(-1) ** whole
        else:
            rest = exponents[base]
        exponents[base] = rest
    return tuple(sorted((b, e) for b, e in exponents.items() if e)), coefficient


def _whole(base: Quotient, exponent: int) -> Quotient:
    value = rational(base)
    if value is not None:
        if abs(exponent) * (max(value.numerator.bit_length(), value.denominator.bit_length()) - 1) > MOST_BITS_ALONE:
            raise TooLargeError(f"a power of {exponent}")
        if not value and exponent < 0:
            raise UndefinedError("division by zero")
        return number(value**exponent)
    if len(base.above) == 1 and len(base.below) == 1:
        return _term_power(base, Fraction(exponent))
    if abs(exponent) > HIGHEST_POWER:
        raise TooLargeError(f"a power of {exponent}")
    result = math.prod([base] * abs(exponent), start=number(1))
    return result if exponent >= 0 else inverse(result)


def _term_power(base: Quotient, exponent: Fraction) -> Quotient:
    """Of a single term."""
    ((monomial, factor),) = base.above.items()
    ((under, divisor),) = base.below.items()
    if abs(exponent) > 10**6:
        raise TooLargeError("a large power")
    plain = tuple((b, e * exponent) for b, e in (*monomial, *((b, -e) for b, e in under)))
    merged, more = _merged((*plain, *_number_power(factor / divisor, exponent)))
    return Quotient({merged: more}, {ONE: Fraction(1)})


def _number_power(value: Fraction, exponent: Fraction) -> list[tuple[str, Fraction]]:
    """``value ** exponent`` by primes. A root of a negative number brings i."""
    out = [(str(p), exponent * k) for p, k in _primes(abs(value.numerator))]
    out += [(str(p), -exponent * k) for p, k in _primes(value.denominator)]
    if value < 0:
        if exponent.denominator not in (1, 2):
            raise UndefinedError("an odd root of a negative number")
        out.append(("i", 2 * exponent))
    return out


def _root(base: Quotient, exponent: Fraction) -> Quotient:
    value = rational(base)
    if value == 0:
        return number(0)
    if value is not None and value < 0 and exponent.denominator % 2:
        turned = _root(-base, exponent)
        return -turned if exponent.numerator % 2 else turned
    if value is not None:
        merged, more = _merged(_number_power(value, exponent))
        return Quotient({merged: more}, {ONE: Fraction(1)})
    single = len(base.above) == 1 and len(base.below) == 1
    if single and all(e.denominator == 1 and e % 2 for m in base.above for b, e in m if not b.isdigit()):
        return _term_power(base, exponent)
    return symbol(Applied("^", base, number(exponent)))


def _primes(value: int) -> list[tuple[int, int]]:
    """(prime, exponent) of a whole number above 0."""
    if value > LARGEST_RADICAND:
        raise TooLargeError("a root of a large number")
    out: list[tuple[int, int]] = []
    divisor = 2
    while divisor * divisor <= value:
        count = 0
        while value % divisor == 0:
            value, count = value // divisor, count + 1
        if count:
            out.append((divisor, count))
        divisor += 1
    return [*out, (value, 1)] if value > 1 else out
