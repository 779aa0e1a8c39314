"""Words: the same or not the same. A text that resembles the right one is another text."""

import re

from agent0.grading import Grade
from agent0.grading.answer_types import kind, words

_NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?[jJ]?")
_UNIT = re.compile(r"[-+]?\d[\d.,/]*\s+[A-Za-z]+[.]?")
_TEXT = re.compile(r"[^\W_][\w '.,!?:;&-]*")
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}|\d{1,2}:\d{2}(?::\d{2})?(?:\s*[AaPp]\.?[Mm]\.?)?")
_NAMES = {"pi", "oo", "zoo", "inf", "nan", "infinity"}


def _applies(expected: str) -> bool:
    """Letters beside one another are a word, never a product, and a date is no sum; what has an operator is none."""
    if re.fullmatch(r"(['\"]).*\1", expected, re.DOTALL) or _DATE.fullmatch(expected):
        return True
    if _NUMBER.fullmatch(expected) or _UNIT.fullmatch(expected) or expected.lower() in _NAMES:
        return False
    hyphened = re.sub(r"(?<=[^\W\d_]{2})-(?=[^\W\d_]{2})", "", expected)
    return bool(_TEXT.fullmatch(expected) and re.search(r"[^\W\d_]", expected)) and "-" not in hyphened


@kind("text", applies=_applies, rank=8)
def text(expected: str, given: str) -> Grade:
    """Case, spaces and quotes around it do not count."""
    wanted, answer = words(expected), words(given)
    return Grade(wanted == answer, "words", wanted[:200], answer[:200])
