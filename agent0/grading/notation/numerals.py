r"""Numerals: in words (``one hundred and twenty``, ``two thirds``), and of other bases: ``1011_{2}`` of ``0b1011``,
``1011 (base 2)`` and ``binary 1011``."""

import re
from fractions import Fraction

from agent0.grading.math.units import NUMERALS

_SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12}
_PARTS = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
          "eighth": 8, "ninth": 9, "tenth": 10, "twelfth": 12, "hundredth": 100}  # fmt: skip
_PARTS |= {f"{name}s": part for name, part in _PARTS.items() if name not in ("half", "halves")}
_DIGITS = {word: n for word, n in NUMERALS.items() if n < 10}
_ANY = {*NUMERALS, *_SCALES, *_PARTS, "a", "an", "minus", "negative"}
LONGEST = 120
_lakhs = re.compile(r"[-\\$ ]*\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?[ .$]*")
_engineers = re.compile(
    r"[\s\d.+*/^(){}=-]|\\(?:frac|sqrt|pi|cdot|,)(?![A-Za-z])|(?<![A-Za-z])(?:[ijz]|e(?=\s*\^))(?![A-Za-z])"
)
_times = re.compile(r"(?<=\d)\s*[xX]\s*(?=\d)")
_imaginary = re.compile(r"(?<![A-Za-z\\])[ij](?![A-Za-z])")
_beside = re.compile(r"\A\s*[A-Za-z]\s*=|\s+(?:\\Omega|ohms?|[VA]|volts?|amps?|units?)\s*\Z")
_mixed = re.compile(r"\s*([a-z-]+) and ((?:[a-z]+)[ -](?:halves|thirds|quarters|[a-z]+ths))\s*", re.IGNORECASE)
_BASES = {
    "binary": 2, "ternary": 3, "octal": 8, "decimal": 10, "hexadecimal": 16, "bin": 2, "oct": 8, "dec": 10, "hex": 16,
    "b": 2, "o": 8, "d": 10, "h": 16, "x": 16,
}  # fmt: skip
_names = "binary|ternary|octal|decimal|hexadecimal|hex"
_based = re.compile(rf"_\s*(?:\{{|\w)|\bbase\b|^0[bxo]|\b(?:{_names})\b", re.IGNORECASE)
_fonts = re.compile(r"\\(?:text(?:bf|rm|it|tt)?|math(?:rm|bf|it|tt)|mbox)\s*\{([^{}]*)\}")
_before = re.compile(
    rf"(?:0([bxo])|base[\s-]+(\w+)\s*:\s*|(?:in\s+)?({_names})\s*:?\s*(?:number\s+)?)([0-9A-Fa-f]+)", re.IGNORECASE
)
_behind = re.compile(
    r"\(?\s*([0-9A-Fa-f]+)\s*\)?\s*(?:,?\s*(?:\(|\bin\s+|\bas\s+|\s)*"
    rf"(?:base[\s-]+(\w+)|({_names})(?:\s+(?:notation|number))?)\s*\)?"
    r"|_\s*\{?\s*\(?\s*(?:base\s*)?(\w+)\s*\)?\s*\}*)",
    re.IGNORECASE,
)
_to = re.compile(r"\s+(?:is\s+)?to\s+")
_clock = re.compile(r"\d{1,2}:[0-5]\d(?!\d)")
_numeral = re.compile(r"[a-z]+(?:-[a-z]+)?|\d[\d.]*")
_ratio = re.compile(r"([^:=<>]{1,30}):([^:=<>]{1,30})")
_plain_fraction = re.compile(r"-?(?:\\frac\s*\{[^{}]+\}\s*\{[^{}]+\}|\d+\s*/\s*\d+)")


def one_figure(gold: str, answer: str) -> tuple[str, str]:
    """Return both without the commas of India, with ``x`` between numbers as a times sign where the answer has one, and
    ``j`` as ``i`` where the other side has that for the imaginary unit."""
    if _times.search(answer):
        gold, answer = _times.sub(r" \\times ", gold), _times.sub(r" \\times ", answer)
    if "," not in gold and _lakhs.fullmatch(answer):
        answer = answer.replace(",", "")
    units = [set(_imaginary.findall(text)) for text in (gold, answer)]
    texts = [text for text in (gold, answer) if not re.search(r"\d", text)]
    is_number = texts in ([], [gold]) and not _engineers.sub("", f"{gold} {_beside.sub('', answer)}")
    if is_number and sorted(map(sorted, units)) == [["i"], ["j"]]:
        gold, answer = (_imaginary.sub("i", text) for text in (gold, answer))
    return gold, answer


def in_figures(gold: str, answer: str) -> tuple[str, str]:
    """Return both with a number in words written in figures, where the other side has figures."""
    if re.search(r"\d", gold):
        return gold, figures(answer)
    return (figures(gold), answer) if re.search(r"\d", answer) else (gold, answer)


def figures(text: str) -> str:
    """Return ``text`` with the number that it begins with in figures, where at most two words of a unit follow."""
    if " and " in text and (mixed := _mixed.fullmatch(text)):
        return f"{figures(mixed[1])} {figures(mixed[2])}"
    match = _fonts.fullmatch(text.strip())
    bare = (match[1] if match else text).strip().rstrip(".").lower()
    first = re.match(r"[a-z]+|\d+(?= and a )", bare)
    if len(bare) > LONGEST or not first or not (first[0] in _ANY or first[0].isdigit()):
        return text
    words = re.sub(r"(?<=[a-z])-(?=[a-z])|,(?=\s)", " ", bare).split()
    for end in range(len(words), max(0, len(words) - 3), -1):
        value = _value(words[:end])
        unit = " ".join(words[end:])
        if value is not None and re.fullmatch(
            r"(?!(?:or|of|and|to|is|more|less|than|point)\b)[a-z%]*(?: [a-z]+)?", unit
        ):
            number = str(value.numerator) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"
            return f"{number} {unit}".strip()
    return text


def _value(words: list[str]) -> Fraction | None:
    if words and words[0] in ("minus", "negative"):
        inner = _value(words[1:])
        return None if inner is None else -inner
    if "point" in words:
        place = words.index("point")
        whole, digits = _whole(words[:place]), [_DIGITS.get(word) for word in words[place + 1 :]]
        if whole is None or not digits or None in digits:
            return None
        return whole + Fraction(int("".join(map(str, digits))), 10 ** len(digits))
    if len(words) > 2 and words[-2:] in (["a", "half"], ["a", "third"], ["a", "quarter"]) and words[-3] == "and":
        whole = int(words[0]) if len(words) == 4 and words[0].isdigit() else _whole(words[:-3])
        return None if whole is None else whole + Fraction(1, _PARTS[words[-1]])
    if words and words[-1] in _PARTS:
        above = 1 if words[:-1] in ([], ["a"]) and words[-1] in ("half", "third", "quarter") else _whole(words[:-1])
        return Fraction(above, _PARTS[words[-1]]) if above else None
    value = _whole(words)
    return None if value is None else Fraction(value)


def _whole(words: list[str]) -> int | None:
    """A whole number in words, None where they are none."""
    total = group = 0
    last = 10**15  # the scale before, each smaller than the one before it
    small = 100  # below it a numeral may stand
    for place, word in enumerate(words):
        if word == "and" and 0 < place < len(words) - 1 and small == 100:
            continue
        if word in ("a", "an") and place == 0 and len(words) > 1 and words[1] in _SCALES:
            group, small = 1, 0
        elif (number := NUMERALS.get(word)) is not None and (number < small):
            group, small = group + number, 10 if number >= 20 and number % 10 == 0 else 0
        elif word in ("hundred", "dozen") and 0 < group < 100:
            group, small = group * _SCALES[word], 100
        elif (scale := _SCALES.get(word, 0)) > 100 and scale < last and group:
            total, group, small, last = total + group * scale, 0, 100, scale
        else:
            return None
    return total + group if words else None


def in_ratios(gold: str, answer: str) -> tuple[str, str]:
    """Return ``3 to 4`` as ``3:4``, where the gold is a ratio or a fraction; a ratio of two as the fraction, where one
    side is one."""
    is_ratio = ":" in gold and r"\{" not in gold and not _clock.search(gold)
    if not is_ratio and not _plain_fraction.fullmatch(gold.strip()):
        return gold, answer
    parts = _to.split(answer.strip().strip("."))
    if len(parts) > 1 and all(_numeral.fullmatch(part.lower()) for part in parts):
        answer = ":".join(figures(part) for part in parts)
    ratios = [_ratio.fullmatch(text.strip()) for text in (gold, answer)]
    if bool(ratios[0]) == bool(ratios[1]) or "," in answer:
        return gold, answer
    expected, fraction = (
        rf"\frac{{{ratio[1].strip()}}}{{{ratio[2].strip()}}}" if ratio else text
        for ratio, text in zip(ratios, (gold, answer), strict=True)
    )
    return expected, fraction


def in_one_base(gold: str, answer: str) -> tuple[str, str]:
    """Return both with the base as a subscript, where one of them names a base."""
    return (_subscript(gold), _subscript(answer)) if _based.search(gold) or _based.search(answer) else (gold, answer)


def _subscript(text: str) -> str:
    bare = _fonts.sub(r"\1", text).strip(" .$`")
    if match := _before.fullmatch(bare):
        digits, base = match[4], match[1] or match[2] or match[3]
    elif match := _behind.fullmatch(bare):
        digits, base = match[1], match[2] or match[3] or match[4]
    else:
        return text
    if len(base) == 1 and base.isalpha() and not re.search(r"\d", digits) and not match[0].startswith("0"):
        return text  # a letter with an index
    number = int(base) if base.isascii() and base.isdigit() else _BASES.get(base.lower()) or NUMERALS.get(base.lower())
    return f"{digits}_{{{number}}}" if number else text
