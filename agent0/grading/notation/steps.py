"""The rules of notation in their order. The expected answer decides what an ambiguous sign means."""

import re
from collections.abc import Iterator

from agent0.grading.comparison.periodic import bare_residue
from agent0.grading.comparison.piecewise import named_values
from agent0.grading.comparison.words.calendar import timed
from agent0.grading.notation.bases import in_one_base
from agent0.grading.notation.figures import respelled
from agent0.grading.notation.functions import applied
from agent0.grading.notation.intervals import bounded
from agent0.grading.notation.layout import laid_out, turned_alike
from agent0.grading.notation.markup import unmarked
from agent0.grading.notation.measures import measured
from agent0.grading.notation.numerals import in_figures
from agent0.grading.notation.readings.kinds import of_kind
from agent0.grading.notation.readings.notes import without_notes
from agent0.grading.notation.readings.spoken import in_notation
from agent0.grading.notation.sets import noted, one_vector
from agent0.grading.notation.sides import last_side
from agent0.grading.notation.signs import one_figure, one_sign
from agent0.grading.notation.wording import without_words

LONGEST, LONGEST_SPELLED = 400, 2_000
"""Characters of an answer that is rewritten; a longer one is compared as it is."""
_number = re.compile(r"[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)")
_words = re.compile(r"(?=.*[A-Za-z]{4})[A-Za-z][A-Za-z' -]*")
_in_text = re.compile(r"\\(?:text(?:bf|rm|it)?|mbox|mathrm)\s*\{[A-Za-z' -]+\}\.?")
_gap = re.compile(r"\s{2,}")
Answers = tuple[str, str]
"""The expected answer and the one that is judged."""


def is_plain(gold: str, answer: str) -> bool:
    """Whether both have one spelling only: numbers in figures, or more text than is looked at."""
    too_long = max(len(gold), len(answer)) > LONGEST_SPELLED
    return too_long or bool(_number.fullmatch(answer) and _number.fullmatch(gold))


def in_one_notation(gold: str, answer: str) -> Answers:
    """Return both in the notation that is compared. Nothing is computed: ``5C2`` stays a binomial coefficient."""
    if max(len(gold), len(answer)) <= LONGEST:
        gold, answer = one_figure(gold, answer)
        gold, answer = one_sign(gold), without_words(one_sign(answer), gold)
        gold, answer = one_vector(*measured(*in_one_base(gold, answer)))
    gold, answer = respelled(gold, last_side(gold, answer))
    gold, answer = unmarked(laid_out(gold, gold)), unmarked(laid_out(answer, gold))
    if not _in_text.fullmatch(gold):
        gold, answer = timed(gold, answer)
    if not _words.fullmatch(gold):
        gold, answer = bounded(gold, bare_residue(gold, answer))
        gold, answer = applied(gold, answer)
        gold, answer = turned_alike(*named_values(gold, answer))
    return spelled(gold, answer)


def spelled(gold: str, answer: str) -> Answers:
    """Return both without markup, numbers in figures, sets and vectors in LaTeX."""
    if is_plain(gold, answer):
        return gold, answer
    return noted(*in_figures(unmarked(gold), unmarked(answer)))


def without_gaps(text: str) -> str:
    """Return ``text`` with each run of blanks as one, of lines as one where it has any: no run takes a pattern long."""
    return _gap.sub(lambda gap: "\n" if "\n" in gap[0] else " ", text)


def other_notations(gold: str, answer: str) -> Iterator[Answers]:
    """Yield both in another notation, where one of them has one: without notes, then as formulas for spoken words."""
    if max(len(gold), len(answer)) > LONGEST:
        return
    tried = {(gold, answer)}
    gold, answer = without_gaps(gold), without_gaps(answer)
    for bare in dict.fromkeys((answer, *without_notes(gold, answer))):
        expected, other = of_kind(gold, bare)
        for both in ((gold, bare), (gold, other), (expected, other), (in_notation(expected), in_notation(other))):
            if both not in tried:
                tried.add(both)
                yield both
