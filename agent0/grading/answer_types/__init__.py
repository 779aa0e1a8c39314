"""Kinds of answers that are compared as what they are: a letter, a truth value, a formula, an order, a listing, words.

A file holds kinds that are read alike. A task or a labelled pair may name its kind; where it does not, the expected
answer's own form tells, and what fits no kind is a value, compared by algebra. No kind accepts what is merely near.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from agent0.errors import ConfigError
from agent0.grading import Grade, grade, guard
from agent0.grading.comparison.decisions import decided_in_words
from agent0.grading.comparison.words.calendar import timed
from agent0.grading.golds import without_solution
from agent0.grading.math.cleaning import unmarked
from agent0.grading.math.forms import Expression
from agent0.grading.math.undone import unevaluated
from agent0.grading.normal_form import normal_form
from agent0.grading.notation.steps import in_one_notation, is_plain
from agent0.registry import Registry

ANSWER_KIND = "answer_kind"
"""Where a task's parameters name the kind of answer that it wants."""
VALUE = "value"
"""The kind of whatever is compared by algebra (``agent0.grading.grade``)."""
MOST = 200
"""Items of an answer."""
Grader = Callable[[str, str], Grade]


@dataclass(frozen=True)
class Kind:
    """``grade`` gets an expected answer and one to judge, neither empty nor out of bounds. ``applies`` says whether an
    expected answer is of this kind although nobody said so; lower ranks are asked first. ``literal`` says whether an
    expression leaves nothing to be computed; None where such answers have no expressions."""

    name: str
    grade: Grader
    applies: Callable[[str], object]
    rank: int
    literal: Callable[[Expression], bool] | None


_kinds = Registry[str, Kind]("kinds", __name__, order=lambda _, entry: entry.rank)


def kind(
    name: str, rank: int, applies: Callable[[str], object], literal: Callable[[Expression], bool] | None = None
) -> Callable[[Grader], Grader]:
    """Register how one kind of answer is read and compared: see ``Kind``."""
    return _kinds.adding(name, lambda grade: Kind(name, grade, applies, rank, literal))


def kinds() -> dict[str, Kind]:
    """Every kind by name, in the order in which they are asked."""
    return _kinds.all()


def kind_of(expected: str) -> str:
    """The kind of an answer that a program printed or a family computed."""
    return next(entry.name for entry in kinds().values() if entry.applies(expected))


def named(name: str) -> Kind:
    """The kind of this name. Raises ConfigError where there is none, as all below does that takes a name."""
    if entry := kinds().get(name):
        return entry
    raise ConfigError(f"There is no kind of answer {name[:80]!r}.", f"Kinds: {', '.join(kinds())}.")


def grade_as(name: str, expected: str, answer: str | None) -> Grade:
    """Whether ``answer`` says what ``expected`` says, both of kind ``name`` (empty: as ``expected`` reads). Total and
    bounded in time."""
    expected = without_solution(expected)
    name = name or kind_of(expected)
    if name == VALUE and answer is not None:
        return grade(expected, answer)
    if answer is None or guard(expected, answer) or is_plain(expected, answer):
        return compare_as(name, expected, answer)
    answer = unmarked(answer)
    if name == "text":
        expected, answer = timed(expected, answer)
    if name in ("choice", "text") and (decision := decided_in_words(expected, answer)):
        return Grade(*decision, expected[:200], answer[:200])
    return compare_as(name, expected, answer)


def compare_as(name: str, expected: str, answer: str | None) -> Grade:
    """``grade_as`` of answers as they stand; items of an answer are compared so."""
    if answer is None or not plain(answer).strip():
        return Grade(False, "no answer", expected[:200])
    if problem := guard(expected, answer):
        return Grade(False, problem, expected[:200], answer[:200])
    return named(name or kind_of(expected)).grade(expected, answer)


def left_undone(name: str, expected: str, answer: str) -> bool:
    """Whether ``answer`` leaves more to be computed than ``expected``, both of kind ``name`` (empty: as ``expected``
    reads): ``76*26+89`` where ``2065`` is wanted. Of several things each is graded so. Total and bounded in time."""
    literal = named(name := name or kind_of(expected)).literal
    if literal is None or guard(expected, answer) or guard(expected, expected):
        return False
    if name == VALUE and not is_plain(expected, answer):
        expected, answer = in_one_notation(expected, answer)
    left = unevaluated(answer, literal)
    return left > 0 and left > unevaluated(expected, literal)


def plain(text: str) -> str:
    """``text`` without characters that nobody sees: zero-width ones, marks of direction."""
    return text if text.isascii() else "".join(c for c in text if unicodedata.category(c) != "Cf")


def words(text: str) -> str:
    """One spelling of a text: case, spaces, forms of letters, quotes and markup do not count, all else does."""
    folded = unicodedata.normalize("NFKC", plain(text)).strip()
    return normal_form(re.sub(r"^\\(?:text|mathrm|mbox)(?:bf|rm|it)?\s*\{(.*)\}$", r"\1", folded))
