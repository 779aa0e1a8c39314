"""The answer in a reply that is one JSON object, or ends in one."""

import ast
import json
import re
from typing import Any

_FIELDS = [
    "final_answer",
    "finalanswer",
    "answer",
    "correct_answer",
    "final",
    "ans",
    "result",
    "final_result",
    "solution",
    "output",
    "value",
    "choice",
    "option",
    "selected_option",
    "correct_option",
    "prediction",
]
"""Fields that hold an answer, the first one that is there counts; in an object below one of them too."""
_command = re.compile(
    r"(?<!\\)\\(?=(?:frac|forall|text|times|theta|tan|tau|top|to|triangle|neq?|nu|not|nabla|beta|binom|bar|begin|right"
    r"|rho|rangle|bmod|bigcup|bullet|underline|uparrow)(?![a-z])|[^\"\\/bfnrtu\n])"
)
"""A backslash of LaTeX that JSON would have doubled."""
_quotient = re.compile(r"(:\s*)(-?\d+\s*/\s*\d+)(?=\s*[,}])")
DEEPEST, LONGEST_LITERAL = 3, 2_000


def answer_of_object(text: str) -> tuple[bool, str | None]:
    """Return whether ``text`` ends in a JSON object that has a field for the answer, and what it says there (None:
    nothing, or nothing that is one answer)."""
    body = text.strip().removesuffix("```").strip()
    body = body.removesuffix("]").rstrip() if body.endswith("]") and "{" in body else body
    if not body.endswith("}") or (start := _start(body)) is None:
        return False, None
    try:
        value = _read(body[start:])
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False, None
    return _field(value, 0) if isinstance(value, dict) else (False, None)


def _read(text: str) -> Any:
    """A JSON object, or one of Python's literals."""
    try:
        return json.loads(_quotient.sub(r'\1"\2"', _command.sub(r"\\\\", text)), strict=False)
    except ValueError:
        return ast.literal_eval(text) if len(text) <= LONGEST_LITERAL else None


def _start(body: str) -> int | None:
    """Where the object begins whose closing brace is the last letter: at the start of a line, braces balanced."""
    depth = 0
    for place in range(len(body) - 1, -1, -1):
        depth += (body[place] == "}") - (body[place] == "{")
        if depth == 0 and (place == 0 or body[:place].endswith(("\n", "\n[", "\n ")) or body[:place] == "["):
            return place
    return None


def _field(fields: dict[str, Any], depth: int) -> tuple[bool, str | None]:
    names = {name.lower().replace(" ", "_"): name for name in fields}
    if (name := next((names[name] for name in _FIELDS if name in names), None)) is None:
        return False, None
    value, unit = fields[name], fields.get("unit")
    if isinstance(value, dict):
        return _field(value, depth + 1) if depth < DEEPEST else (True, None)
    counted = isinstance(value, int | float) and not isinstance(value, bool) and isinstance(unit, str) and unit
    return True, f"{_written(value)} {unit}" if counted else _written(value)


def _written(value: object) -> str | None:
    """A value as an answer is written; None where it is none."""
    if isinstance(value, str):
        return value.strip().strip("*` ").removesuffix(".") or None
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    listed = isinstance(value, list) and value and all(isinstance(item, int | float | list) for item in value)
    return json.dumps(value) if listed or isinstance(value, int | float) else None
