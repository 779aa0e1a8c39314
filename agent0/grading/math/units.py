"""Units, in one table: the unit behind a value, found from the end, word by word, and what a unit measures."""

import re
from fractions import Fraction

Dimension = tuple[tuple[str, Fraction], ...]
"""Units of the system and their exponents: ``(("m", 1), ("s", -2))``."""
MOST_WORDS = 5
_METRIC = (
    ("meter metre", "m", "m", 1), ("gram gramme gm", "g", "kg", Fraction(1, 1000)), ("second sec", "s", "s", 1),
    ("liter litre", "L l", "m3", Fraction(1, 1000)), ("joule", "J", "kg m2 s-2", 1), ("newton", "N", "kg m s-2", 1),
    ("watt", "W", "kg m2 s-3", 1), ("pascal", "Pa", "kg m-1 s-2", 1), ("volt", "V", "kg m2 s-3 A-1", 1),
    ("ampere amp", "A", "A", 1), ("coulomb", "C", "A s", 1), ("hertz hz", "Hz", "Hz", 1), ("mole", "mol", "mol", 1),
    ("kelvin", "K", "K", 1), ("ohm", r"Ω \Omega", "kg m2 s-3 A-2", 1), ("calorie", "cal", "cal", 1),
    ("byte", "B", "B", 1),
)  # fmt: skip
"""Names, the first of which is used; symbols; what is measured; how many units of the system one is."""
_POUND = Fraction(45359237, 10**8)
_OTHERS = (
    ("minute min", "", "s", 60), ("hour hr", "h", "s", 3600), ("day", "", "s", 86400), ("week wk", "", "s", 604800),
    ("year yr", "", "year", 1), ("month", "", "year", Fraction(1, 12)), ("ton tonne", "t", "kg", 1000),
    ("inch in", "", "m", Fraction(254, 10000)), ("foot feet ft", "", "m", Fraction(3048, 10000)),
    ("mph", "", "m s-1", Fraction(1397, 3125)), ("kmh kph", "", "m s-1", Fraction(5, 18)),
    ("celsius", "", "celsius", 1), ("fahrenheit", "F", "fahrenheit", 1),
    ("yard yd", "", "m", Fraction(9144, 10000)), ("mile mi", "", "m", Fraction(1609344, 1000)),
    ("pound lb", "", "kg", _POUND), ("ounce oz", "", "kg", _POUND / 16), ("euro eur", "EUR", "euro", 1),
    ("gbp", "GBP", "gbp", 1), ("pence penny", "p", "gbp", Fraction(1, 100)), ("dollar usd buck", "USD", "dollar", 1),
    ("cent ¢", "", "dollar", Fraction(1, 100)), ("degree deg", "°", "degree", 1),
    ("", "'", "degree", Fraction(1, 60)), ("", "''", "degree", Fraction(1, 3600)),
)  # fmt: skip
_COUNTED = {
    "percent": "percentage", "radian": "rad", "square": "sq", "cubic": "cu", "people": "person", "child": "children",
    "unit": "", "am": "", "pm": "", "kilogram": "kilo",
}  # fmt: skip
"""What is behind a number too, and measures nothing that is converted."""
_PREFIXES = {"k": 3, "M": 6, "G": 9, "c": -2, "m": -3, "d": -1, "h": 2, "μ": -6, "n": -9, r"\mu": -6}
_NAMED_PREFIXES = {"kilo": 3, "mega": 6, "giga": 9, "centi": -2, "milli": -3, "deci": -1, "micro": -6, "nano": -9}
_SAME = {name: unit for unit, names in _COUNTED.items() for name in (unit, *names.split())}
"""Names that are words, and the one that is used."""
_LETTERS: dict[str, str] = {}
"""Symbols of one letter, and their name."""
_MEASURED: dict[str, tuple[dict[str, int], Fraction]] = {}
"""Names and symbols, what is measured, and how many units of the system one is."""


def _enter(names: str, symbols: str, measured: str, scale: Fraction | int) -> None:
    dimension = {match[1]: int(match[2] or 1) for match in re.finditer(r"([A-Za-z]+)(-?\d)?", measured)}
    for name in (*names.split(), *symbols.split()):
        _MEASURED.setdefault(name, (dimension, Fraction(scale)))
    _SAME.update({name: names.split()[0] for name in names.split()})
    _LETTERS.update({symbol: names.split()[0] for symbol in symbols.split() if len(symbol) == 1 and names})


for _row in (*_METRIC, *_OTHERS):
    _enter(*_row)
for _names, _symbols, _measured, _scale in _METRIC:
    for _prefix, _exponent in _NAMED_PREFIXES.items():
        _enter(" ".join(_prefix + name for name in _names.split()), "", _measured, _scale * Fraction(10) ** _exponent)
    for _prefix, _exponent in _PREFIXES.items():
        for _symbol in _symbols.split():
            _MEASURED.setdefault(_prefix + _symbol, (_MEASURED[_symbol][0], _scale * Fraction(10) ** _exponent))
_SAME |= {"km": "kilometer", "cm": "centimeter", "mm": "millimeter", "kg": "kilogram", "mg": "milligram",
          "ml": "milliliter"}  # fmt: skip
_TIMES = {"h": "hour", "s": "second"}
_JOINTS = {"per", "of", "the", "a", "each", "square", "cubic"}
_NO_UNIT = frozenset(
    """
    sin cos tan cot csc log ln exp sqrt pi infty alpha beta gamma theta phi lambda omega sigma delta mu rho frac
    and or to is are was not no nor if then else but because since maybe perhaps except unless more less most
    least than plus minus times over about around approximately nearly wrong false hundred thousand million
    billion trillion dozen half third thirds quarter quarters fourths fifths tenths cup cap choose mod base le
    ge ne circ cdot div hundreds thousands millions billions trillions hundredths thousandths tens dozens halves
    factorial gross score double doubled twice inverse reciprocal negative positive infinity below point squares cubes
    tausend million millionen milliarde milliarden billionen dutzend nicht mille mil millier milliers millions
    milliard milliards douzaine douzaines pas millón millones docena docenas bin yüz milyon milyar düzine
    тысяча тысячи тысяч миллион миллиона миллионов миллиард миллиарда миллиардов дюжина дюжины дюжин пара пары пар
    сотен или либо нет off
    """.split()  # noqa: SIM905 (a list would fill a page)
)
_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
NUMERALS = {term: n for n, term in enumerate(_ONES)} | {
    f"{term}{joint}{_ONES[digit] if digit else ''}": ten * 10 + digit
    for ten, term in enumerate(_TENS, 2)
    for digit in range(10)
    for joint in (("-", " ") if digit else ("",))
}
"""Whole numbers below a hundred in words."""
_SOUNDS = re.compile("[aeiou\u0430\u0435\u0438\u043e\u0443\u044b\u044d-\u044f\u0451]")
_letter = re.compile(
    rf"(?<=[\d)}}])(?:\s|~|\\[ ,;:!])*\\(?:text|mbox|mathrm|rm)\s*\{{\s*([{''.join(_LETTERS)}])\s*\}}(?![A-Za-z])"
)
_power = re.compile(r"\s*\^\s*\{?\s*(-?[123])\s*\}?$")
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_scaled = re.compile(rf"(\d|\}}) *({'|'.join(_SCALES)})\b")
_POWERS = {"square": 2, "squared": 2, "cubic": 3, "cubed": 3}
_factor = re.compile(
    r"\s*(/|per\b|\\cdot|\*)?\s*(square |cubic )?(\\?[A-Za-zΩμ°']+)\s*(squared|cubed)?(?:\s*\^\s*(-?\d)|([23]))?\s*"
)


def spelt(text: str) -> str:
    r"""``25\text{ m}`` with its unit in letters that cannot be a variable, ``2 million`` as a product."""
    text = _letter.sub(lambda match: f" {_LETTERS[match[1]]} ", text)
    return _scaled.sub(lambda match: f"{match[1]} \\cdot 10^{{{_SCALES[match[2]]}}} ", text).replace("¢", " cents ")


def cut_unit(text: str) -> tuple[str, str]:
    """(value, unit in one spelling); no unit where ``text`` is no value followed by words."""
    if not text[-1:].isalpha() and text[-1:] not in ".}123":
        return text, ""
    raised = _power.search(text)
    body = (text[: raised.start()] if raised else text).rstrip(" .")
    start = len(body)
    while start and (body[start - 1].isalpha() or body[start - 1] in " ./"):
        start -= 1
    tail = body[start:]
    if not start or (raised and not tail.strip()):
        return text, ""
    value, terms = _parted(body[:start], tail)
    return (value, _one_spelling(terms, raised[1] if raised else "")) if _is_unit(terms) else (text, "")


def _parted(value: str, tail: str) -> tuple[str, list[str]]:
    """Letters that touch the value are a command's or variables', unless they are a known unit."""
    if tail[:1].isalpha():
        first = re.split(r"[ ./]", tail, maxsplit=1)[0]
        if value.endswith("\\") or first.lower().removesuffix("s") not in _SAME or not value[-1].isdigit():
            value, tail = value + first, tail[len(first) :]
    if not re.search(r"[\d)}\]|!]\s*$|\\pi\s*$|[\d)}][a-z]{1,3}\s*$|[-+*/] ?[a-z]\s*$", value):
        return value, []
    terms = re.sub(r"\s*/\s*", " per ", tail.lower()).replace(".", " ").split()
    return value.rstrip(), [
        _TIMES.get(term, term) if n and terms[n - 1] == "per" else term for n, term in enumerate(terms)
    ]


def _is_unit(terms: list[str]) -> bool:
    if not 0 < len(terms) <= MOST_WORDS or terms[-1] in _JOINTS - {"each"} or (_NO_UNIT | NUMERALS.keys()) & set(terms):
        return False
    if terms[0] in ("squared", "cubed"):
        return False
    return all(term in _JOINTS or term in _SAME or (len(term) > 2 and _SOUNDS.search(term)) for term in terms)


def _one_spelling(terms: list[str], power: str) -> str:
    out = [_singular(term) for term in terms if term not in ("the", "a", "of")]
    power = next((str(_POWERS[term]) for term in out if term in ("square", "cubic")), power)
    name = " ".join(term for term in out if term not in ("square", "cubic"))
    name = name.replace("mile per hour", "mph").replace("kilometer per hour", "kmh")
    return "" if name == "unit" or not name else f"{name}{'^' if power else ''}{power}"


def _singular(term: str) -> str:
    plain = next((form for form in (term, term.removesuffix("s"), term.removesuffix("es")) if form in _SAME), None)
    return term.removesuffix("s") if plain is None else _SAME[plain]


def one_unit(left: str, right: str) -> bool:
    """Whether both are one unit; what is said besides (``students in the class``) does not count."""
    shorter, longer = sorted((left.split(), right.split()), key=len)
    return longer[: len(shorter)] == shorter


def measure(text: str) -> tuple[Dimension, Fraction] | None:
    """(dimension, how many units of the system) of ``km/h``, ``m s^{-2}``, ``square meters``; None for others."""
    exponents: dict[str, Fraction] = {}
    scale, below, start = Fraction(1), False, 0
    text = re.sub(r"\\(Omega|mu)\s*", r"\\\1", text).strip(" .")
    while start < len(text):
        match = _factor.match(text, start)
        if match is None or match.end() == start:
            return None
        start = match.end()
        unit = _MEASURED.get(match[3]) or _MEASURED.get(_singular(match[3].lower()) if len(match[3]) > 2 else "")
        if unit is None:
            return None
        below = match[1] in ("/", "per") or (below and match[1] is not None and "/" not in text[: match.start()])
        power = int(match[5] or match[6] or _POWERS.get((match[2] or match[4] or "").strip(), 1)) * (-1 if below else 1)
        scale *= unit[1] ** power
        for name, exponent in unit[0].items():
            exponents[name] = exponents.get(name, Fraction(0)) + exponent * power
    return tuple(sorted((name, exponent) for name, exponent in exponents.items() if exponent)), scale
