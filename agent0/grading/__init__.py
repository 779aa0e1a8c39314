"""Whether an answer is right, decided by exact arithmetic on what it says; nothing of a candidate is ever executed.

The gold's own kind decides how to compare: exact rationals and algebra, lists without order, tuples and intervals with
their brackets, matrices, bases, equations, units, choices, words; functions by their values at points. An integral or
limit that is not computed is undecided here: a symbolic engine may be asked, elsewhere and under a time limit.

One pipeline: ``extraction`` finds the answer in a reply, ``notation`` brings both answers to one spelling,
``comparison`` decides by kind what is no algebra, ``math`` parses and compares the rest. ``answer_types`` are kinds
that a task may name.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from agent0.grading.comparison.decisions import Decision, decided_as_read, decided_by_kind, decided_in_words
from agent0.grading.comparison.functions import same_function
from agent0.grading.extraction import answer_in
from agent0.grading.extraction.phrases import unquoted
from agent0.grading.math.algebra import TooLargeError, rational
from agent0.grading.math.cleaning import Clean, clean
from agent0.grading.math.comparing import equal
from agent0.grading.math.forms import Expression, Form, Group, fold, form_of
from agent0.grading.math.lexer import FUNCTIONS, GREEK, OPERATORS, UnreadableError
from agent0.grading.math.parser import read
from agent0.grading.math.undone import UNDONE, leaves_work
from agent0.grading.math.units import one_unit
from agent0.grading.notation.steps import IN_TEXT, in_one_notation, is_plain, other_notations

__all__ = ["Grade", "answer_in", "exactly", "grade", "guard"]

LONGEST, DEEPEST, MOST_DIGITS = 400, 40, 100
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_figures = re.compile(r"-?\d{1,60}(?:\.\d{1,30})?", re.ASCII)
_run = re.compile(r"(?<![A-Za-z\\])(?!gcd|lcm|max|min|det)[a-z]{2,3}(?![A-Za-z])")
_KNOWN = {*FUNCTIONS, *GREEK, *OPERATORS, "frac", "sqrt", "pi", "infty", "cdot", "times", "div", "to", "over"}
_operator = re.compile(rf"\\(?:{'|'.join(OPERATORS)})(?![A-Za-z])")
_bound = re.compile(r"_\s*\{\s*[a-z]\s*(?:=|\\to(?![A-Za-z]))")
_command, _letters = re.compile(r"\\([A-Za-z]+)"), re.compile(r"[A-Za-z]{2,}")
_misread = re.compile(
    r"[^A-Za-z0-9+\-*/^_(){}\[\]|\\ ]|[-+*/^_]\s*$|^\s*[*/^_]|[-+*/^_]\s*[*/^_)\]}]|\(\s*\)|N_|\^[^ ]{0,8}\^"
    r"|\^\s*\{?\s*[-+]?\d\d|(?<![A-Za-z\\])(?:[EFGHPfgh]\s*\(|d[a-z]?\s*/\s*d[a-z])|\\frac\s*\{\s*d(?![a-z]{3})"
)
_LONGEST_READ = 200


@dataclass(frozen=True)
class Grade:
    """``correct`` None is undecided. ``expected`` and ``got`` are what was compared. ``symbolic``: a symbolic engine
    may be asked, under a limit, what it makes of them."""

    correct: bool | None
    reason: str
    expected: str = ""
    got: str = ""
    symbolic: bool = False


def grade(gold: str, candidate: str | None) -> Grade:
    """Whether ``candidate``, an answer and nothing around it, says what ``gold`` says. Total; bounded in time."""
    if candidate is None or guard(gold, candidate) or is_plain(gold, candidate):
        return exactly(gold, candidate)
    candidate = candidate if unquoted(gold) != gold.strip() else unquoted(candidate)
    if decision := decided_as_read(gold, candidate):
        return _decided(decision, gold, candidate)
    first = _in_notation(gold, candidate)
    others = (_in_notation(*both) for both in other_notations(gold, candidate)) if first.correct is not True else ()
    return next((other for other in others if other.correct is True), first)


def _decided(decision: Decision, gold: str, candidate: str) -> Grade:
    return Grade(*decision, gold[:200], candidate[:200])


def _in_notation(gold: str, candidate: str) -> Grade:
    """``grade`` of one reading of both."""
    if guard(gold, candidate) or is_plain(gold, candidate):
        return exactly(gold, candidate)
    gold, candidate = in_one_notation(gold, candidate)
    if decision := decided_by_kind(gold, candidate):
        return _decided(decision, gold, candidate)
    decision = decided_in_words(gold, candidate)
    compared = _decided(decision, gold, candidate) if decision else exactly(gold, _products(gold, candidate))
    if compared.correct is not True and (verdict := same_function(gold, candidate)) is not None:
        compared = _decided((verdict, "values at points"), gold, candidate)
    is_undone = compared.correct is not False and leaves_work(gold, candidate)
    return _decided((False, UNDONE), gold, candidate) if is_undone else compared


def _products(expected: str, answer: str) -> str:
    """``answer`` with its runs of letters as products, where the gold has each of the letters inside of a function."""
    known = set(re.sub(r"\\[A-Za-z]+", "", expected)) if "\\" in expected and "\\text" not in expected else set()
    return _run.sub(lambda run: " ".join(run[0]) if set(run[0]) <= known else run[0], answer)


def exactly(gold: str, candidate: str | None) -> Grade:
    """Compare two answers as they stand, without another notation. Total; bounded in time."""
    if candidate is None or not candidate.strip():
        return Grade(False, "no answer", gold[:200])
    if problem := guard(gold, candidate):
        return Grade(False, problem, gold[:200], candidate[:200])
    if _figures.fullmatch(gold) and _figures.fullmatch(candidate):  # the same as below, at a twentieth of the cost
        same = Fraction(gold) == Fraction(candidate)
        reason = "the same text" if gold == candidate else "equal by exact comparison" if same else "different"
        return Grade(same, reason, gold, candidate)
    return _cleaned(gold, candidate)


def _cleaned(gold: str, candidate: str) -> Grade:
    expected, answer = clean(gold), clean(candidate)
    shown = expected.text[:200], answer.text[:200]
    if not answer.text:
        return Grade(False, "no answer", *shown)
    if IN_TEXT.fullmatch(gold.strip()):
        return Grade(fold(expected.text) == fold(answer.text), "words", *shown)
    if expected.unit and answer.unit and not one_unit(expected.unit, answer.unit):
        return Grade(False, f"{answer.unit} for {expected.unit}", *shown)
    answer = _shares(expected, answer)
    return Grade(True, "the same text", *shown) if expected == answer else _compared(expected.text, answer.text)


def _compared(expected: str, answer: str) -> Grade:
    shown = expected[:200], answer[:200]
    form: Form | None = None
    try:
        form = form_of(expected)
        letters = form.value.bases if isinstance(form, Expression) else set(re.findall(r"[A-Za-z]", expected))
        if isinstance(form, Group) and form.kind in ("list", "set"):
            answer = re.sub(r"(?<=\d),(?=\d)", ", ", answer)  # a comma parts two of several values, and no thousands
        other = form_of(answer, letters)
        if equal(form, other):
            return Grade(True, "equal by exact comparison", *shown)
    except TooLargeError as error:
        return Grade(False if form else None, f"too large to compare: {error}", *shown)
    if _may_be_asked(expected, answer):
        return Grade(None, "exact comparison cannot tell", expected, answer, symbolic=True)
    return Grade(False, "different", *shown)


def _may_be_asked(expected: str, answer: str) -> bool:
    """Whether to ask a symbolic engine about texts that exact comparison does not find equal: integrals, limits, sums.

    It drops what it does not know and takes rounded numbers for exact ones, so it is asked only about texts that it is
    known to read whole: never about a relation, a decimal, a word, or a function of a name.
    """
    return bool(_operator.search(expected)) and _is_whole(expected) and _is_whole(answer)


def _is_whole(text: str) -> bool:
    """Whether the engine reads all of ``text``, in a short time."""
    bare = _bound.sub("_{", text)
    words = {run for run in _letters.findall(_command.sub(" ", bare)) if not re.fullmatch("[a-z]?d[a-z]", run)}
    return (
        len(text) < _LONGEST_READ
        and not _misread.search(bare)
        and set(_command.findall(bare)) <= _KNOWN
        and words <= FUNCTIONS | {"sqrt", "pi"}
    )


def _shares(expected: Clean, answer: Clean) -> Clean:
    """``50 percent`` as the number that it is, where the gold is no percentage and no number beyond one."""
    if answer.unit != "percent" or expected.unit:
        return answer
    try:
        value = rational(read(expected.text))
    except (UnreadableError, TooLargeError):
        return answer
    above = value is not None and (abs(value) > 1 or value.denominator == 1)
    return answer if above else Clean(f"({answer.text})/100")


def guard(gold: str, candidate: str) -> str:
    """Why ``candidate`` is not looked at, empty where it is."""
    if len(candidate) > max(LONGEST, 4 * len(gold)):
        return "too long for an answer"
    if _CONTROL.search(candidate) and not _CONTROL.search(gold):
        return "control characters"
    depth = deepest = 0
    for letter in candidate:
        depth += (letter in "([{") - (letter in ")]}")
        deepest = max(deepest, abs(depth))
    if deepest > DEEPEST:
        return "nested too deeply"
    longest = max((len(run) for run in re.findall(r"\d+", candidate)), default=0)
    return "too many digits" if longest > max(MOST_DIGITS, len(gold)) else ""
