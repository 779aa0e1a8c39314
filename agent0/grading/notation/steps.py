"""The rules of notation in their order. The expected answer decides what an ambiguous sign means."""

import re
from collections.abc import Iterator

from agent0.grading.comparison.periodic import bare_residue
from agent0.grading.comparison.systems import named_values
from agent0.grading.comparison.words.calendar import timed
from agent0.grading.math.cleaning import unmarked
from agent0.grading.notation.functions import applied
from agent0.grading.notation.notes import without_notes
from agent0.grading.notation.numerals import in_figures, in_one_base, in_ratios, one_figure
from agent0.grading.notation.sets import in_sets
from agent0.grading.notation.sides import last_side, one_side, turned_alike
from agent0.grading.notation.spellings import respelled
from agent0.grading.notation.spoken import in_notation
from agent0.grading.notation.vectors import in_vectors
from agent0.grading.notation.wording import without_words

LONGEST, LONGEST_SPELLED = 400, 2_000
"""Characters of an answer that is rewritten; a longer one is compared as it is."""
_number = re.compile(r"[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)")
_words = re.compile(r"(?=.*[A-Za-z]{4})[A-Za-z][A-Za-z' -]*")
IN_TEXT = re.compile(r"\\(?:text(?:bf|rm|it)?|mbox|mathrm)\s*\{[A-Za-z' -]+\}\.?")
"""Words, which are compared as such."""
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
        gold, answer = (without_gaps(unmarked(text)) for text in (gold, answer))
        gold, answer = one_figure(*in_one_base(respelled(gold, gold), respelled(answer, gold)))
        answer = without_words(answer, gold)
        if IN_TEXT.fullmatch(gold):
            return in_figures(gold, answer)
    gold, answer = in_ratios(gold, last_side(gold, answer))
    gold, answer = in_vectors(gold, one_side(answer, gold))
    if not IN_TEXT.fullmatch(gold):
        gold, answer = timed(gold, answer)
    if not _words.fullmatch(gold):
        gold, answer = applied(gold, bare_residue(gold, answer))
        gold, answer = turned_alike(*named_values(gold, answer))
    return spelled(gold, answer)


def spelled(gold: str, answer: str) -> Answers:
    """Return both without markup, numbers in figures, sets and vectors in LaTeX."""
    if is_plain(gold, answer):
        return gold, answer
    gold, answer = in_figures(unmarked(gold), unmarked(answer))
    return in_sets(in_notation(gold), in_notation(answer))


def without_gaps(text: str) -> str:
    """Return ``text`` with each run of blanks as one, of lines as one where it has any: no run takes a pattern long."""
    return _gap.sub(lambda gap: "\n" if "\n" in gap[0] else " ", text)


def other_notations(gold: str, answer: str) -> Iterator[Answers]:
    """Yield both with the answer in other readings: without what stands beside it."""
    if max(len(gold), len(answer)) <= LONGEST:
        yield from ((gold, bare) for bare in without_notes(without_gaps(gold), without_gaps(answer)))
