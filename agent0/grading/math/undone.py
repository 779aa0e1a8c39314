"""Whether an answer leaves work to be done: ``6!`` where ``720`` is expected, ``3+4*5-6`` where ``17`` is."""

import re
from collections.abc import Callable

from agent0.grading.math.algebra import TooLargeError
from agent0.grading.math.cleaning import clean
from agent0.grading.math.forms import Expression, Form, Group, Relation, Words, form_of

UNDONE = "work left undone where a value is wanted"
_WORK = re.compile(r"[\\^*/+!]|\d\s*-|[A-Za-z]\(\s*-?\d")
_DETERMINANT = re.compile(r"\\det(?![A-Za-z])|vmatrix")
_CONSTANTS = frozenset({"pi", "e"})


def is_written_out(expression: Expression) -> bool:
    """Whether an expression is written as the value that it has: see ``literals.is_literal``."""
    return expression.literal


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
        return _count(form_of(cleaned), literal, work)
    except TooLargeError:
        return int(work(cleaned))


def _count(form: Form, literal: Callable[[Expression], bool], work: Callable[[str], bool]) -> int:
    match form:
        case Expression():
            return int(not literal(form))
        case Group(items=items):
            return sum(_count(item, literal, work) for item in items)
        case Relation(left=left, right=right, variable=variable):
            return (0 if variable else _count(left, literal, work)) + _count(right, literal, work)
        case Words(text=text):
            return int(work(text))
    return 0


def is_value(gold: str) -> bool:
    """Whether ``gold`` is one number or constant, or several of them, each written out."""
    try:
        return _is_value(form_of(clean(gold).text))
    except TooLargeError:
        return False


def _is_value(form: Form) -> bool:
    match form:
        case Expression(value=value, literal=literal):
            return literal and value.names <= _CONSTANTS
        case Group(items=items):
            return bool(items) and all(map(_is_value, items))
        case Relation(sign="=", right=right, variable=variable):
            return bool(variable) and _is_value(right)
    return False


def leaves_work(gold: str, answer: str) -> bool:
    """Whether ``gold`` is a value and ``answer``, which is equal to it, is not written as one. A factor before a matrix
    is a way to write it."""
    is_matrix = "matrix" in gold + answer and not _DETERMINANT.search(answer)
    return is_value(gold) and not is_matrix and unevaluated(answer) > 0
