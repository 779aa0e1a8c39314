"""The answer in a reply that is one JSON object, or ends in one."""

import json
from typing import Any

_NAMES = ("final_answer", "finalanswer", "answer", "result", "final_result", "solution", "output", "value")
"""Fields that hold an answer, the first one that is there counts; in an object below one of them too."""
_DEEPEST = 3


def answer_of_object(text: str) -> tuple[bool, str | None]:
    """Return whether ``text`` ends in a JSON object that has a field for the answer, and what it says there (None:
    nothing, or nothing that is one answer)."""
    body = text.strip().removesuffix("```").strip()
    if not body.endswith("}") or (start := _start(body)) is None:
        return False, None
    try:
        found = json.loads(body[start:])
    except (ValueError, RecursionError):
        return False, None
    return _field(found, 0) if isinstance(found, dict) else (False, None)


def _start(body: str) -> int | None:
    """Where the object begins whose closing brace is the last letter: at the start of a line, braces balanced."""
    depth = 0
    for place in range(len(body) - 1, -1, -1):
        depth += (body[place] == "}") - (body[place] == "{")
        if depth == 0 and (place == 0 or body[place - 1] == "\n"):
            return place
    return None


def _field(found: dict[str, Any], depth: int) -> tuple[bool, str | None]:
    names = {name.lower().replace(" ", "_"): name for name in found}
    for name in _NAMES:
        if name in names:
            value = found[names[name]]
            if isinstance(value, dict):
                return _field(value, depth + 1) if depth < _DEEPEST else (True, None)
            unit = found.get("unit") if isinstance(value, int | float) and not isinstance(value, bool) else None
            return True, f"{_written(value)} {unit}" if isinstance(unit, str) and unit else _written(value)
    return False, None


def _written(value: object) -> str | None:
    """A value as an answer is written; None where it is none."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float):
        return json.dumps(value)
    if isinstance(value, str):
        return value.strip().strip("*` ").removesuffix(".") or None
    if isinstance(value, list) and value and all(isinstance(one, int | float | list) for one in value):
        return json.dumps(value)
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    return None
