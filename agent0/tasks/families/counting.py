"""Counting: how many of several comparisons are true.

``params``: ``comparisons``, as in ["3<5", "12+4<9"]. The count is computed from them.
"""

import random
import re

from agent0.tasks.families import Family, Params, family
from agent0.tasks.families.expression import value
from agent0.tasks.families.wording import ask, bodies

WORDINGS = ("How many hold: {}?", "Count what is true: {}.", "How many are true: {}?")
_comparison = r"[1-9]\d?(?:\+[1-9]\d?)?[<>][1-9]\d?(?:\+[1-9]\d?)?"
_shape = re.compile(rf"{_comparison}(?:,{_comparison}){{1,5}}")


def sample(level: int, rng: random.Random) -> Params:
    """Draw level + 1 comparisons; one of them has a sum from level 3."""
    parts = [f"{rng.randint(1, 99)}{rng.choice('<>')}{rng.randint(1, 99)}" for _ in range(level + 1)]
    if level >= 3:
        parts[rng.randrange(len(parts))] += f"+{rng.randint(1, 20)}"
    return {"comparisons": parts}


def _body(params: Params) -> str:
    return ",".join(params["comparisons"])


def render(params: Params, rng: random.Random) -> str:
    """Word the comparisons as a question, in one of ``WORDINGS``."""
    return ask(WORDINGS, _body(params), rng)


def parse(question: str) -> Params | None:
    """Read 2 to 6 comparisons from a question; None for any other text."""
    for body in bodies(WORDINGS, question):
        if _shape.fullmatch(body):
            return {"comparisons": body.split(",")}
    return None


def level(params: Params) -> int:
    """The level of a task: its count of comparisons less one, at most 4."""
    return min(4, len(params["comparisons"]) - 1)


def solve(params: Params) -> str:
    """Count the comparisons that are true; a whole number as text."""
    return str(sum(value(comparison) for comparison in params["comparisons"]))


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: the comparisons, sorted."""
    return f"counting {','.join(sorted(params['comparisons']))}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python prints how many comparisons are true."""
    return "python", {"code": f"print(sum([{_body(params)}]))"}


ENTRY = family(Family("counting", "logic", sample, render, parse, level, solve, canonical, call))
