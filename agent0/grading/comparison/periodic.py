r"""Numbers that repeat: residues of a modulus and general solutions, whichever number stands for one and wherever
counting begins: ``x \equiv 2 \pmod 5`` is ``x = 5k - 3``."""

# ruff: noqa: RUF001 (signs as they are written)
import math
import re
from fractions import Fraction
from itertools import zip_longest
from typing import NamedTuple

from agent0.grading.math.algebra import Quotient, number
from agent0.grading.math.applied import PI
from agent0.grading.math.points import NoValueError, fraction, value_at, variables
from agent0.grading.notation.names import value_of

MOST, LARGEST_PART = 10_000, 720
"""Numbers in one period, and the largest denominator of a number and of its period."""
_modulo = re.compile(
    r"(?:\\[,;:! ]|\\q?quad|[,\s])*\(?\s*(?:\\[pb]?mod|\\pod|\bmod(?:ulo)?)(?![A-Za-z])[\s~]*\{?\s*([\w^]+)\s*\}?\s*\)?"
)
_text = re.compile(r"\\(?:text|mathrm|operatorname|mbox)\s*\{([^{}]*)\}")
_gap = r"(?:\s|\\q?quad|\\[,;:! ])*"
_joint = re.compile(rf"{_gap}(?:,\s*(?:or|and)\b|,|;|\bor\b|\band\b|\\lor|\\vee|\\cup){_gap}")
_counter = re.compile(
    r"(?:,|;|\\q?quad|\\[,;:! ]|\s|\(|\b(?:where|for|with|any|all|some|integers?)\b)*[a-zA-Z]\s*(?:\\in"
    r"|∈)\s*(?:\\(?:mathbb|mathbf|Bbb)\s*\{?\s*Z\s*\}?|ℤ|Z)\s*\)?\s*\.?\s*$|,?\s*(?:where|for|with)\s+(?:(?:some|any"
    r"|all|an?)\s+integers?\s+[a-z]|[a-z]\s+(?:is )?(?:an? |any |all )?integers?)\s*$"
)
"""Which number counts, behind a general solution."""
_name = re.compile(r"\s*([^=,\s{}](?:[^=,{}]|\{[^{}]*\}){0,12}?)\s*(?:=|\\equiv(?![A-Za-z])|\\in(?![A-Za-z]))\s*")
_sign = re.compile(r"\\(?:pm|mp)(?![A-Za-z])")
_degrees = re.compile(r"\^\s*\{?\s*\\circ\s*\}?|\\degree(?![A-Za-z])|°|\bdegrees\b")
_counts = re.compile(r"(?<![A-Za-z\\])[knmlt](?![A-Za-z(])|\\pi\s*[knml]|[knml]\s*\\pi")


class Periodic(NamedTuple):
    """The numbers ``starts`` and all that are whole multiples of ``period`` away; of a ``name`` where one is given."""

    name: str
    starts: frozenset[Fraction]
    period: Fraction

    def within(self, whole: Fraction) -> frozenset[Fraction]:
        """Those from 0 to ``whole``, a multiple of the period."""
        turns = range(int(whole / self.period))
        return frozenset((start + n * self.period) % whole for start in self.starts for n in turns)


def same_periodic(gold: str, answer: str) -> bool | None:
    """Whether both are the same numbers, of the same name where both have one; None where one is neither residues nor a
    general solution in numbers, and they are not the same sides of the same modulus."""
    is_angle = bool(_counts.search(gold) and ("pi" in gold or _degrees.search(gold)))
    if not is_angle and "mod" not in gold + answer:
        return None
    unit = PI if is_angle else number(1)
    expected = periodic(gold, unit)
    numbers = periodic(answer, unit) if expected else None
    if expected and numbers:
        names = {expected.name, numbers.name} - {""}
        whole = _common(expected.period, numbers.period)
        if any(len(side.starts) * whole / side.period > MOST for side in (expected, numbers)):
            return None
        return len(names) < 2 and expected.within(whole) == numbers.within(whole)
    sides = _sides(gold)
    return True if sides and sides == _sides(answer) else None


def bare_residue(gold: str, answer: str) -> str:
    """``7`` of ``x = 7 (mod 11)`` where the gold is a number; else ``answer``."""
    if "mod" not in answer or not gold.strip().isdigit() or (residues := periodic(answer, number(1))) is None:
        return answer
    least = str(min(residues.starts))
    is_written = len(residues.starts) == 1 and re.search(rf"(?<![-\d]){least}\s*$", _modulo.sub("", _plain(answer)))
    return least if is_written else answer


def periodic(text: str, unit: Quotient) -> Periodic | None:
    """The numbers of ``x = 2, 3 (mod 5)`` or ``x = 5k + 2``, several of them joined too, in multiples of ``unit``; None
    for others."""
    names, families = set[str](), list[tuple[Fraction, Fraction]]()
    pieces = _modulo.split(_counter.sub("", _plain(text)))
    parts = [
        (part, modulus)
        for piece, modulus in zip_longest(pieces[::2], pieces[1::2])
        for part in filter(None, _joint.split(piece.strip()))
    ]
    for part, modulus in parts:
        head = _name.match(part)
        names.update([re.sub(r"[{}\s]", "", head[1])] if head else ())
        body = part[head.end() :] if head else part
        for branch in [_sign.sub(sign, body) for sign in "+-"] if len(_sign.findall(body)) == 1 else [body]:
            if len(names) > 1 or not (family := _family(branch, modulus, names, unit)):
                return None
            families += family
    whole = _common(*(step for _, step in families))
    if not families or sum(whole / step for _, step in families) > MOST:
        return None
    starts = {start for first, step in families for start in Periodic("", frozenset({first}), step).within(whole)}
    return Periodic("".join(names), frozenset(starts), whole)


def _plain(text: str) -> str:
    return _text.sub(r" \1 ", text).replace("≡", r"\equiv ").strip("$ .")


def _common(*periods: Fraction) -> Fraction:
    below = math.lcm(*(period.denominator for period in periods))
    return Fraction(math.lcm(*(int(period * below) for period in periods)), below)


def _family(text: str, modulus: str | None, names: set[str], unit: Quotient) -> list[tuple[Fraction, Fraction]]:
    """(first, step) of a residue, or of even and of odd whole numbers that count."""
    if modulus is not None:
        is_residue = re.fullmatch(r"[-+]?\s*\d{1,9}", text) and re.fullmatch(r"[1-9]\d{0,4}", modulus)
        return [(Fraction(text.replace(" ", "")), Fraction(modulus))] if is_residue else []
    value = value_of(_degrees.sub(r" \\cdot\\frac{\\pi}{180} ", text))
    letters = variables(value) if value else set()
    if value is None or len(letters) != 1 or letters == names:
        return []
    try:
        values = [value_at(value / unit, dict.fromkeys(letters, n)) for n in range(6)]
    except NoValueError:
        return []
    counted = [exact for n in values if (exact := fraction(n, LARGEST_PART)) is not None]
    steps = {after - before for before, after in zip(counted, counted[2:], strict=False)}
    if len(counted) < len(values) or len(steps) > 1 or not (step := abs(steps.pop())):
        return []
    return [(counted[0], step), (counted[1], step)]


def _sides(text: str) -> tuple[frozenset[str], str] | None:
    r"""Sides and modulus of ``a \equiv b (mod m)``."""
    bare, sides = _plain(text), re.split(r"\\equiv(?![A-Za-z])", _modulo.sub("", _plain(text)))
    moduli = [match[1] for match in _modulo.finditer(bare)]
    return (frozenset("".join(side.split()) for side in sides), moduli[0]) if len(moduli) == 1 < len(sides) else None
