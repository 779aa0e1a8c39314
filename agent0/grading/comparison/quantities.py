"""Quantities: a number and its unit, or several of one kind, in any multiple of the unit."""

# ruff: noqa: RUF001 (signs as they are written)
import re
from collections.abc import Iterator
from fractions import Fraction

from agent0.grading.math import algebra
from agent0.grading.math.algebra import Quotient
from agent0.grading.notation.names import value_of
from agent0.grading.notation.numerals import figures

Dimension = tuple[tuple[str, Fraction], ...]
LONGEST = 120
_PREFIXES = {"k": 3, "M": 6, "G": 9, "c": -2, "m": -3, "d": -1, "h": 2, "μ": -6, "n": -9, r"\mu": -6}
_NAMED_PREFIXES = {"kilo": 3, "mega": 6, "giga": 9, "centi": -2, "milli": -3, "deci": -1, "micro": -6, "nano": -9}
_SI = {
    "m": ("meter metre", {"m": 1}, Fraction(1)),
    "g": ("gram gramme", {"kg": 1}, Fraction(1, 1000)),
    "s": ("second sec", {"s": 1}, Fraction(1)),
    "L": ("liter litre l", {"m": 3}, Fraction(1, 1000)),
    "J": ("joule", {"kg": 1, "m": 2, "s": -2}, Fraction(1)),
    "N": ("newton", {"kg": 1, "m": 1, "s": -2}, Fraction(1)),
    "W": ("watt", {"kg": 1, "m": 2, "s": -3}, Fraction(1)),
    "Pa": ("pascal", {"kg": 1, "m": -1, "s": -2}, Fraction(1)),
    "V": ("volt", {"kg": 1, "m": 2, "s": -3, "A": -1}, Fraction(1)),
    "A": ("ampere amp", {"A": 1}, Fraction(1)),
    "C": ("coulomb", {"A": 1, "s": 1}, Fraction(1)),
    "Hz": ("hertz", {"Hz": 1}, Fraction(1)),
    "mol": ("mole", {"mol": 1}, Fraction(1)),
    "K": ("kelvin", {"K": 1}, Fraction(1)),
    "ohm": (r"Ω \Omega", {"kg": 1, "m": 2, "s": -3, "A": -2}, Fraction(1)),
    "cal": ("calorie", {"cal": 1}, Fraction(1)),
    "B": ("byte", {"B": 1}, Fraction(1)),
}
_OTHERS: dict[str, tuple[dict[str, int], Fraction]] = {
    "min minute": ({"s": 1}, Fraction(60)),
    "h hr hour": ({"s": 1}, Fraction(3600)),
    "day": ({"s": 1}, Fraction(86400)),
    "week": ({"s": 1}, Fraction(604800)),
    "year yr": ({"year": 1}, Fraction(1)),
    "month": ({"year": 1}, Fraction(1, 12)),
    "t ton tonne": ({"kg": 1}, Fraction(1000)),
    "in inch inche": ({"m": 1}, Fraction(254, 10000)),
    "ft foot feet": ({"m": 1}, Fraction(3048, 10000)),
    "yd yard": ({"m": 1}, Fraction(9144, 10000)),
    "mi mile": ({"m": 1}, Fraction(1609344, 1000)),
    "lb pound": ({"lb": 1}, Fraction(1)),
    "oz ounce": ({"lb": 1}, Fraction(1, 16)),
    "° degree deg": ({"degree": 1}, Fraction(1)),
    "'": ({"degree": 1}, Fraction(1, 60)),
    "''": ({"degree": 1}, Fraction(1, 3600)),
    "cent": ({"dollar": 1}, Fraction(1, 100)),
    "dollar USD": ({"dollar": 1}, Fraction(1)),
    "euro EUR": ({"euro": 1}, Fraction(1)),
    "pence penny p": ({"pound": 1}, Fraction(1, 100)),
}
_UNITS: dict[str, tuple[dict[str, int], Fraction]] = {
    name: unit for names, unit in _OTHERS.items() for name in names.split()
}
for _sign, (_names, _dimension, _scale) in _SI.items():
    _UNITS |= dict.fromkeys((_sign, *_names.split()), (_dimension, _scale))
for _sign, (_names, _dimension, _scale) in _SI.items():
    for _prefix, _power in _PREFIXES.items():
        _UNITS.setdefault(_prefix + _sign, (_dimension, _scale * Fraction(10) ** _power))
    for _unit_name in _names.split():
        for _prefix, _power in _NAMED_PREFIXES.items():
            _UNITS.setdefault(_prefix + _unit_name, (_dimension, _scale * Fraction(10) ** _power))
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
_factor = re.compile(
    r"\s*(/|per\b|\\cdot|\*|·)?\s*(square |cubic )?(\\?[A-Za-zΩμ°']+)\s*(squared|cubed)?(?:\s*\^\s*(-?\d)|([23]))?\s*"
)
_POWERS = {"square": 2, "squared": 2, "cubic": 3, "cubed": 3}
_related = re.compile(r"^\s*~|[<>≈≠≤≥]|\\(?:not|neq?|approx|simeq|sim|leq?|geq?|lt|gt)(?![A-Za-z])")
_half = re.compile(r"\b(?:an?|one) (hour|minute|day|week|year)s?\b|\b(\w+) and a half (\w+)", re.IGNORECASE)


def same_quantity(gold: str, answer: str) -> bool | None:
    """Whether both are one quantity; of a gold without unit, whether ``answer`` has its number before a unit.
    None where ``gold`` has no known unit and no figures alone, or ``answer`` none."""
    if max(len(gold), len(answer)) > LONGEST or not re.search(r"[A-Za-z°']", answer):
        return None
    if _related.search(answer):
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
    parts = list(_parts(answer)) if is_bare else []
    if len(parts) != 1 or not re.search(r"[A-Za-z]", parts[0][1]):
        return None
    expected, value = value_of(gold), value_of(parts[0][0])
    return True if expected and value and algebra.same(expected, value) else None


def _quantity(text: str) -> tuple[Quotient, Dimension] | None:
    """(value in units of the system, dimension); None where ``text`` is no quantity with known units."""
    total: Quotient | None = None
    dimension: Dimension | None = None
    for number, unit in _parts(text):
        units, value = _unit(unit), value_of(number)
        if units is None or value is None or (dimension is not None and units[0] != dimension):
            return None
        dimension, part = units[0], algebra.multiply(value, algebra.number(units[1]))
        total = part if total is None else algebra.add(total, part)
    return (total, dimension) if total is not None and dimension is not None else None


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Numbers and their units, one after the other; nothing where anything else is there."""
    bare = _degrees.sub(" ° ", _text.sub(lambda f: f" {f[1] or ''} ", text.strip(" .")))
    bare = re.sub(r"\\[dt]?frac\s*\{?(\d+)\}?\s*\{?(\d+)\}?", r" \1/\2", bare)
    bare = _name.sub("", re.sub(r"\s*\^\s*", "^", _gap.sub(" ", bare)))
    bare = _half.sub(lambda f: f"1 {f[1]}" if f[1] else f"{_figure(f[2])}.5 {f[3]}", bare.replace("′′", "''"))
    bare = re.sub(r"\band a half\b", "and 30 minutes", bare) if re.search(r"\bhours?\b", bare) else bare
    bare = re.sub(
        r"[A-Za-z]+(?:-[a-z]+)?(?= (?:hours?|minutes?|seconds?|days?|weeks?)\b)", lambda f: figures(f[0]), bare
    )
    bare, parts, start = bare.strip(), [], 0
    while start < len(bare):
        if (part := _part.match(bare, start)) is None or part.end() == start:
            return
        parts.append((part[1].replace(",", ""), part[2].strip()))
        start = part.end()
    yield from parts


def known_unit(text: str) -> bool:
    """Whether ``text`` is a unit of physics, money or time."""
    return _unit(text) is not None


def _figure(numeral: str) -> str:
    return numeral if numeral.isdigit() else figures(numeral.lower())


def _unit(text: str) -> tuple[Dimension, Fraction] | None:
    """(dimension, how many units of the system) of ``km/h``, ``m s^{-2}``, ``square meters``; None for others."""
    exponents: dict[str, Fraction] = {}
    scale, below, start = Fraction(1), False, 0
    text = re.sub(r"\\(Omega|mu)\s*", r"\\\1", text).strip(" .")
    while start < len(text):
        match = _factor.match(text, start)
        if match is None or match.end() == start:
            return None
        start = match.end()
        unit = _UNITS.get(match[3]) or _UNITS.get(match[3].lower().removesuffix("s") if len(match[3]) > 3 else "")
        if unit is None:
            return None
        below = match[1] in ("/", "per") or (below and match[1] is not None and "/" not in text[: match.start()])
        power = int(match[5] or match[6] or _POWERS.get((match[2] or match[4] or "").strip(), 1)) * (-1 if below else 1)
        scale *= unit[1] ** power
        for name, exponent in unit[0].items():
            exponents[name] = exponents.get(name, Fraction(0)) + exponent * power
    return tuple(sorted((n, e) for n, e in exponents.items() if e)), scale
