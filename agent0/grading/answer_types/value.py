"""Numbers, expressions, equations, intervals, matrices, units: compared by exact algebra."""

from collections.abc import Callable

from agent0.grading import Grade
from agent0.grading import grade as compare
from agent0.grading.answer_types import VALUE, kind
from agent0.grading.math.algebra import TooLargeError
from agent0.grading.math.cleaning import clean
from agent0.grading.math.forms import Expression, Form, Group, Relation, form_of


def unevaluated(text: str, literal: Callable[[Expression], bool] = lambda one: one.literal) -> int:
    """How many expressions in ``text`` are not written as a value. An equation of a name is what the name is."""
    try:
        return _count(form_of(clean(text).text), literal)
    except TooLargeError:
        return 1


def _count(form: Form, literal: Callable[[Expression], bool]) -> int:
    match form:
        case Expression():
            return int(not literal(form))
        case Group(items=items):
            return sum(_count(item, literal) for item in items)
        case Relation(left=left, right=right, variable=variable):
            return (0 if variable else _count(left, literal)) + _count(right, literal)
    return 0


@kind(VALUE, applies=lambda expected: True, rank=9, unevaluated=unevaluated)
def value(expected: str, given: str) -> Grade:
    """As mathematics; may ask for a symbolic engine."""
    return compare(expected, given)
