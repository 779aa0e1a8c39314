"""Strings: reverse or sort capital letters, count one letter, or drop it.

``params``: ``operation``, ``text`` and, for count and drop, ``letter``. The answer is computed.
"""

import random
import re

from agent0.tasks.families import Family, Params, family

LETTERS = "ABCDEFGHKLMNPRSTUXYZ"
WORDINGS = {
    "reverse": ("Reverse '{s}'.", "Write '{s}' backwards."),
    "sort": ("Sort letters of '{s}'.", "Letters of '{s}' in order?"),
    "count": ("Count '{c}' in '{s}'.", "How many '{c}' in '{s}'?"),
    "drop": ("Drop '{c}' from '{s}'.", "'{s}' without '{c}'?"),
}
CODE = {
    "reverse": "print('{s}'[::-1])",
    "sort": "print(*sorted('{s}'),sep='')",
    "count": "print('{s}'.count('{c}'))",
    "drop": "print('{s}'.replace('{c}',''))",
}
_slots = {"{s}": "(?P<s>[A-Z]{2,12})", "{c}": "(?P<c>[A-Z])"}


def _shape(wording: str) -> re.Pattern[str]:
    text = re.escape(wording)
    for slot, pattern in _slots.items():
        text = text.replace(re.escape(slot), pattern)
    return re.compile(text)


_shapes = [(name, _shape(wording)) for name, ways in WORDINGS.items() for wording in ways]


def _fill(text: str, params: Params) -> str:
    return text.replace("{s}", params["text"]).replace("{c}", params.get("letter", ""))


def sample(level: int, rng: random.Random) -> Params:
    """Draw an operation and a string of level + 2 capital letters."""
    operation = rng.choice(list(WORDINGS))
    alphabet = LETTERS if operation in ("reverse", "sort") else rng.sample(LETTERS, level + 2)
    params: Params = {"operation": operation, "text": "".join(rng.choice(alphabet) for _ in range(level + 2))}
    if operation in ("count", "drop"):
        params["letter"] = rng.choice(params["text"])
    return params if solve(params) else sample(level, rng)


def render(params: Params, rng: random.Random) -> str:
    """Word operation and string as a question, in one of ``WORDINGS``."""
    return _fill(rng.choice(WORDINGS[params["operation"]]), params)


def parse(question: str) -> Params | None:
    """Read the operation, 2 to 12 letters and, where it needs one, the letter; None for other text.

    A task whose answer would be empty is refused.
    """
    for operation, shape in _shapes:
        if match := shape.fullmatch(question):
            params: Params = {"operation": operation, "text": match["s"]} | (
                {"letter": match["c"]} if operation in ("count", "drop") else {}
            )
            return params if solve(params) else None
    return None


def level(params: Params) -> int:
    """The level of a task: the length of its string less two, 1 to 4."""
    return max(1, min(4, len(params["text"]) - 2))


def solve(params: Params) -> str:
    """Apply the operation; the answer is a string or a count as text."""
    text, letter = params["text"], params.get("letter", "")
    match params["operation"]:
        case "reverse":
            return str(text[::-1])
        case "sort":
            return "".join(sorted(text))
        case "count":
            return str(text.count(letter))
        case _:
            return str(text.replace(letter, ""))


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: operation, letter and string."""
    return f"strings {params['operation']} {params.get('letter', '')} {params['text']}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python applies the operation and prints the result."""
    return "python", {"code": _fill(CODE[params["operation"]], params)}


ENTRY = family(Family("strings", "code", sample, render, parse, level, solve, canonical, call))
