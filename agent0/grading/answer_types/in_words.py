"""Answers in words: truth values, letters of a choice, texts. A text that resembles the right one is another text."""

import re

from agent0.grading import Grade
from agent0.grading.answer_types import kind, plain, words
from agent0.grading.comparison.words.choices import letter_of

_TRUTHS = {"true": "True", "yes": "True", "false": "False", "no": "False"}
_quoted_or_date = re.compile(
    r"(['\"]).*\1|\d{1,4}([-/.])\d{1,2}\2\d{1,4}|\d{1,2}:\d{2}(?::\d{2})?(?:\s*[AaPp]\.?[Mm]\.?)?", re.DOTALL
)
_number = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?j?|[-+]?\d[\d.,/]*\s+[a-z]+[.]?|pi|z?oo|inf(?:inity)?|nan", re.I)
_text = re.compile(r"(?=.*[^\W\d_])[^\W_](?:[\w '.,!?:;&]|(?<=[^\W\d_]{2})-(?=[^\W\d_]{2}))*")


def _compared(expected: str, answer: str, reason: str) -> Grade:
    """Grade what was read of both; empty is what could not be read."""
    correct = answer == expected if expected else None
    return Grade(correct, reason if expected and answer else f"no {reason}", expected[:200], answer[:200])


@kind("truth", 1, lambda expected: words(expected) in _TRUTHS)
def truth(expected: str, answer: str) -> Grade:
    """Compare truth values: true and false, yes and no, in any case."""
    return _compared(_TRUTHS.get(words(expected), ""), _TRUTHS.get(words(answer), ""), "truth value")


@kind("choice", 2, re.compile(r"\([A-Z]\)").fullmatch)
def choice(expected: str, answer: str) -> Grade:
    """``(B)``, ``b.``, ``Option B`` and ``B) the second`` are one answer."""
    return _compared(letter_of(plain(expected)) or "", letter_of(plain(answer)) or "", "choice")


def _is_text(expected: str) -> bool:
    """Letters beside one another are a word, never a product, and a date is no sum; what has an operator is none."""
    is_number = _number.fullmatch(expected)
    return bool(_quoted_or_date.fullmatch(expected) or (not is_number and _text.fullmatch(expected)))


@kind("text", 8, _is_text)
def text(expected: str, answer: str) -> Grade:
    """Case, spaces and quotes around it do not count."""
    return _compared(words(expected), words(answer), "words")
