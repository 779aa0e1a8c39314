"""Tracing: what a line of Python prints, a sum over a range with a factor, a term and a condition.

``params``: ``start`` and ``stop``, from level 2 ``factor``, from 3 ``term``, from 4 ``modulus`` and ``rest``. The sum
is computed.
"""

import random
import re

from agent0.tasks.families import Family, Params, family
from agent0.tasks.families.wording import ask, bodies

WORDINGS = ("What does {} give?", "Value of {}?", "Evaluate {}.")
_shape = re.compile(
    r"sum\((?:i(?:\*(?P<factor>[1-9]\d?))?(?:\+(?P<term>[1-9]\d?))? for i in )?"
    r"range\((?P<start>\d{1,2}),(?P<stop>[1-9]\d?)\)(?: if i%(?P<modulus>[1-9])==(?P<rest>\d))?\)"
)
PARTS = ("start", "stop", "factor", "term", "modulus", "rest")


def sample(level: int, rng: random.Random) -> Params:
    """Draw a range; from level 2 a factor, from 3 a term, from 4 a condition."""
    start = rng.randint(0, 60)
    params: Params = {"start": start, "stop": rng.randint(start + 2, 99)}
    if level >= 2:
        params["factor"] = rng.randint(2, 19)
    if level >= 3:
        params["term"] = rng.randint(1, 30)
    if level >= 4:
        params["modulus"] = rng.randint(2, 9)
        params["rest"] = rng.randrange(params["modulus"])
    return params


def _code(params: Params) -> str:
    span = f"range({params['start']},{params['stop']})"
    factor = f"*{params['factor']}" if "factor" in params else ""
    term = f"+{params['term']}" if "term" in params else ""
    condition = f" if i%{params['modulus']}=={params['rest']}" if "modulus" in params else ""
    return f"sum(i{factor}{term} for i in {span}{condition})" if factor or term or condition else f"sum({span})"


def render(params: Params, rng: random.Random) -> str:
    """Word the line of code as a question, in one of ``WORDINGS``."""
    return ask(WORDINGS, _code(params), rng)


def parse(question: str) -> Params | None:
    """Read range, factor, term and condition from a question, as ``sample`` writes them; None for other text."""
    for body in bodies(WORDINGS, question):
        if match := _shape.fullmatch(body):
            params: Params = {part: int(match[part]) for part in PARTS if match[part] is not None}
            if params["start"] < params["stop"] and _code(params) == body:
                return params
    return None


def level(params: Params) -> int:
    """The level of a task: 1, and one more for each of factor, term and condition."""
    return 1 + sum(part in params for part in ("factor", "term", "modulus"))


def solve(params: Params) -> str:
    """Compute the sum that the line prints; a whole number as text."""
    factor, term, modulus = params.get("factor", 1), params.get("term", 0), params.get("modulus", 1)
    span = range(params["start"], params["stop"])
    return str(sum(i * factor + term for i in span if i % modulus == params.get("rest", 0)))


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: the line of code."""
    return f"tracing {_code(params)}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python runs the line and prints its value."""
    return "python", {"code": f"print({_code(params)})"}


ENTRY = family(Family("tracing", "code", sample, render, parse, level, solve, canonical, call))
