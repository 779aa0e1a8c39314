"""How answers are spelled by language models, brought to the spelling that exact comparison reads.

Version 3 of the verification rules. Both sides are rewritten; what is no algebra is decided here: letters of choices,
times of day, dates, statements that are compared as they are written.
"""

import re

from agent0.grading.spelling.calendar import same_date, same_time
from agent0.grading.spelling.choices import same_choice
from agent0.grading.spelling.markup import unmarked
from agent0.grading.spelling.names import named
from agent0.grading.spelling.notation import noted
from agent0.grading.spelling.numerals import in_figures
from agent0.grading.spelling.statements import degrees_for_radians, same_statement, unknown_to_engine

__all__ = ["decided_as_written", "named", "plain", "spelled", "unknown_to_engine", "unmarked"]

LONGEST = 2_000
"""Characters of an answer that is respelled; a longer one is compared as it is."""
_number = re.compile(r"[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)")
_DECIDED = (
    ("choice", same_choice),
    ("time of day", same_time),
    ("date", same_date),
    ("degrees where radians are wanted", degrees_for_radians),
    ("statement", same_statement),
)


def plain(gold: str, said: str) -> bool:
    """Whether both have one spelling only: numbers in figures, or more text than is looked at."""
    return max(len(gold), len(said)) > LONGEST or bool(_number.fullmatch(said) and _number.fullmatch(gold))


def decided_as_written(gold: str, said: str) -> tuple[bool, str] | None:
    """Decide with a reason what is compared without algebra, both without markup; None for everything else."""
    for reason, same in _DECIDED:
        if (verdict := same(gold, said)) is not None:
            return verdict, reason
    return None


def spelled(gold: str, said: str) -> tuple[str, str]:
    """Return both without markup, numbers in figures, notation in LaTeX: work that is left to be done stays so."""
    return (gold, said) if plain(gold, said) else noted(*in_figures(unmarked(gold), unmarked(said)))
