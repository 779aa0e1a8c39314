"""When two answers are the same, decided without evaluating either: bounded string work and exact rationals only."""

import re
from fractions import Fraction
from functools import lru_cache

_LIMIT = 2000
_NUMBER = re.compile(r"[+-]?\d{1,400}(?:\.\d{1,400})?(?:/\d{1,400})?")
_LOOSE = re.compile(r"(?<!\d) | (?!\d)|(?<=\d) (?=\d{3}(?!\d))")
"""A space that is no part of a number's meaning: ``1 1/2`` is not 11/2."""
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_WRAPPERS = (("$", "$"), (r"\(", r"\)"), (r"\text{", "}"), ("`", "`"), ('"', '"'), ("'", "'"))


@lru_cache(maxsize=1024)
def normal_form(answer: str) -> str:
    """One spelling for equal answers: exact rationals for numbers, else folded text without outer markup.

    At most 2,000 characters are looked at; longer answers compare by their plain text. Total: never raises.
    """
    if len(answer) > _LIMIT:
        return answer.strip()
    text = _unwrap(answer.strip().rstrip("."))
    number = _THOUSANDS.sub("", _LOOSE.sub("", text))
    if _NUMBER.fullmatch(number):
        return _rational(number)
    return re.sub(r"\s*([,\[\](){}:])\s*", r"\1", re.sub(r"\s+", " ", text)).casefold()


def same(left: str, right: str) -> bool:
    """Whether two answers are equal after ``normal_form``, as text."""
    return normal_form(left) == normal_form(right)


def _unwrap(text: str) -> str:
    while pair := next((p for p in _WRAPPERS if _wrapped(text, *p)), None):
        text = text[len(pair[0]) : len(text) - len(pair[1])].strip()
    return text


def _wrapped(text: str, opening: str, closing: str) -> bool:
    return len(text) > len(opening) + len(closing) and text.startswith(opening) and text.endswith(closing)


def _rational(number: str) -> str:
    top, _, bottom = number.partition("/")
    if bottom and not int(bottom):
        return number
    return str(Fraction(top) / Fraction(bottom or "1"))
