"""The kinds of answers that are decided without algebra, in the order in which they are asked."""

from collections.abc import Callable, Sequence

from agent0.grading.comparison.congruences import same_residues
from agent0.grading.comparison.endless import same_endless
from agent0.grading.comparison.equations import is_equation_of_unknown, is_percent_of_fraction
from agent0.grading.comparison.families import same_families
from agent0.grading.comparison.matrices import same_products
from agent0.grading.comparison.permutations import same_permutation, same_truth
from agent0.grading.comparison.piecewise import Equal, one_or_other, same_cases
from agent0.grading.comparison.quantities import same_quantity
from agent0.grading.comparison.ranges import same_range
from agent0.grading.comparison.shapes import same_shape, same_text
from agent0.grading.comparison.truth_tables import same_formula
from agent0.grading.comparison.words.calendar import same_date, same_time
from agent0.grading.comparison.words.choices import same_choice
from agent0.grading.comparison.words.nothing import same_nothing
from agent0.grading.comparison.words.sequences import same_brackets, same_words
from agent0.grading.comparison.words.statements import degrees_for_radians, same_statement
from agent0.grading.comparison.words.terms import same_choice_word, same_validity, same_word
from agent0.grading.notation.layout import spelled_alike
from agent0.grading.notation.steps import LONGEST, without_gaps

Decision = tuple[bool, str]
"""Whether two answers are equal, and by which rule."""
Rule = tuple[str, Callable[[str, str], bool | None]]
_AS_READ: tuple[Rule, ...] = (
    ("brackets", same_brackets),
    ("words in order", same_words),
    ("no value", same_nothing),
    ("validity", same_validity),
    ("choice", same_choice_word),
    ("words", same_word),
    ("an equation that is not solved", is_equation_of_unknown),
    ("percent", is_percent_of_fraction),
)
_IN_ONE_FORM: tuple[Rule, ...] = (
    ("the same text", lambda gold, answer: same_text(gold, answer) or None),
    ("shape", same_shape),
)
_WITHOUT_MARKUP: tuple[Rule, ...] = (
    ("quantity", same_quantity),
    ("truth value", same_truth),
    ("permutation", same_permutation),
    ("truth table", same_formula),
    ("set of solutions", same_families),
    ("set of numbers", same_range),
    ("terms of a list", same_endless),
    ("product of matrices", same_products),
)
_IN_WORDS: tuple[Rule, ...] = (
    ("choice", same_choice),
    ("time of day", same_time),
    ("date", same_date),
    ("degrees where radians are wanted", degrees_for_radians),
    ("statement", same_statement),
)
LONGEST_OF_A_KIND = 300


def _first(rules: Sequence[Rule], gold: str, answer: str) -> Decision | None:
    for reason, same in rules:
        if (verdict := same(gold, answer)) is not None:
            return verdict, reason
    return None


def decided_as_read(gold: str, answer: str) -> Decision | None:
    """Decide, with the rule, answers as they were read; None for what is algebra."""
    if max(len(gold), len(answer)) > LONGEST:
        return None
    return _first(_AS_READ, without_gaps(gold), without_gaps(answer))


def decided_in_one_form(gold: str, answer: str) -> Decision | None:
    """Decide, with the rule, answers in one form (``notation.steps.in_one_form``); None for what is algebra."""
    return None if max(len(gold), len(answer)) > LONGEST else _first(_IN_ONE_FORM, gold, answer)


def decided_without_markup(gold: str, answer: str) -> Decision | None:
    """Decide, with the rule, answers without markup that are of one kind; None for everything else."""
    return None if max(len(gold), len(answer)) > LONGEST_OF_A_KIND else _first(_WITHOUT_MARKUP, gold, answer)


def decided_in_words(gold: str, answer: str) -> Decision | None:
    """Decide, with the rule, what is compared as words, both without markup; None for everything else."""
    return _first(_IN_WORDS, gold, answer)


def decided_by_parts(gold: str, answer: str, equal: Equal) -> Decision | None:
    """Decide, with the rule, congruences and functions by cases, both rewritten; ``equal`` compares parts."""
    rules: tuple[Rule, ...] = (
        ("congruence", same_residues),
        ("cases", lambda gold, answer: same_cases(gold, answer, equal)),
        ("one or the other", lambda gold, answer: False if one_or_other(gold, answer) else None),
        ("the same text", lambda gold, answer: spelled_alike(gold, answer) or None),
    )
    return _first(rules, gold, answer)
