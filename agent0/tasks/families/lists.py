"""Lists: one operation (``OPERATIONS``) on a list of whole numbers.

``params``: ``operation`` and ``values``. The answer is computed as Python prints it.
"""

import random
import re
from collections.abc import Callable

from agent0.tasks.families import Family, Params, family
from agent0.tasks.families.wording import bodies

Operation = tuple[str, Callable[[list[int]], object], str]
OPERATIONS: dict[str, Operation] = {
    "sum": ("Sum of", sum, "sum({})"),
    "largest": ("Largest of", max, "max({})"),
    "smallest": ("Smallest of", min, "min({})"),
    "sort": ("Sort", sorted, "sorted({})"),
    "reverse": ("Reverse", lambda v: v[::-1], "{}[::-1]"),
    "spread": ("Largest minus smallest of", lambda v: max(v) - min(v), "max(v:={})-min(v)"),
    "squares": ("Sum of squares of", lambda v: sum(i * i for i in v), "sum(i*i for i in {})"),
    "distinct": ("How many different in", lambda v: len(set(v)), "len(set({}))"),
}
EASY = 5
_shape = re.compile(r"\[(\d{1,3}(?:,\d{1,3}){1,9})\]")


def sample(level: int, rng: random.Random) -> Params:
    """Draw level + 2 numbers and an operation; the harder operations from level 3."""
    names = list(OPERATIONS)
    operation = rng.choice(names[:EASY] if level < 3 else names)
    values = [rng.randint(1, 99) for _ in range(level + 2)]
    if operation == "distinct":
        values = [rng.choice(values[: len(values) // 2 + 1]) for _ in values]
    return {"operation": operation, "values": values}


def _text(values: list[int]) -> str:
    return f"[{','.join(map(str, values))}]"


def render(params: Params, rng: random.Random) -> str:
    """Word operation and list as a request or a question, drawn by ``rng``."""
    return f"{OPERATIONS[params['operation']][0]} {_text(params['values'])}{rng.choice('.?')}"


def parse(question: str) -> Params | None:
    """Read the operation and 2 to 10 numbers from a question; None for other text."""
    for name, (phrase, _, _) in OPERATIONS.items():
        for body in bodies((f"{phrase} {{}}.", f"{phrase} {{}}?"), question):
            match = _shape.fullmatch(body)
            if match and not re.search(r"[\[,]0\d", body):
                return {"operation": name, "values": [int(v) for v in match[1].split(",")]}
    return None


def level(params: Params) -> int:
    """The level of a task, by length; the harder operations are at least level 3."""
    hard = list(OPERATIONS).index(params["operation"]) >= EASY
    return max(3 if hard else 1, min(4, len(params["values"]) - 2))


def solve(params: Params) -> str:
    """Apply the operation to the list; the result as Python prints it."""
    return str(OPERATIONS[params["operation"]][1](params["values"]))


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: operation and list."""
    return f"lists {params['operation']} {_text(params['values'])}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python applies the operation and prints the result."""
    return "python", {"code": f"print({OPERATIONS[params['operation']][2].replace('{}', _text(params['values']))})"}


ENTRY = family(Family("lists", "code", sample, render, parse, level, solve, canonical, call))
