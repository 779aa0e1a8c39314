"""The letter of a choice."""

import re

from agent0.grading import Grade
from agent0.grading.answer_types import kind, plain
from agent0.grading.comparison.words.choices import letter_of


@kind("choice", applies=lambda expected: bool(re.fullmatch(r"\([A-Z]\)", expected)), rank=2)
def choice(expected: str, given: str) -> Grade:
    """``(B)``, ``b.``, ``Option B`` and ``B) the second`` are one answer."""
    wanted, answer = letter_of(plain(expected)), letter_of(plain(given))
    if not wanted:
        return Grade(None, "a letter was expected, and there is none to compare with", expected[:200], given[:200])
    return Grade(
        answer == wanted, "choice" if answer else "no letter of a choice", wanted, answer or plain(given)[:200]
    )
