"""Whether a text is a program of Python. Nothing runs."""

import ast
import re
import warnings

_PRINTING = re.compile(r"\b(?:print|stdout|write|display|SystemExit|exit)\b")
LONGEST = 100_000
"""Characters of a program; a longer text is none."""


def is_python(text: str) -> bool:
    """Return whether the grammar of Python has ``text``; the empty one is in it."""
    if len(text) > LONGEST:
        return False
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def with_last_value(program: str) -> str:
    """Return a program that prints nothing with the value of its last line printed, as notebooks show it.

    A program that speaks of printing, or does not end with an expression, is returned as it is.
    """
    if _PRINTING.search(program) or not is_python(program):
        return program
    with warnings.catch_warnings(action="ignore"):
        body = ast.parse(program).body
    last = body[-1] if body else None
    if not isinstance(last, ast.Expr) or isinstance(last.value, ast.Constant | ast.Await | ast.Yield | ast.YieldFrom):
        return program
    lines = program.encode().splitlines(keepends=True)
    before = b"".join([*lines[: last.lineno - 1], lines[last.lineno - 1][: last.col_offset]])
    inner = ast.get_source_segment(program, last.value) or ""
    shown = f"(lambda value: None if value is None else print(value))(\n{inner}\n)"
    return f"{before.decode()}{shown}\n"
