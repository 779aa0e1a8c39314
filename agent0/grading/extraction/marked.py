r"""Answers that a reply marks as data: in boxes that are one answer, in a JSON object, in a tag, behind ``####``."""

import ast
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice, pairwise
from typing import Any

from agent0.chat_format import Box, boxes
from agent0.grading.extraction.sentences import sentences

_repeats = re.compile(
    r"(?i)(?:solutions?|roots?|values?|answers?|zeros?)\b[^.=]{0,40}?\b(?:are|is)(?: given by)?:?\s+(.+)"
)
_space = r"(?:\\[,;:! ()\[\]]|\\q?quad|[\s$,;])*"
_between = re.compile(rf"{_space}(?:\\text\s*\{{\s*)?(?:and|or|,|;|&)?(?:\s*\}})?{_space}")
_joint = re.compile(r",\s*(?:and|or)\s|,|\band\b|\bor\b")
_FIELDS = (
    *("final_answer", "finalanswer", "answer", "correct_answer", "final", "ans", "result", "final_result", "solution"),
    *("output", "value", "choice", "option", "selected_option", "correct_option", "prediction"),
)
"""Fields that hold an answer, the first one that is there counts; in an object below one of them too."""
_command = re.compile(
    r"(?<!\\)\\(?=(?:frac|forall|text|times|theta|tan|tau|top|to|triangle|neq?|nu|not|nabla|beta|binom|bar|begin|right"
    r"|rho|rangle|bmod|bigcup|bullet|underline|uparrow)(?![a-z])|[^\"\\/bfnrtu\n])"
)
"""A backslash of LaTeX that JSON would have doubled."""
_quotient = re.compile(r"(:\s*)(-?\d+\s*/\s*\d+)(?=\s*[,}])")
_MARKS = {
    "the last tag": re.compile(r"<(?:final_?answer|answer)>(.*?)(?:</(?:final_?)?answer>|\Z)", re.I | re.DOTALL),
    "a JSON field": re.compile(
        r'["\'](?:final[_ ]?)?answer["\']\s*:\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'|(-?\d[\d.eE+-]*)|)',
        re.I,
    ),
    "the mark ####": re.compile(r"####[ \t]*(?!\W*(?:the\s+)?(?:final\s+)?answer\W*\n)([^\n]+)", re.I),
}
_object = re.compile(r"(?m)^[\[ ]?(?=\{)")
DEEPEST, MOST_STARTS, LONGEST_LITERAL = 3, 20, 2_000


def boxes_of_one_answer(text: str) -> str | None:
    """Return the contents of the last boxes where only joints part them, or the values that the sentence below repeats;
    None where there are not two of them."""
    outer: list[Box] = []
    for box in boxes(text):
        outer += [box] if box.closed and not (outer and box.start < outer[-1].end) else []
    if len(outer) < 2:
        return None
    inside = [text[box.inside : box.end].strip() for box in outer]
    last = sentences(re.sub(r"[$*]", "", text[outer[-1].end + 1 :]))
    repeated = _repeats.search(last[-1]) if last else None
    if repeated and _sides(_joint.split(repeated[1].strip(" ."))) == _sides(inside) == sorted(set(_sides(inside))):
        return ", ".join(inside)
    gaps = [text[box.end + 1 : other.start] for box, other in pairwise(outer)]
    apart = max((n for n, gap in enumerate(gaps, 1) if not _between.fullmatch(gap)), default=0)
    joined = zip(gaps[apart:], inside[apart + 1 :], strict=True)
    parts = [f"{' or' if 'or' in gap else ','} {value}" for gap, value in joined]
    return inside[apart] + "".join(parts) if parts else None


def _sides(parts: list[str]) -> list[str]:
    """The values of equations, in one order."""
    return sorted(part.rpartition("=")[2].strip() for part in parts)


def marked_in(text: str) -> tuple[str, str] | None:
    """Return what the last tag, JSON field ``answer`` or ``####`` holds, in this order, and which one of them does."""
    for place, mark in _MARKS.items():
        *_, last = None, *mark.finditer(text)
        if last:
            inside = next(filter(None, last.groups()), "")
            return inside.replace("\\\\", "\\").replace('\\"', '"') if "JSON" in place else inside, place
    return None


def answer_of_object(text: str) -> tuple[bool, str | None]:
    """Return whether ``text`` ends in a JSON object that has a field for the answer, and what it says there (None:
    nothing, or nothing that is one answer)."""
    body = text.strip().removesuffix("```").strip()
    body = body.removesuffix("]").rstrip() if body.endswith("]") and "{" in body else body
    for start in islice(_object.finditer(body), MOST_STARTS if body.endswith("}") else 0):
        if isinstance(value := _read(body[start.end() :]), dict):
            return _field(value, 0)
    return False, None


def _read(text: str) -> Any:
    """A JSON object or one of Python's literals; None of anything else."""
    with suppress(ValueError, RecursionError):
        return json.loads(_quotient.sub(r'\1"\2"', _command.sub(r"\\\\", text)), strict=False)
    with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        return ast.literal_eval(text) if len(text) <= LONGEST_LITERAL else None
    return None


def _field(fields: Mapping[str, object], depth: int) -> tuple[bool, str | None]:
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
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    listed = isinstance(value, list) and value and all(isinstance(item, int | float | list) for item in value)
    written = json.dumps(value) if listed or isinstance(value, int | float) else None
    return str(value) if isinstance(value, bool) else written
