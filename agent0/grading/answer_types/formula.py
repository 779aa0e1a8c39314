"""Formulas of propositional logic, compared by truth table."""

from agent0.grading import Grade
from agent0.grading.answer_types import kind, plain
from agent0.grading.comparison.truth_tables import SURE, NoFormulaError, tokens, truths


@kind("formula", applies=lambda expected: bool(SURE.search(expected)), rank=4)
def formula(expected: str, answer: str) -> Grade:
    """By truth table. What is expected and cannot be read decides nothing."""
    shown = expected[:200], answer[:200]
    try:
        wanted = tokens(plain(expected))
        truths([wanted])
    except NoFormulaError as error:
        return Grade(None, f"the expected formula cannot be read: {error}", *shown)
    try:
        one, other = truths([wanted, tokens(plain(answer))])
    except NoFormulaError as error:
        too_many = "variables" in str(error)
        return Grade(False, f"{error}" if too_many else "no formula", *shown)
    return Grade(one == other, "truth table", *shown)
