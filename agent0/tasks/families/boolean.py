"""Boolean: decide whether comparisons joined by and, or, not are true.

``params``: ``expression``, as in "3<5 and not 7<2". The answer, True or False, is computed from it.
"""

import random
import re

from agent0.tasks.families import Family, Params, family
from agent0.tasks.families.expression import numbers, value
from agent0.tasks.families.wording import ask, bodies

WORDINGS = ("True or False: {}?", "Evaluate {}.", "Is {}?")
_shape = re.compile(r"[\d<>()andotr ]{5,90}")


def sample(level: int, rng: random.Random) -> Params:
    """Draw level + 1 comparisons; with a "not" from level 2, with a bracket at level 4."""
    parts = [f"{rng.randint(1, 60)}{rng.choice('<>')}{rng.randint(1, 60)}" for _ in range(level + 1)]
    if level >= 2:
        at = rng.randrange(len(parts))
        parts[at] = f"not {parts[at]}"
    joints = [rng.choice((" and ", " or ")) for _ in range(level)]
    if level == 4:
        at = rng.randrange(4)
        parts[at], parts[at + 1] = f"({parts[at]}", f"{parts[at + 1]})"
    return {"expression": parts[0] + "".join(j + p for j, p in zip(joints, parts[1:], strict=True))}


def render(params: Params, rng: random.Random) -> str:
    """Word the expression as a question, in one of ``WORDINGS``."""
    return ask(WORDINGS, params["expression"], rng)


def parse(question: str) -> Params | None:
    """Read a boolean expression of 2 to 6 comparisons from a question; None for other text."""
    for body in bodies(WORDINGS, question):
        if _shape.fullmatch(body) and 4 <= len(numbers(body)) <= 12:
            try:
                truth = value(body)
            except ValueError:
                continue
            if isinstance(truth, bool):
                return {"expression": body}
    return None


def level(params: Params) -> int:
    """The level of an expression: its count of comparisons less one, 4 with a bracket."""
    text = params["expression"]
    return 4 if "(" in text else max(1, min(4, len(numbers(text)) // 2 - 1))


def solve(params: Params) -> str:
    """Evaluate the expression; the answer is the text True or False."""
    return str(value(params["expression"]))


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: the expression itself."""
    return f"boolean {params['expression']}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python prints the truth value of the expression."""
    return "python", {"code": f"print({params['expression']})"}


ENTRY = family(Family("boolean", "logic", sample, render, parse, level, solve, canonical, call))
