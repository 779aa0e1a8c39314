"""Answers that are one although no respelling makes them so: quantities in other units, formulas of logic, sets of
solutions, functions by cases. Version 4 of the verification rules.

Each module decides one kind: True or False where both answers are of it, None for everything else.
"""

from agent0.grading.equivalence.endless import same_endless
from agent0.grading.equivalence.families import same_families
from agent0.grading.equivalence.functions import same_functions, surely_differ
from agent0.grading.equivalence.matrices import same_products
from agent0.grading.equivalence.permutations import same_letter, same_permutation, same_truth
from agent0.grading.equivalence.quantities import same_quantity
from agent0.grading.equivalence.ranges import same_range
from agent0.grading.truth_tables import same_formula

__all__ = ["as_written", "same_functions", "surely_differ"]

_KINDS = (
    ("quantity", same_quantity),
    ("truth value", same_truth),
    ("choice", same_letter),
    ("permutation", same_permutation),
    ("truth table", same_formula),
    ("set of solutions", same_families),
    ("set of numbers", same_range),
    ("terms of a list", same_endless),
    ("product of matrices", same_products),
)
LONGEST = 300


def as_written(gold: str, said: str) -> tuple[bool, str] | None:
    """Decide with a reason what is no algebra, both without markup; None for everything else."""
    if max(len(gold), len(said)) > LONGEST:
        return None
    for reason, same in _KINDS:
        if (verdict := same(gold, said)) is not None:
            return verdict, reason
    return None
