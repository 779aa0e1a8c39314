"""Arithmetic: evaluate a chain of + - * over whole numbers; level 4 has a bracket.

``params``: ``expression``, as in "12+3*7". The answer is computed from it.
"""

import random
import re

from agent0.tasks.families import Family, Params, family
from agent0.tasks.families.expression import numbers, value
from agent0.tasks.families.wording import ask, bodies

WORDINGS = ("What is {}?", "Compute {}.", "{}=?")
_shape = re.compile(r"[-+*\d()]{3,40}")


def sample(level: int, rng: random.Random) -> Params:
    """Draw an expression of level + 1 numbers from 2 to 99, with at most one product."""
    terms = [str(rng.randint(2, 99)) for _ in range(level + 1)]
    if level == 4:
        at = rng.randrange(3)
        terms[at : at + 2] = [f"({terms[at]}{rng.choice('+-')}{terms[at + 1]})"]
    text = terms[0]
    for term in terms[1:]:
        text += rng.choice("+-*" if "*" not in text else "+-") + term
    return {"expression": text}


def render(params: Params, rng: random.Random) -> str:
    """Word the expression as a question, in one of ``WORDINGS``."""
    return ask(WORDINGS, params["expression"], rng)


def parse(question: str) -> Params | None:
    """Read the expression of 2 to 6 numbers from a question; None for other text."""
    for body in bodies(WORDINGS, question):
        if _shape.fullmatch(body) and 2 <= len(numbers(body)) <= 6:
            try:
                value(body)
            except ValueError:
                continue
            return {"expression": body}
    return None


def level(params: Params) -> int:
    """The level of an expression: its count of numbers less one, 4 with a bracket."""
    text = params["expression"]
    return 4 if "(" in text else min(4, len(numbers(text)) - 1)


def solve(params: Params) -> str:
    """Evaluate the expression; the answer is a whole number as text."""
    return str(value(params["expression"]))


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: the expression itself."""
    return f"arithmetic {params['expression']}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python prints the value of the expression."""
    return "python", {"code": f"print({params['expression']})"}


ENTRY = family(Family("arithmetic", "math", sample, render, parse, level, solve, canonical, call))
