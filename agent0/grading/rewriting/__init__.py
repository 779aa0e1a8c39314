"""More spellings of language models, brought to those that version 3 of the verification rules reads.

Version 4. It goes before ``spelling``, which stays as it is, so runs of version 3 decide as they did. Both sides are
rewritten; congruences, piecewise functions, systems and named values are decided here.
"""

import re

from agent0.grading.rewriting.clocks import dated, timed
from agent0.grading.rewriting.congruences import bare_residue, same_residues
from agent0.grading.rewriting.functions import applied, computed_functions
from agent0.grading.rewriting.intervals import bounded
from agent0.grading.rewriting.layout import laid_out, spelled_alike, turned_alike
from agent0.grading.rewriting.piecewise import Equal, named_values, one_or_other, same_cases
from agent0.grading.rewriting.respelled import respelled
from agent0.grading.rewriting.sides import last_side
from agent0.grading.spelling import unmarked

__all__ = ["Equal", "computed", "last_side", "resolved", "rewritten", "worded"]

_words = re.compile(r"(?=.*[A-Za-z]{4})[A-Za-z][A-Za-z' -]*")


def rewritten(gold: str, said: str) -> tuple[str, str]:
    """Return both with other spellings of the same thing; nothing is computed: ``5C2`` stays a binomial coefficient."""
    gold, said = respelled(gold, said)
    gold, said = unmarked(laid_out(gold, gold)), unmarked(laid_out(said, gold))
    gold, said = worded(gold, said)
    if _words.fullmatch(gold):
        return gold, said
    gold, said = bounded(gold, bare_residue(gold, said))
    gold, said = applied(gold, said)
    gold, said = named_values(gold, said)
    return turned_alike(gold, said)


def worded(gold: str, said: str) -> tuple[str, str]:
    """Return both dates, days and times of day in one spelling, where the gold is one."""
    return timed(*dated(gold, said))


def resolved(gold: str, said: str, equal: Equal) -> tuple[bool, str] | None:
    """Decide with a reason what is no algebra, both rewritten; None for everything else. ``equal`` compares parts."""
    if (same := same_residues(gold, said)) is not None:
        return same, "congruence"
    if (same := same_cases(gold, said, equal)) is not None:
        return same, "cases"
    if one_or_other(gold, said):
        return False, "one or the other"
    if spelled_alike(gold, said):
        return True, "the same text"
    return None


def computed(gold: str, said: str) -> tuple[str, str]:
    """Return both with values of functions that exact comparison does not know, where they are numbers."""
    return computed_functions(gold), computed_functions(said)
