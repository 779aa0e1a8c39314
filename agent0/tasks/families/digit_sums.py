"""Digit sums, a ladder that carries state: from the last digit on, each digit and the sum so far, modulo 10.

``params``: ``digits``. 123 is answered by 3,3 2,5 1,6 written without marks: 332516. A task's level is its number of
digits.
"""

import random
from itertools import accumulate

from agent0.tasks.families import Family, Params, family
from agent0.tasks.families.reversal import LAST, level, read_digits, sample
from agent0.tasks.families.wording import ask

WORDINGS = ("Sum up {}.", "Sum over {}.")


def render(params: Params, rng: random.Random) -> str:
    """Word the digits as a question, in one of ``WORDINGS``."""
    return ask(WORDINGS, params["digits"], rng)


def parse(question: str) -> Params | None:
    """Read 1 to ``LAST`` digits; None for other text."""
    return read_digits(WORDINGS, question)


def solve(params: Params) -> str:
    """Each digit, from the last one on, with the sum so far behind it."""
    digits = [int(digit) for digit in reversed(params["digits"])]
    return "".join(f"{digit}{total % 10}" for digit, total in zip(digits, accumulate(digits), strict=True))


def check(params: Params, answer: str) -> str:
    """Check an answer pair by pair; returns why it is wrong, empty where it is right."""
    digits, text, total = params["digits"], answer.strip(), 0
    if len(text) != 2 * len(digits):
        return f"it has {len(text)} characters, not {2 * len(digits)}"
    for number in range(1, len(digits) + 1):
        total = (total + int(digits[-number])) % 10
        if text[2 * number - 2] != digits[-number]:
            return f"pair {number} begins with another digit than the one in its place"
        if text[2 * number - 1] != str(total):
            return f"the sum of pair {number} is wrong"
    return ""


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: its digits."""
    return f"digit sums {params['digits']}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python adds from the last digit on and prints the pairs."""
    return "python", {"code": f"t=0\nfor c in '{params['digits']}'[::-1]:\n t+=int(c)\n print(c,t%10,sep='',end='')"}


def derive(params: Params, rng: random.Random) -> str:
    """Write as many uniformly random digits as the answer has."""
    return "".join(rng.choices("0123456789", k=2 * len(params["digits"])))


def chance(params: Params) -> float:
    """The exact probability that what ``derive`` writes is right."""
    return float(0.1 ** (2 * len(params["digits"])))


ENTRY = family(Family(
    "digit_sums", "math", sample, render, parse, level, solve, canonical, call,
    levels=LAST, check=check, derive=derive, chance=chance, ladder=True,
))  # fmt: skip
