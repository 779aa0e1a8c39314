"""Other readings of an answer, for those that no notation of mathematics is: spoken formulas, values with a note or
said twice, struck-out ones, brackets, lists of words, words for nothing.

Version 6 of the verification rules. It goes around ``canonical``, which stays as it is, so runs of version 5 decide as
they did. What is no algebra is judged here; each further reading says what the writer said, in another notation, and is
compared by version 5.
"""

import re
from collections.abc import Iterator

from agent0.grading.readings.equations import is_equation_of_unknown, is_percent_of_fraction
from agent0.grading.readings.notes import without_notes
from agent0.grading.readings.nothing import same_nothing
from agent0.grading.readings.respelled import respelled
from agent0.grading.readings.sequences import same_brackets, same_words
from agent0.grading.readings.spoken import in_notation
from agent0.grading.readings.terms import same_choice_word, same_validity, same_word

__all__ = ["judged", "other_notations"]

LONGEST = 400
_gap = re.compile(r"\s{2,}")
_KINDS = (
    ("brackets", same_brackets),
    ("words in order", same_words),
    ("no value", same_nothing),
    ("validity", same_validity),
    ("choice", same_choice_word),
    ("words", same_word),
    ("an equation that is not solved", is_equation_of_unknown),
    ("percent", is_percent_of_fraction),
)


def without_gaps(text: str) -> str:
    """Return ``text`` with each run of blanks as one, of lines as one where it has any: no run takes a pattern long."""
    return _gap.sub(lambda found: "\n" if "\n" in found[0] else " ", text)


def judged(gold: str, said: str) -> tuple[bool, str] | None:
    """Decide with a reason what is no algebra; None for everything else."""
    if max(len(gold), len(said)) > LONGEST:
        return None
    gold, said = without_gaps(gold), without_gaps(said)
    for reason, same in _KINDS:
        if (verdict := same(gold, said)) is not None:
            return verdict, reason
    return None


def other_notations(gold: str, said: str) -> Iterator[tuple[str, str]]:
    """Yield both in another notation, where one of them has one: without notes, then as formulas for spoken words."""
    if max(len(gold), len(said)) > LONGEST:
        return
    seen = {(gold, said)}
    gold, said = without_gaps(gold), without_gaps(said)
    for bare in dict.fromkeys((said, *without_notes(gold, said))):
        one, other = respelled(gold, bare)
        for both in ((gold, bare), (gold, other), (one, other), (in_notation(one), in_notation(other))):
            if both not in seen:
                seen.add(both)
                yield both
