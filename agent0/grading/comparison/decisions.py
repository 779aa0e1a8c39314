"""The kinds of answers that are decided without algebra, in the order in which they are asked.

Each rule decides one kind: True or False where the expected answer is of it, None for everything else.
"""

from collections.abc import Callable

from agent0.grading.comparison import shapes
from agent0.grading.comparison.endless import same_endless
from agent0.grading.comparison.matrices import same_products
from agent0.grading.comparison.periodic import same_periodic
from agent0.grading.comparison.quantities import same_quantity
from agent0.grading.comparison.systems import one_or_other
from agent0.grading.comparison.truth_tables import same_formula
from agent0.grading.comparison.words import terms
from agent0.grading.comparison.words.calendar import same_date, same_time
from agent0.grading.comparison.words.choices import same_choice, same_choice_word
from agent0.grading.comparison.words.statements import degrees_for_radians, same_statement, same_text
from agent0.grading.notation.steps import LONGEST, without_gaps

Decision = tuple[bool, str]
"""Whether two answers are equal, and by which rule."""
Rules = dict[str, Callable[[str, str], bool | None]]
_AS_READ: Rules = {
    "brackets": terms.same_brackets,
    "no value": terms.same_nothing,
    "choice": same_choice_word,
    "words": terms.same_word,
    "an equation that is not solved": shapes.is_equation_of_unknown,
    "percent": shapes.is_percent_of_fraction,
}
_BY_KIND: Rules = {
    "the same text": same_text,
    "dimensions": shapes.same_dimensions,
    "quantity": same_quantity,
    "truth value": terms.same_truth,
    "permutation": shapes.same_permutation,
    "truth table": same_formula,
    "repeating numbers": same_periodic,
    "terms of a list": same_endless,
    "product of matrices": same_products,
    "one or the other": one_or_other,
}
_IN_WORDS: Rules = {
    "choice": same_choice,
    "time of day": same_time,
    "date": same_date,
    "degrees where radians are wanted": degrees_for_radians,
    "statement": same_statement,
}
LONGEST_OF_A_KIND = 300


def _first(rules: Rules, gold: str, answer: str, longest: int = LONGEST) -> Decision | None:
    if max(len(gold), len(answer)) > longest:
        return None
    verdicts = ((same(gold, answer), reason) for reason, same in rules.items())
    return next(((verdict, reason) for verdict, reason in verdicts if verdict is not None), None)


def decided_as_read(gold: str, answer: str) -> Decision | None:
    """Decide, with the rule, answers as they were read; None for what is algebra."""
    return _first(_AS_READ, without_gaps(gold), without_gaps(answer))


def decided_by_kind(gold: str, answer: str) -> Decision | None:
    """Decide, with the rule, answers in one notation; None for what is algebra."""
    return _first(_BY_KIND, gold, answer, LONGEST_OF_A_KIND)


def decided_in_words(gold: str, answer: str) -> Decision | None:
    """Decide, with the rule, what is compared as words; None for everything else."""
    return _first(_IN_WORDS, gold, answer, max(len(gold), len(answer)))
