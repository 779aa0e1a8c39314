"""The unit behind a value: found from the end, word by word, so that no text takes long. Its spellings are one."""

import re

MOST_WORDS = 5
_SPELLINGS = {
    "dollar": "usd buck", "cent": "¢", "euro": "eur", "pound": "lb gbp", "percent": "percentage",
    "degree": "deg", "radian": "rad", "meter": "metre", "centimeter": "cm centimetre", "millimeter": "mm millimetre",
    "kilometer": "km kilometre", "inch": "in", "foot": "ft feet", "yard": "yd", "mile": "mi", "gram": "gm gramme",
    "kilogram": "kg kilo", "milligram": "mg", "ounce": "oz", "liter": "litre", "milliliter": "ml millilitre",
    "second": "sec", "minute": "min", "hour": "hr", "day": "", "week": "wk", "year": "yr", "square": "sq",
    "cubic": "cu", "hertz": "hz", "people": "person", "child": "children", "unit": "", "mph": "", "am": "", "pm": "",
    "kmh": "kph",
}  # fmt: skip
_SAME = {term: unit for unit, terms in _SPELLINGS.items() for term in (unit, *terms.split())}
_LETTERS = {
    "m": "meter", "g": "gram", "s": "second", "h": "hour", "L": "liter", "l": "liter", "J": "joule", "N": "newton",
    "W": "watt", "V": "volt", "A": "ampere", "K": "kelvin", "C": "celsius", "F": "fahrenheit",
}  # fmt: skip
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
_SOUNDS = re.compile(r"[aeiou]")
_letter = re.compile(
    r"(?<=[\d)}])(?:\s|~|\\[ ,;:!])*\\(?:text|mbox|mathrm|rm)\s*\{\s*([mgshLlJNWVAKCF])\s*\}(?![A-Za-z])"
)
_power = re.compile(r"\s*\^\s*\{?\s*(-?[123])\s*\}?$")
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_scaled = re.compile(rf"(\d|\}}) *({'|'.join(_SCALES)})\b")


def spelt(text: str) -> str:
    r"""``25\text{ m}`` with its unit in letters that cannot be a variable, ``2 million`` as a product."""
    text = _letter.sub(lambda match: f" {_LETTERS[match[1]]} ", text)
    return _scaled.sub(lambda match: f"{match[1]} \\cdot 10^{{{_SCALES[match[2]]}}} ", text)


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
    if not terms or not _is_unit(terms):
        return text, ""
    return value, _one_spelling(terms, raised[1] if raised else "")


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
    if len(terms) > MOST_WORDS or terms[-1] in _JOINTS - {"each"} or (_NO_UNIT | NUMERALS.keys()) & set(terms):
        return False
    if terms[0] in ("squared", "cubed"):
        return False
    return all(term in _JOINTS or term in _SAME or (len(term) > 2 and _SOUNDS.search(term)) for term in terms)


def _one_spelling(terms: list[str], power: str) -> str:
    out = [_singular(term) for term in terms if term not in ("the", "a", "of")]
    for term, meant in (("square", "2"), ("cubic", "3")):
        if term in out:
            out.remove(term)
            power = meant
    name = " ".join(out).replace("mile per hour", "mph").replace("kilometer per hour", "kmh")
    return "" if name == "unit" or not name else f"{name}{'^' if power else ''}{power}"


def _singular(term: str) -> str:
    for plain in (term, term.removesuffix("s"), term.removesuffix("es")):
        if plain in _SAME:
            return _SAME[plain]
    return term.removesuffix("s")


def one_unit(left: str, right: str) -> bool:
    """Whether both are one unit; what is said besides (``students in the class``) does not count."""
    shorter, longer = sorted((left.split(), right.split()), key=len)
    return longer[: len(shorter)] == shorter
