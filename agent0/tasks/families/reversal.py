"""Reversal, a ladder: write a string of digits backwards. A task's level is the number of its digits.

``params``: ``digits``. Answers are compared digit by digit, so a leading zero counts.
"""

import random
import re
from collections.abc import Sequence

from agent0.chat_format import LONGEST_ANSWER
from agent0.tasks.families import Family, Params, family
from agent0.tasks.families.wording import ask, bodies

WORDINGS = ("Reverse {}.", "Mirror {}.")
LAST = LONGEST_ANSWER // 5
"""The highest level that is read: that of the ladder whose answers are longest, so that all of them end alike."""
_shape = re.compile(rf"[0-9]{{1,{LAST}}}")


def sample(level: int, rng: random.Random) -> Params:
    """Draw ``level`` digits, each of them uniformly and independently."""
    return {"digits": "".join(rng.choices("0123456789", k=level))}


def render(params: Params, rng: random.Random) -> str:
    """Word the digits as a question, in one of ``WORDINGS``."""
    return ask(WORDINGS, params["digits"], rng)


def parse(question: str) -> Params | None:
    """Read 1 to ``LAST`` digits; None for other text."""
    return read_digits(WORDINGS, question)


def read_digits(wordings: Sequence[str], question: str) -> Params | None:
    """Read 1 to ``LAST`` digits from a question in one of ``wordings``; None for other text."""
    for body in bodies(wordings, question, longest=2 * LAST):
        if _shape.fullmatch(body):
            return {"digits": body}
    return None


def level(params: Params) -> int:
    """The level of a task: how many digits it has."""
    return len(params["digits"])


def solve(params: Params) -> str:
    """Write the digits in reverse order; the only right answer."""
    return str(params["digits"][::-1])


def check(params: Params, answer: str) -> str:
    """Check an answer digit by digit; returns why it is wrong, empty where it is right."""
    digits, text = params["digits"], answer.strip()
    if len(text) != len(digits):
        return f"it has {len(text)} characters, not {len(digits)}"
    wrong = next((n for n, character in enumerate(text, 1) if character != digits[-n]), 0)
    return f"character {wrong} is wrong" if wrong else ""


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: its digits."""
    return f"reversal {params['digits']}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python reverses the string and prints it."""
    return "python", {"code": f"print('{params['digits']}'[::-1])"}


def derive(params: Params, rng: random.Random) -> str:
    """Write as many uniformly random digits as the answer has."""
    return "".join(rng.choices("0123456789", k=len(params["digits"])))


def chance(params: Params) -> float:
    """The exact probability that what ``derive`` writes is right."""
    return float(0.1 ** len(params["digits"]))


ENTRY = family(Family(
    "reversal", "math", sample, render, parse, level, solve, canonical, call,
    levels=LAST, check=check, derive=derive, chance=chance, ladder=True,
))  # fmt: skip
