"""Whether a text is a program of Python. Nothing runs."""

import ast
import warnings

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
