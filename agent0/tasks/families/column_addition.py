"""Column addition, a ladder people know: two numbers added from the last column on, with every carry written down.

``params``: ``first`` and ``second``, texts of as many digits, which is the level. An answer has a group a column: the
two digits, the digit below them, and the carry to the next column. 17+25 is answered by 7521,1240; the last carry
stands before the sum.
"""

import random
import re

from agent0.tasks.families import Family, Params, family
from agent0.tasks.families.reversal import LAST
from agent0.tasks.families.wording import ask, bodies

WORDINGS = ("Add {} by columns.", "Work out {} by columns.")
GROUP = 4
"""Digits of a group."""
_shape = re.compile(rf"([0-9]{{1,{LAST}}})\+([0-9]{{1,{LAST}}})")


def sample(level: int, rng: random.Random) -> Params:
    """Draw two numbers of ``level`` digits, none of which begins with 0."""
    low, high = (10 ** (level - 1) if level > 1 else 0), 10**level - 1
    return {"first": str(rng.randint(low, high)), "second": str(rng.randint(low, high))}


def render(params: Params, rng: random.Random) -> str:
    """Word the sum as a question, in one of ``WORDINGS``."""
    return ask(WORDINGS, f"{params['first']}+{params['second']}", rng)


def parse(question: str) -> Params | None:
    """Read two numbers of 1 to ``LAST`` digits, both of as many; None for other text."""
    for body in bodies(WORDINGS, question, longest=3 * LAST):
        match = _shape.fullmatch(body)
        if match and len(match[1]) == len(match[2]):
            return {"first": match[1], "second": match[2]}
    return None


def level(params: Params) -> int:
    """The level of a task: how many digits each number has."""
    return len(params["first"])


def solve(params: Params) -> str:
    """Add every column from the last one on: its digits, the digit below, the carry."""
    groups, carry = [], 0
    for digit, other in zip(reversed(params["first"]), reversed(params["second"]), strict=True):
        carry, below = divmod(int(digit) + int(other) + carry, 10)
        groups.append(f"{digit}{other}{below}{carry}")
    return ",".join(groups)


def check(params: Params, answer: str) -> str:
    """Check an answer column by column; returns why it is wrong, empty where it is right."""
    first, second = params["first"], params["second"]
    size = (GROUP + 1) * len(first) - 1
    if len(text := answer.strip()) != size:
        return f"it has {len(text)} characters, not {size}"
    carry = 0
    for number, group in enumerate(text.split(","), 1):
        if number > len(first) or len(group) != GROUP:
            return f"column {number} cannot be read"
        if group[:2] != first[-number] + second[-number]:
            return f"column {number} begins with other digits than those in its place"
        total = int(first[-number]) + int(second[-number]) + carry
        carry = total // 10
        if group[2:] != f"{total % 10}{carry}":
            return f"column {number} is added up wrongly"
    return ""


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: the two numbers, the smaller first."""
    return f"column addition {min(params['first'], params['second'])}+{max(params['first'], params['second'])}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python adds column by column and prints the groups."""
    code = (
        "c,out=0,[]\n"
        f"for a,b in zip('{params['first']}'[::-1],'{params['second']}'[::-1]):\n"
        " c,d=divmod(int(a)+int(b)+c,10)\n"
        " out.append(f'{a}{b}{d}{c}')\n"
        "print(','.join(out))"
    )
    return "python", {"code": code}


def derive(params: Params, rng: random.Random) -> str:
    """Write uniformly random digits in as many groups."""
    return ",".join("".join(rng.choices("0123456789", k=GROUP)) for _ in params["first"])


def chance(params: Params) -> float:
    """The exact probability that what ``derive`` writes is right."""
    return float(0.1 ** (GROUP * len(params["first"])))


ENTRY = family(Family(
    "column_addition", "math", sample, render, parse, level, solve, canonical, call,
    levels=LAST, check=check, derive=derive, chance=chance, ladder=True,
))  # fmt: skip
