"""Remainders: of a number, a product, a sum of products, a power."""

import random
import re
from typing import Any

from agent0.tasks.families import Family, Params, family
from agent0.tasks.families.expression import numbers, value
from agent0.tasks.families.wording import ask, bodies

WORDINGS = ("What is {}?", "Find {}.", "{}=?")
_shape = re.compile(r"(\d{1,3}(?:(?:\*\*|[+*])\d{1,3}){0,3}) mod (\d{1,2})")


def sample(level: int, rng: random.Random) -> Params:
    """A number, a product, a product and a sum, a power and a sum."""
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
    """One of ``WORDINGS``."""
    return ask(WORDINGS, _body(params), rng)


def parse(question: str) -> Params | None:
    """Expression and modulus (2 to 99)."""
    for body in bodies(WORDINGS, question):
        found = _shape.fullmatch(body)
        if found and int(found[2]) >= 2 and found[2][0] != "0":
            try:
                value(found[1])
            except ValueError:
                continue
            return {"expression": found[1], "modulus": int(found[2])}
    return None


def level(params: Params) -> int:
    """By how many numbers; a power is level 4."""
    text = params["expression"]
    return 4 if "**" in text else min(4, len(numbers(text)))


def solve(params: Params) -> str:
    """The remainder, 0 to modulus - 1."""
    return str(value(params["expression"]) % params["modulus"])


def canonical(params: Params) -> str:
    """Expression and modulus."""
    return f"modular {_body(params)}"


def call(params: Params) -> tuple[str, dict[str, Any]]:
    """Python prints it."""
    return "python", {"code": f"print(({params['expression']})%{params['modulus']})"}


ENTRY = family(Family("modular", "math", sample, render, parse, level, solve, canonical, call))
