"""Formulas of propositional logic, compared by truth table."""

from agent0.grading import Grade
from agent0.grading.answer_types import kind, plain
from agent0.grading.comparison.truth_tables import SURE, NoFormulaError, truths


@kind("formula", 4, SURE.search)
def formula(expected: str, answer: str) -> Grade:
    """By truth table. What is expected and cannot be read decides nothing."""
    correct: bool | None = None
    try:
        truths(plain(expected))
        correct = False
        one, other = truths(plain(expected), plain(answer))
        correct, reason = one == other, "truth table"
    except NoFormulaError as error:
        reason = f"no formula: {error}"
    return Grade(correct, reason, expected[:200], answer[:200])
