"""Numbers, expressions, equations, intervals, matrices, units: compared by exact algebra."""

import re
from collections.abc import Callable

from agent0.grading import Grade, guard
from agent0.grading import exactly as compare
from agent0.grading.answer_types import VALUE, kind, left_undone
from agent0.grading.math import algebra
from agent0.grading.math.algebra import TooLargeError
from agent0.grading.math.cleaning import clean
from agent0.grading.math.forms import Expression, Form, Group, Relation, Words, form_of
from agent0.grading.math.parser import FUNCTIONS

_WORK = re.compile(r"[\\^*/+!]|\d\s*-")
_COMMANDS = "|".join(
    [*FUNCTIONS, "binom", "sqrt", "frac", "cdot", "times", "div", "over", "lfloor", "rfloor", "lceil", "rceil"]
)
_NUMERIC = re.compile(rf"(?:\\?(?:{_COMMANDS})(?![a-z])|[\d\s+*/^!().,{{}}\[\]|_-])+")
_OPERATOR = re.compile(r"[A-Za-z+*/^!]|\d\s*-")
_DATE = re.compile(r"\d{4}([-/])\d{1,2}\1\d{1,2}|\d{1,2}/\d{1,2}/\d{4}")
_DATED = re.compile(r"\b(?:dates?|days?|when)\b", re.IGNORECASE)
_Literal = Callable[[Expression], bool]


def _written_out(one: Expression) -> bool:
    return one.literal


def exact(one: Expression) -> bool:
    """Whether ``one`` is written out, or has no digits to be written in: an irrational number, a symbolic form."""
    return one.literal or bool(one.infinite) or algebra.rational(one.value) is None


def undone_by(literal: _Literal) -> Callable[[str, str], bool]:
    """(expected, given) -> whether more expressions of ``given`` than of ``expected`` are not ``literal``."""

    def undone(expected: str, given: str) -> bool:
        return (left := _unevaluated(given, literal)) > 0 and left > _unevaluated(expected, literal)

    return undone


def _unevaluated(text: str, literal: _Literal) -> int:
    """How many expressions in ``text`` are not written as a value. An equation of a name is what the name is."""
    if "!!" in text:
        return 1
    try:
        return _count(form_of(clean(text).text), literal, lambda words: bool(_WORK.search(words)))
    except TooLargeError:
        return 1


def _count(form: Form, literal: _Literal, work: Callable[[str], bool]) -> int:
    """``work``: of a text that is not read as algebra, whether it is to be computed all the same. A symbolic engine
    reads more than the parser does."""
    match form:
        case Expression():
            return int(not literal(form))
        case Group(items=items):
            return sum(_count(item, literal, work) for item in items)
        case Relation(left=left, right=right, variable=variable):
            return (0 if variable else _count(left, literal, work)) + _count(right, literal, work)
        case Words(text=text):
            return int(work(text))
    return 0


def is_number(text: str) -> bool:
    """Whether ``text`` is one rational number, written out."""
    try:
        form = form_of(clean(text).text)
    except TooLargeError:
        return False
    return isinstance(form, Expression) and form.literal and algebra.rational(form.value) is not None


def undone_number(expected: str, given: str | None) -> Grade | None:
    """The grade of an answer that leaves work undone where one number is ``expected``; None for every other. Benchmarks
    have this rule for numbers alone: their symbolic answers may be written in any way."""
    if given is None or not is_number(expected) or not left_undone(VALUE, expected, given):
        return None
    return Grade(False, "work left undone where a value is wanted", expected[:200], given[:200])


def arithmetic_left(answer: str, question: str = "") -> bool:
    r"""Whether ``answer``, for which no right one is known, is arithmetic that is still to be done: rational, without
    free symbols, and not written as a value. ``x^2+1``, ``\sqrt{2}`` and ``3/2`` are answers; ``76*26+89``, ``14/2``
    and ``\binom{300}{0}+1`` are not. A date is one where ``question`` asks for it. Total and bounded."""
    if _DATE.fullmatch(answer.strip()) and _DATED.search(question):
        return False
    if guard(answer, answer):
        return _numeric(answer)
    text = clean(answer).text
    try:
        return _count(form_of(text), exact, _numeric) > 0
    except TooLargeError:
        return _numeric(text)


def _numeric(text: str) -> bool:
    """Whether there is nothing in ``text`` but numbers, operators and functions, and at least one of the latter."""
    return bool(_NUMERIC.fullmatch(text) and re.search(r"\d", text) and _OPERATOR.search(text))


@kind(VALUE, applies=lambda expected: True, rank=9, undone=undone_by(_written_out))
def value(expected: str, given: str) -> Grade:
    """As mathematics; may ask for a symbolic engine."""
    return compare(expected, given)
