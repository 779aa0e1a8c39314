"""Sets without end that repeat: residues of a modulus and general solutions, whichever number stands for one and
wherever counting begins."""

# ruff: noqa: RUF001 (signs as they are written)
import math
import re
from fractions import Fraction
from typing import NamedTuple

from agent0.grading.math.algebra import Quotient, divide, number
from agent0.grading.math.angles import PI
from agent0.grading.math.points import NoValueError, fraction, value_at, variables
from agent0.grading.notation.names import value_of

MOST, MOST_STARTS, LONGEST = 10_000, 720, 200
"""The largest modulus, numbers in one period of a general solution, and characters of a congruence."""
_modulo = re.compile(
    r"(?:\\[,;:! ]|\\q?quad|[,\s])*\(?\s*(?:\\[pb]?mod|\\pod|\bmod(?:ulo)?)(?![A-Za-z])[\s~]*\{?\s*([\w^]+)\s*\}?\s*\)?"
)
_text = re.compile(r"\\(?:text|mathrm|operatorname|mbox)\s*\{([^{}]*)\}")
_gap = r"(?:\s|\\q?quad|\\[,;:! ])*"
_joint = re.compile(rf"{_gap}(?:,\s*(?:or|and)\b|,|;|\bor\b|\band\b|\\lor|\\vee|\\cup){_gap}")
_equal = re.compile(r"\\equiv(?![A-Za-z])|=")
_residue = re.compile(r"(\\pm)?\s*(-?\d{1,9})")
_variable = re.compile(r"[A-Za-z](?:_\{?\w+\}?)?(?:\^\{?\w+\}?)?")
_whole = re.compile(
    r"(?:,|;|\\q?quad|\\[,;:! ]|\s|\(|\b(?:where|for|with|any|all|some|integers?)\b)*[a-zA-Z]\s*(?:\\in|∈)\s*"
    r"(?:\\(?:mathbb|mathbf|Bbb)\s*\{?\s*Z\s*\}?|ℤ|Z)\s*\)?\s*\.?\s*$"
    r"|,?\s*(?:where|for|with)\s+[$]?[a-z][$]?\s+(?:is )?(?:an? |any |all )?integers?\s*$"
    r"|,?\s*(?:where|for|with)\s+(?:some|any|all|an?)\s+integers?\s+[a-z]\s*$"
)
_name = re.compile(r"^\s*(?:\\[,;: ]|\\quad)*([A-Za-z]|\\theta|θ|\\alpha)\s*(?:=|\\in)\s*")
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
        return frozenset(
            (start + n * self.period) % whole for start in self.starts for n in range(int(whole / self.period))
        )


def _same(left: Periodic, right: Periodic, most: int) -> bool | None:
    """Whether both are the same numbers, None where there are more than ``most`` of them."""
    whole = _common(left.period, right.period)
    if any(len(numbers.starts) * whole / numbers.period > most for numbers in (left, right)):
        return None
    return left.within(whole) == right.within(whole)


def _common(*periods: Fraction) -> Fraction:
    below = math.lcm(*(period.denominator for period in periods))
    return Fraction(math.lcm(*(int(period * below) for period in periods)), below)


def same_residues(gold: str, answer: str) -> bool | None:
    """Whether both are the same residues, of the same name where both have one; None where one is no congruence with
    numbers and they are not the same sides of the same modulus."""
    if "mod" not in answer or "mod" not in gold or max(len(gold), len(answer)) > LONGEST:
        return None
    if (expected := residues_of(gold)) and (residues := residues_of(answer)):
        return len({expected.name, residues.name} - {""}) < 2 and bool(_same(expected, residues, MOST))
    sides = _sides(gold)
    return True if sides and sides == _sides(answer) else None


def bare_residue(gold: str, answer: str) -> str:
    """``7`` of ``x = 7 (mod 11)`` where the gold is a number; else ``answer``."""
    if "mod" not in answer or not re.fullmatch(r"\s*\d{1,9}\s*", gold) or len(answer) > LONGEST:
        return answer
    residues, figures = residues_of(answer), re.search(r"(-?\d+)\s*$", _modulo.sub("", _plain(answer)))
    if residues is None or figures is None or len(residues.starts) > 1:
        return answer
    return figures[1] if 0 <= int(figures[1]) < residues.period else answer


def _plain(text: str) -> str:
    return _text.sub(r" \1 ", text).replace("≡", r"\equiv ").strip("$ .")


def residues_of(text: str) -> Periodic | None:
    """The residues of ``x = 2, 3 (mod 5)``, several of them joined too; None for others."""
    bare = _plain(text)
    moduli = [match[1] for match in _modulo.finditer(bare)]
    if not moduli or not all(m.isascii() and m.isdigit() and 0 < int(m) <= MOST for m in moduli):
        return None
    whole = math.lcm(*map(int, moduli))
    pieces = _modulo.split(bare)
    if whole > MOST or pieces[-1].strip():
        return None
    names, starts = set(), set[Fraction]()
    for piece, modulus in zip(pieces[:-1:2], moduli, strict=True):
        if (residues := _residues(piece, Fraction(modulus))) is None:
            return None
        names.add(residues.name)
        starts |= residues.within(Fraction(whole))
    return Periodic(names.pop(), frozenset(starts), Fraction(whole)) if len(names) == 1 else None


def _residues(text: str, modulus: Fraction) -> Periodic | None:
    name, starts = "", set[Fraction]()
    for part in filter(None, _joint.split(text.strip())):
        left, right = sides if len(sides := _equal.split(part, maxsplit=1)) == 2 else (name, part)
        match, left = _residue.fullmatch(right.strip()), left.strip()
        if match is None or (len(sides) == 2 and not _variable.fullmatch(left)) or (starts and left != name):
            return None
        name = left
        starts |= {int(match[2]) % modulus} | ({-int(match[2]) % modulus} if match[1] else set())
    return Periodic(name, frozenset(starts), modulus) if starts else None


def _sides(text: str) -> tuple[frozenset[str], str] | None:
    r"""Sides and modulus of ``a \equiv b (mod m)``."""
    bare = _plain(text)
    moduli = list(_modulo.finditer(bare))
    sides = re.split(r"\\equiv(?![A-Za-z])", _modulo.sub("", bare))
    if len(moduli) != 1 or len(sides) != 2 or moduli[0].end() < len(bare.rstrip()):
        return None
    return frozenset("".join(side.split()) for side in sides), moduli[0][1]


def same_terms(gold: str, answer: str) -> bool | None:
    """Whether ``5k + 2`` is the residue 2 modulo 5, either way; None where neither is a congruence."""
    for congruence, terms in ((gold, answer), (answer, gold)):
        if "mod" in congruence and (residues := residues_of(congruence)):
            counted = _counted(terms, number(1))
            return (
                None
                if counted is None or not counted.name
                else counted.name == residues.name and bool(_same(residues, counted, MOST))
            )
    return None


def same_families(gold: str, answer: str) -> bool | None:
    """Whether both are the same numbers; None where one is no general solution with multiples of pi or degrees."""
    if not (_counts.search(gold) and ("pi" in gold or _degrees.search(gold))):
        return None
    expected = _counted(gold, PI)
    solutions = _counted(answer, PI) if expected else None
    return _same(expected, solutions, MOST_STARTS) if expected and solutions else None


def _counted(text: str, unit: Quotient) -> Periodic | None:
    """The numbers that whole numbers count, in multiples of ``unit``; None where a part cannot be read."""
    bare, name = _whole.sub("", _plain(text)), ""
    families: list[tuple[Fraction, Fraction]] = []
    for part in filter(None, _joint.split(bare)):
        if match := _name.match(part):
            name, part = match[1], part[match.end() :]
        for both in [_sign.sub(sign, part) for sign in "+-"] if len(_sign.findall(part)) == 1 else [part]:
            if not (family := _family(both, name, unit)):
                return None
            families += family
    if not families:
        return None
    whole = _common(*(step for _, step in families))
    if sum(whole / step for _, step in families) > MOST_STARTS:
        return None
    starts = {start for first, step in families for start in Periodic("", frozenset({first}), step).within(whole)}
    return Periodic(name, frozenset(starts), whole)


def _family(text: str, name: str, unit: Quotient) -> list[tuple[Fraction, Fraction]]:
    """(first, step) of even and of odd whole numbers."""
    value = value_of(_degrees.sub(r" \\cdot\\frac{\\pi}{180} ", text))
    letters = variables(value) if value else set()
    if value is None or len(letters) != 1 or letters == {name}:
        return []
    try:
        values = [value_at(divide(value, unit), dict.fromkeys(letters, n)) for n in range(6)]
    except NoValueError:
        return []
    counted = [exact for n in values if (exact := fraction(n, MOST_STARTS)) is not None]
    steps = {after - before for before, after in zip(counted, counted[2:], strict=False)}
    if len(counted) < len(values) or len(steps) > 1 or not (step := abs(steps.pop())):
        return []
    return [(counted[0], step), (counted[1], step)]
