r"""Numerals of a base in one spelling: ``1011_{2}`` of ``0b1011``, ``1011 (base 2)`` and ``binary 1011``."""

import re

from agent0.grading.math.units import NUMERALS

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
