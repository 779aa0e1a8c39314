"""Kinds of answers that are compared as what they are: a letter, a truth value, a formula, an order, a listing, words.

One file a kind. A task or a labelled pair may name its kind; where it does not, the expected answer's own form tells,
and what fits no kind is a value, compared by algebra. No kind ever accepts what is merely near.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from agent0.errors import ConfigError
from agent0.grading import Grade, grade, guard
from agent0.grading.comparison.decisions import decided_in_words
from agent0.grading.comparison.words.calendar import timed
from agent0.grading.normal_form import normal_form
from agent0.grading.notation.markup import unmarked
from agent0.grading.notation.steps import in_one_notation, is_plain
from agent0.registry import Registry

ANSWER_KIND = "answer_kind"
"""Where a task's parameters name the kind of answer that it wants."""

VALUE = "value"
"""The kind of whatever is compared by algebra (``agent0.grading.grade``)."""


@dataclass(frozen=True)
class Kind:
    """``grade`` gets an expected answer and one that was given, neither empty nor out of bounds. ``applies`` says
    whether an expected answer is of this kind although nobody said so; lower ranks are asked first. ``undone`` says
    whether a given answer leaves more to be computed than the expected one does."""

    name: str
    grade: Callable[[str, str], Grade]
    applies: Callable[[str], bool]
    rank: int
    undone: Callable[[str, str], bool] = lambda expected, given: False


_kinds = Registry[str, Kind]("kinds", __name__, order=lambda _, entry: entry.rank)
_Grader = Callable[[str, str], Grade]


def kind(
    name: str,
    *,
    applies: Callable[[str], bool],
    rank: int,
    undone: Callable[[str, str], bool] = lambda expected, answer: False,
) -> Callable[[_Grader], _Grader]:
    """Register how one kind of answer is read and compared."""
    return _kinds.adding(name, lambda grade: Kind(name, grade, applies, rank, undone))


def kinds() -> dict[str, Kind]:
    """Every kind by name, in the order in which they are asked."""
    return _kinds.all()


def kind_of(expected: str) -> str:
    """The kind of an answer that a program printed or a family computed."""
    return next(entry.name for entry in kinds().values() if entry.applies(expected))


def grade_as(name: str, expected: str, answer: str | None) -> Grade:
    """Whether ``answer`` says what ``expected`` says, both of kind ``name`` (empty: as ``expected`` reads). Total and
    bounded in time.

    Raises:
        ConfigError: there is no such kind.
    """
    expected = without_solution(expected)
    name = name or kind_of(expected)
    if answer is None:
        return compare_as(name, expected, answer)
    if name == VALUE:
        return grade(expected, answer)
    if guard(expected, answer) or is_plain(expected, answer):
        return compare_as(name, expected, answer)
    bare = unmarked(answer)
    if name == "text":
        expected, bare = timed(expected, bare)
    if name in ("choice", "text") and (decided := decided_in_words(expected, bare)):
        return Grade(*decided, expected[:200], bare[:200])
    return compare_as(name, expected, bare)


def without_solution(expected: str) -> str:
    """Return the answer of an expected text that has its solution before it, as rows of GSM8K do: ``24`` of
    ``… #### 24``."""
    _, mark, answer = expected.rpartition("####")
    return answer.strip() if mark and answer.strip() else expected


def compare_as(name: str, expected: str, answer: str | None) -> Grade:
    """``grade_as`` of answers as they stand; items of an answer are compared so.

    Raises:
        ConfigError: there is no such kind.
    """
    if answer is None or not plain(answer).strip():
        return Grade(False, "no answer", expected[:200])
    if problem := guard(expected, answer):
        return Grade(False, problem, expected[:200], answer[:200])
    return named(name or kind_of(expected)).grade(expected, answer)


def left_undone(name: str, expected: str, answer: str) -> bool:
    """Whether ``answer`` leaves more to be computed than ``expected``, both of kind ``name`` (empty: as ``expected``
    reads): ``76*26+89`` where ``2065`` is wanted. Total and bounded in time; what is out of bounds is not looked at.

    Raises:
        ConfigError: there is no such kind.
    """
    if guard(expected, answer) or guard(expected, expected):
        return False
    name = name or kind_of(expected)
    if name == VALUE and not is_plain(expected, answer):
        expected, answer = in_one_notation(expected, answer)
    return named(name).undone(expected, answer)


def named(name: str) -> Kind:
    """The kind of this name.

    Raises:
        ConfigError: there is none.
    """
    known = kinds()
    if name not in known:
        raise ConfigError(f"There is no kind of answer {name[:80]!r}.", f"Kinds: {', '.join(known)}.")
    return known[name]


def plain(text: str) -> str:
    """``text`` without characters that nobody sees: zero-width ones, marks of direction."""
    return text if text.isascii() else "".join(c for c in text if unicodedata.category(c) != "Cf")


def words(text: str) -> str:
    """One spelling of a text: case, spaces, forms of letters, quotes and markup do not count, all else does."""
    folded = unicodedata.normalize("NFKC", plain(text)).strip()
    return normal_form(re.sub(r"^\\(?:text|mathrm|mbox)(?:bf|rm|it)?\s*\{(.*)\}$", r"\1", folded))
