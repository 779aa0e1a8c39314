"""Quantities: a number and its unit, or several of one kind, in any multiple of the unit."""

# ruff: noqa: RUF001 (signs as they are written)
import re
from collections.abc import Iterator

from agent0.grading.math import algebra
from agent0.grading.math.algebra import Quotient
from agent0.grading.math.units import Dimension, measure
from agent0.grading.notation.names import value_of
from agent0.grading.notation.numerals import figures
from agent0.grading.rules import rewrite, rules

LONGEST = 120
"""Characters of a quantity."""
_text = re.compile(r"\\(?:text(?:bf|rm|normal)?|mathrm|mbox|operatorname|rm|unit|si)\s*\{([^{}]*)\}|\\rm(?![A-Za-z])")
_gap = re.compile(r"\\[ ,;:!]|\\q?quad(?![A-Za-z])|~|[{}$]")
_degrees = re.compile(r"\^\s*\{?\s*\\circ\s*\}?|\\degree(?![A-Za-z])|°|\bdegrees?\b")
_name = re.compile(r"^\s*(?:\\?[A-Za-zα-ω∠]+(?:_\{?\w+\}?)?|\\angle\s*[A-Z]+|m\s*\\angle\s*[A-Z]+)\s*=\s*")
_number = (
    r"[-+]?(?:\\frac\s*\d+ \d+|\d+\s+\d+/\d+|\d+/\d+|\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?(?:\s*(?:\\times|\\cdot"
    r"|\*)\s*10\s*\^\s*-?\d+)?|\.\d+)"
)
_part = re.compile(
    rf"\s*(?:(?:,|and)\s+)?({_number})\s*((?:square |cubic )?(?:[A-Za-zΩμ°'][A-Za-zΩμ°']*|\\Omega"
    rf"|\\mu\s?[A-Za-z])(?:[^\d,]|(?<=\^)[-\d]|(?<=\^-)\d|(?<=[A-Za-z])[23](?!\d))*?)"
    rf"(?=\s*$|[,\s]\s*(?:and\s+)?{_number}\s*[A-Za-z°']|(?<![\^-])\s*\d)"
)
_related = re.compile(r"^\s*~|[<>≈≠≤≥]|\\(?:not|neq?|approx|simeq|sim|leq?|geq?|lt|gt)(?![A-Za-z])")
_measured = re.compile(r"[A-Za-z°'$]|\d:\d\d:")
_numeral = re.compile(r"[A-Za-z]+(?:-[a-z]+)?(?= (?:hours?|minutes?|seconds?|days?|weeks?)\b)")
_WRITTEN = rules(
    (r"^(-?)\s*(?:\\?\$|USD\s*)\s*(\d[\d,]*(?:\.\d+)?|\.\d+)\s*(?:USD|dollars)?$", r"\1\2 dollars"),
    (r"^(\d{1,4})'\s*(\d{1,2}(?:\.\d+)?)(?:\"|'')$", r"\1 feet \2 inches"),
    (r"^(\d{1,3}):([0-5]\d):([0-5]\d)$", r"\1 hours \2 minutes \3 seconds"),
    (r"\\frac\s*\{?(\d+)\}?\s*\{?(\d+)\}?", r" \1/\2"),
    (r"(?i)\b(?:an?|one) (hour|minute|day|week|year)s?\b", r"1 \1"),
)  # fmt: skip


def same_quantity(gold: str, answer: str) -> bool | None:
    """Whether both are one quantity; of a gold without unit, whether ``answer`` has its number before a unit.
    None where ``gold`` has no known unit and no figures alone, or ``answer`` none."""
    if max(len(gold), len(answer)) > LONGEST or _related.search(answer) or not _measured.search(answer):
        return None
    heads = [_name.match(text) for text in (gold, answer)]
    if all(heads) and len({"".join(head[0].split()) for head in heads if head}) > 1:
        return None
    quantity = _quantity(answer)
    if quantity is None:
        return None
    expected = _quantity(gold)
    if expected is None:
        return _without_unit(gold, answer)
    return expected[1] == quantity[1] and algebra.same(expected[0], quantity[0])


def _without_unit(gold: str, answer: str) -> bool | None:
    """Whether the number of ``answer`` is the gold's, which has no unit; None where either is none."""
    is_bare = not re.search(r"[A-Za-z°'$%€£]", re.sub(r"\\(?:times|cdot|d?frac)", "", gold))
    numbers = list(parts(answer)) if is_bare else []
    if len(numbers) != 1 or not re.search(r"[A-Za-z]", numbers[0][1]):
        return None
    expected, value = value_of(gold), value_of(numbers[0][0])
    return True if expected and value and algebra.same(expected, value) else None


def _quantity(text: str) -> tuple[Quotient, Dimension] | None:
    """(value in units of the system, dimension); None where ``text`` is no quantity with known units."""
    total: Quotient | None = None
    dimension: Dimension | None = None
    for number, unit in parts(text):
        units, value = measure(unit), value_of(number)
        if units is None or value is None or (dimension is not None and units[0] != dimension):
            return None
        dimension, part = units[0], value * algebra.number(units[1])
        total = part if total is None else total + part
    return (total, dimension) if total is not None and dimension is not None else None


def parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the numbers of a text and their units, one after the other; nothing where anything else is there, or where
    the text is longer than ``LONGEST``."""
    if len(text) > LONGEST:
        return
    bare = _degrees.sub(" ° ", _text.sub(lambda f: f" {f[1] or ''} ", text.strip(" .")))
    bare = _name.sub("", re.sub(r"\s*\^\s*", "^", _gap.sub(" ", rewrite(bare, _WRITTEN))))
    if re.search(r"\bhours?\b", bare):
        bare = bare.replace("and a half", "and 30 minutes")
    bare, numbers, start = _numeral.sub(lambda f: figures(f[0]), bare).strip(), [], 0
    while start < len(bare):
        if (part := _part.match(bare, start)) is None or part.end() == start:
            return
        numbers.append((part[1].replace(",", ""), part[2].strip()))
        start = part.end()
    yield from numbers
