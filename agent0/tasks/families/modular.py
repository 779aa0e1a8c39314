"""Modular: the remainder of a number, a product, a sum of products or a power.

``params``: ``expression`` and ``modulus`` (2 to 99). The remainder is computed.
"""

import random
import re

from agent0.tasks.families import Family, Params, family
from agent0.tasks.families.expression import numbers, value
from agent0.tasks.families.wording import ask, bodies

WORDINGS = ("What is {}?", "Find {}.", "{}=?")
_shape = re.compile(r"(\d{1,3}(?:(?:\*\*|[+*])\d{1,3}){0,3}) mod (\d{1,2})")


def sample(level: int, rng: random.Random) -> Params:
    """Draw a number, a product, a product plus a number, or a power plus a product, by level."""
    a, b, c = rng.randint(11, 99), rng.randint(11, 99), rng.randint(2, 99)
    text = {
        1: f"{rng.randint(101, 999)}",
        2: f"{a}*{b}",
        3: f"{a}*{b}+{c}",
        4: f"{rng.randint(2, 12)}**{rng.randint(3, 30)}+{a}*{c}",
    }[level]
    return {"expression": text, "modulus": rng.randint(3, 29)}


def _body(params: Params) -> str:
    return f"{params['expression']} mod {params['modulus']}"


def render(params: Params, rng: random.Random) -> str:
    """Word expression and modulus as a question, in one of ``WORDINGS``."""
    return ask(WORDINGS, _body(params), rng)


def parse(question: str) -> Params | None:
    """Read expression and modulus (2 to 99) from a question; None for other text."""
    for body in bodies(WORDINGS, question):
        match = _shape.fullmatch(body)
        if match and int(match[2]) >= 2 and match[2][0] != "0":
            try:
                value(match[1])
            except ValueError:
                continue
            return {"expression": match[1], "modulus": int(match[2])}
    return None


def level(params: Params) -> int:
    """The level of a task: its count of numbers, 4 with a power."""
    text = params["expression"]
    return 4 if "**" in text else min(4, len(numbers(text)))


def solve(params: Params) -> str:
    """Compute the remainder, from 0 to modulus - 1, as text."""
    return str(value(params["expression"]) % params["modulus"])


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: expression and modulus."""
    return f"modular {_body(params)}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python prints the remainder of the expression."""
    return "python", {"code": f"print(({params['expression']})%{params['modulus']})"}


ENTRY = family(Family("modular", "math", sample, render, parse, level, solve, canonical, call))
