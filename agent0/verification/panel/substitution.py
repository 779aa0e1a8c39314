"""Check: where the question gives one equation and asks for its unknown, does the answer solve it? Exact;
nothing is run."""

import re
from dataclasses import dataclass
from fractions import Fraction

from agent0.grading import guard
from agent0.grading.math import algebra
from agent0.grading.math.algebra import Quotient, TooLargeError, UndefinedError
from agent0.grading.math.cleaning import clean
from agent0.grading.math.forms import Expression, Form, Group, Relation, form_of
from agent0.grading.math.lexer import UnreadableError
from agent0.grading.math.parser import read
from agent0.verification.panel import PanelCase, VoteAndReason, check

_CUTS = re.compile(r"\b(?!sin|cos|tan|log|ln|sqrt|exp)[A-Za-z]{2,}\b|[:;,?!$\n]|\.(?!\d)")
_ASKED = (
    r"\b(?:solve(?:\s+for)?|find|determine|compute|what\s+is|value\s+of|root\s+of)\s+(?:the\s+\w+\s+(?:of|for)\s+)?\$?"
)
_SOLVED = re.compile(r"\bsolve\s*:?\s*(?:the\s+equation\s*:?\s*)?\$?[^A-Za-z]*[a-z]?[^A-Za-z]*=", re.I)


@dataclass(frozen=True)
class _Equation:
    left: Quotient
    right: Quotient
    unknown: str


@check("substitution")
async def substitution(case: PanelCase) -> list[VoteAndReason]:
    """Vote no where a value does not solve the equation; yes where as many do as it can have solutions."""
    equation = _equation(case.task.question)
    if equation is None:
        return [(None, "the question is no single equation")] * len(case.answers)
    return [(None, "no answer") if answer is None else _tried(equation, answer) for answer in case.answers]


def solves(question: str, answer: str) -> bool | None:
    """Whether ``answer`` solves the one equation that ``question`` asks about; None where that cannot be decided."""
    equation = _equation(question)
    return None if equation is None else _tried(equation, answer)[0]


def _equation(question: str) -> _Equation | None:
    sides = [piece.split("=") for piece in _CUTS.split(question) if "=" in piece]
    if len(sides) != 1 or len(sides[0]) != 2:
        return None
    try:
        left, right = (read(clean(side).text) for side in sides[0])
    except (UnreadableError, TooLargeError):
        return None
    names = left.bases | right.bases
    if len(names) != 1 or not re.fullmatch("[a-z]", unknown := next(iter(names))):
        return None
    solving = re.search(rf"{_ASKED}{unknown}\b\$?(?!\s*[-+*/^(])", question, re.IGNORECASE) or _SOLVED.search(question)
    return _Equation(left, right, unknown) if solving else None


def _tried(equation: _Equation, answer: str) -> VoteAndReason:
    if guard(equation.unknown, answer):
        return None, "no value to put in"
    try:
        values = _values(form_of(clean(answer).text))
        sides = [[_put(side, equation.unknown, value) for side in (equation.left, equation.right)] for value in values]
    except (UnreadableError, UndefinedError, TooLargeError):
        return None, "no value to put in"
    if not values:
        return None, "no value to put in"
    if not all(algebra.same(left, right) for left, right in sides):
        return False, "it does not solve the equation"
    distinct = [v for n, v in enumerate(values) if not any(algebra.same(v, other) for other in values[:n])]
    if len(distinct) == _degree(equation):
        return True, "it solves the equation"
    return None, "it solves the equation, which may have other solutions"


def _values(form: Form) -> list[Quotient]:
    """Numbers that are given; none where there is anything else."""
    if isinstance(form, Relation) and form.sign == "=" and form.variable:
        return _values(form.right)
    items = form.items if isinstance(form, Group) and form.kind in ("list", "set") else (form,)
    solutions = [_values(item) if isinstance(item, Relation) else [item.value] for item in items
             if isinstance(item, Expression | Relation) and not getattr(item, "infinite", 0)]  # fmt: skip
    flat = [value for values in solutions for value in values]
    return flat if len(solutions) == len(items) and all(value.bases <= {"i"} for value in flat) else []


def _put(side: Quotient, unknown: str, value: Quotient) -> Quotient:
    """``side`` with ``value`` in place of ``unknown``."""
    above, below = (_summed(terms, unknown, value) for terms in (side.above, side.below))
    return above / below


def _summed(terms: algebra.Terms, unknown: str, value: Quotient) -> Quotient:
    total = algebra.number(0)
    for monomial, factor in terms.items():
        term = algebra.number(factor)
        for base, exponent in monomial:
            part = value if base == unknown else algebra.number(int(base)) if base.isdigit() else algebra.symbol(base)
            term = term * part ** algebra.number(exponent)
        total = total + term
    return total


def _degree(equation: _Equation) -> Fraction | None:
    """Of the polynomial that is 0 at the solutions, None where it is no polynomial."""
    difference = equation.left - equation.right
    if set(difference.below) != {algebra.ONE}:
        return None
    powers = [dict(monomial).get(equation.unknown, Fraction(0)) for monomial in difference.above]
    whole = all(power.denominator == 1 and power >= 0 for power in powers)
    return max(powers, default=None) if whole else None
