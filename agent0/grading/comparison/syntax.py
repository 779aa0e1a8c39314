"""Texts whose operators have been written as Python writes them, as trees: parsed, never executed."""

import ast

from agent0.grading.math.lexer import UnreadableError


def parsed(text: str) -> ast.expr:
    """Return the tree of one expression.

    Raises:
        UnreadableError: it is none, or nested too deeply.
    """
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise UnreadableError("no expression") from error
