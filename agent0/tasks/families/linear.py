"""Linear: solve a linear equation in x, from a*x+b=c to a*(x+b)+c=d*x+e.

``params``: ``equation``. The one solution is computed exactly.
"""

import random
import re
from fractions import Fraction

from agent0.tasks.families import Family, Params, family
from agent0.tasks.families.wording import ask, bodies

WORDINGS = ("Solve {}.", "Find x: {}.", "{}, x=?")
_part = r"([1-9]\d?)\*(x|\(x[-+][1-9]\d?\))([-+][1-9]\d?)?"
_equation = re.compile(rf"{_part}=(?:(-?\d{{1,4}})|{_part})")
Form = tuple[int, int]
"""(a, b) stands for a*x+b."""


def sample(level: int, rng: random.Random) -> Params:
    """Draw an equation with a whole solution of -20 to 20; terms and sides grow with the level."""
    params: Params = {}
    while not params or _grade(params) != level:
        x = rng.randint(1, 20) if level == 1 else rng.randint(-20, 20)
        a, b, d = rng.randint(2, 19), rng.randint(1, 40), rng.randint(2, 19)
        sign = "+" if level == 1 else rng.choice("+-")
        inner = f"(x{rng.choice('+-')}{rng.randint(1, 20)})" if level == 4 else "x"
        left = f"{a}*{inner}{sign}{b}"
        reached = _at(_form(left), x)
        rest = reached - d * x
        if level < 3:
            params = {"equation": f"{left}={reached}"}
        elif a != d and 0 < abs(rest) < 100:
            params = {"equation": f"{left}={d}*x{rest:+d}"}
    return params


def _form(side: str) -> Form:
    match = re.fullmatch(_part, side)
    if not match:
        return 0, int(side)
    a, inner, b = int(match[1]), match[2], int(match[3] or 0)
    return a, (b if inner == "x" else a * int(inner[2:-1]) + b)


def _at(form: Form, x: int) -> int:
    return form[0] * x + form[1]


def _forms(params: Params) -> tuple[Form, Form]:
    left, _, right = params["equation"].partition("=")
    return _form(left), _form(right)


def render(params: Params, rng: random.Random) -> str:
    """Word the equation as a question, in one of ``WORDINGS``."""
    return ask(WORDINGS, params["equation"], rng)


def parse(question: str) -> Params | None:
    """Read an equation with exactly one solution from a question; None for other text."""
    for body in bodies(WORDINGS, question):
        if _equation.fullmatch(body) and not re.search(r"=(-0|-?0\d)", body):
            left, right = _forms({"equation": body})
            if left[0] != right[0]:
                return {"equation": body}
    return None


def _grade(params: Params) -> int:
    """1 and 2: x on one side (1: only sums, solution above 0). 3: on both. 4: with a bracket."""
    text = params["equation"]
    if "(" in text:
        return 4
    if text.count("x") == 2:
        return 3
    return 2 if "-" in text or Fraction(solve(params)) <= 0 else 1


def solve(params: Params) -> str:
    """Solve for x exactly; a whole number or p/q as text."""
    (a, b), (c, d) = _forms(params)
    return str(Fraction(d - b, a - c))


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: the equation itself."""
    return f"linear {params['equation']}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: sympy solves the equation for x."""
    return "sympy", {"operation": "solve", "expression": params["equation"]}


ENTRY = family(Family("linear", "math", sample, render, parse, _grade, solve, canonical, call))
