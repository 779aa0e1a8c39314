"""Whether an answer leaves work to be done: ``6!`` where ``720`` is expected, ``3+4*5-6`` where ``17`` is."""

import re
from collections.abc import Callable
from operator import attrgetter

from agent0.grading.math.algebra import TooLargeError
from agent0.grading.math.cleaning import clean
from agent0.grading.math.forms import Expression, Form, Group, Relation, Words, form_of

UNDONE = "work left undone where a value is wanted"
_WORK = re.compile(r"[\\^*/+!]|\d\s*-|[A-Za-z]\(\s*-?\d")
_DETERMINANT = re.compile(r"\\det(?![A-Za-z])|vmatrix")
_CONSTANTS = frozenset({"pi", "e"})
is_written_out: Callable[[Expression], bool] = attrgetter("literal")
"""Whether an expression is written as the value that it has: see ``literals.is_literal``."""


def is_work(text: str) -> bool:
    """Whether a text that is not read as algebra is to be computed all the same: a symbolic engine reads more."""
    return bool(_WORK.search(text))


def unevaluated(
    text: str, literal: Callable[[Expression], bool] = is_written_out, work: Callable[[str], bool] = is_work
) -> int:
    """Count the expressions in ``text`` that are not ``literal``; an equation of a name counts as what the name is.

    ``work`` says of a text that is not read as algebra whether it is to be computed.
    """
    if "!!" in text:
        return 1
    cleaned = clean(text).text
    try:
        parts = _parts(form_of(cleaned))
    except TooLargeError:
        return int(work(cleaned))
    return sum(not literal(part) if isinstance(part, Expression) else work(part.text) for part in parts)


def leaves_work(gold: str, answer: str) -> bool:
    """Whether ``gold`` is one value, or several, each written out, and ``answer``, which is equal to it, is not. A
    factor before a matrix is a way to write it."""
    if "matrix" in gold + answer and not _DETERMINANT.search(answer):
        return False
    try:
        form = form_of(clean(gold).text)
    except TooLargeError:
        return False
    is_named = not isinstance(form, Relation) or (form.sign == "=" and bool(form.variable))
    parts = _parts(form)
    is_value = all(isinstance(part, Expression) and part.literal and part.value.names <= _CONSTANTS for part in parts)
    return bool(parts) and is_named and is_value and unevaluated(answer) > 0


def _parts(form: Form) -> list[Expression | Words]:
    """The expressions and words in a form; of an equation of a name what the name is."""
    match form:
        case Expression() | Words():
            return [form]
        case Group(items=items):
            return [part for item in items for part in _parts(item)]
        case Relation(left=left, right=right, variable=variable):
            return ([] if variable else _parts(left)) + _parts(right)
    return []
