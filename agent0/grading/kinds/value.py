"""Numbers, expressions, equations, intervals, matrices, units: compared by exact algebra."""

from agent0.grading import Grade
from agent0.grading import grade as compare
from agent0.grading.kinds import VALUE, kind


@kind(VALUE, applies=lambda expected: True, rank=9)
def value(expected: str, given: str) -> Grade:
    """As mathematics; may ask for a symbolic engine."""
    return compare(expected, given)
