"""Names of what is no product of letters, and values and normal forms of texts."""

import re

from agent0.grading.math import algebra
from agent0.grading.math.algebra import Quotient, TooLargeError
from agent0.grading.math.cleaning import clean, closing
from agent0.grading.math.lexer import UnreadableError
from agent0.grading.math.parser import read

_comma = re.compile(",")


def name(meaning: str) -> str:
    """Return a variable that stands for ``meaning``, the same one each time."""
    return re.sub(r"(\d+)", r"{\1}", f" {algebra.opaque(meaning)} ")


def value_of(text: str) -> Quotient | None:
    """The exact value of ``text``, None where it cannot be read."""
    try:
        return read(clean(text).text)
    except (UnreadableError, TooLargeError):
        return None


def key_of(text: str) -> str:
    """The normal form of ``text``; where it cannot be read, ``text`` without spaces."""
    value = value_of(text)
    return "".join(text.split()) if value is None else algebra.key(value)


def bracketed(text: str, start: int) -> int:
    """Index of the bracket that closes the one at ``start``, -1 where none does."""
    return closing(text, start) if text[start] == "{" else closing(text, start, "([", ")]")


def arguments(text: str, sign: re.Pattern[str] = _comma) -> list[str]:
    """Cut ``text`` at each ``sign``, which is one character, outside of its brackets."""
    parts, start, depth = list[str](), 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0 and sign.match(text, place):
            parts, start = [*parts, text[start:place]], place + 1
    return [*parts, text[start:]]
