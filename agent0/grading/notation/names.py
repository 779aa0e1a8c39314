"""Names of what is no product of letters, and values and normal forms of texts."""

import re

from agent0.grading.math import algebra
from agent0.grading.math.algebra import Quotient, TooLargeError
from agent0.grading.math.cleaning import clean, closing
from agent0.grading.math.lexer import UnreadableError
from agent0.grading.math.parser import read


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
    if text[start] == "{":
        return closing(text, start)
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] in "([") - (text[place] in ")]")
        if depth == 0:
            return place
    return -1


def arguments(text: str) -> list[str]:
    """Cut ``text`` at the commas outside of its brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        parts = [*parts, ""] if letter == "," and not depth else [*parts[:-1], parts[-1] + letter]
    return parts
