"""Numerals of other bases, with the base before or behind them in a word."""

import re

_BASES = {"binary": 2, "ternary": 3, "octal": 8, "decimal": 10, "hexadecimal": 16, "hex": 16}
_names = "|".join(_BASES)
_before = re.compile(rf"(?:in\s+)?({_names})\s*:?\s*(?:number\s+)?([0-9A-Fa-f]+)", re.IGNORECASE)
_behind = re.compile(
    rf"\(?([0-9A-Fa-f]+)\)?\s*,?\s*(?:\(|in\s+|as\s+)?\s*({_names})\s*(?:notation|number)?\s*\)?", re.IGNORECASE
)
_suffix = re.compile(r"\(?([0-9A-Fa-f]+)\)?\s*_\s*\{?\s*(?:\\(?:text|mathrm)\s*\{\s*)?(bin|oct|dec|hex|b|o|d|h)\s*\}*")
_SUFFIXES = {"b": 2, "o": 8, "d": 10, "h": 16}
_fonts = re.compile(r"\\(?:text(?:bf|rm|it|tt)?|math(?:rm|bf|it|tt)|mbox)\s*\{([^{}]*)\}")
_based = re.compile(r"_|\bbase\b|^0[bxo]", re.IGNORECASE)


def in_one_base(gold: str, said: str) -> tuple[str, str]:
    """Return ``110_{2}`` of ``binary 110``, where the gold is a numeral of a base."""
    return (_subscript(gold), _subscript(said)) if _based.search(gold) else (gold, said)


def _subscript(text: str) -> str:
    bare = _fonts.sub(r"\1", text).strip(" .$`")
    if found := _before.fullmatch(bare):
        return f"{found[2]}_{{{_BASES[found[1].lower()]}}}"
    if found := _behind.fullmatch(bare):
        return f"{found[1]}_{{{_BASES[found[2].lower()]}}}"
    if found := _suffix.fullmatch(bare):
        return f"{found[1]}_{{{_SUFFIXES[found[2][0]]}}}"
    return text
