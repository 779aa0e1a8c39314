"""Compares the form of a candidate answer with the gold's. The gold decides the kind of answer."""

from collections.abc import Sequence

from agent0.grading.math import algebra
from agent0.grading.math.forms import Based, Expression, Form, Group, Relation, Words
from agent0.grading.math.units import NUMERALS

_TURNED = {r"\le": r"\ge", r"\ge": r"\le", "<": ">", ">": "<", "=": "=", r"\ne": r"\ne"}


def equal(gold: Form, candidate: Form) -> bool:
    """Whether two forms are equal. Total and exact; kinds that do not fit are different."""
    match gold:
        case Words(text=text):
            return isinstance(candidate, Words) and bool(text) and text == candidate.text
        case Expression():
            return _expression(gold, candidate)
        case Based():
            return gold == _right_side(candidate, "=")
        case Group():
            return _group(gold, candidate)
    return _relation(gold, candidate)


def _right_side(form: Form, *signs: str) -> Form:
    """What a name is said to be by one of ``signs``; any other form as it is."""
    return form.right if isinstance(form, Relation) and form.variable and form.sign in signs else form


def _expression(gold: Expression, candidate: Form) -> bool:
    match candidate:
        case Expression(value=value, infinite=infinite):
            return gold.infinite == infinite and algebra.same(gold.value, value)
        case Relation(sign="=", variable=variable) if variable and variable not in gold.value.names:
            return _expression(gold, candidate.right)
        case Based(base=10, digits=digits) if digits.isdigit():
            return algebra.same(gold.value, algebra.number(int(digits)))
        case Words(text=text) if text in NUMERALS:
            return not gold.infinite and algebra.same(gold.value, algebra.number(NUMERALS[text]))
    return False


def _group(gold: Group, candidate: Form) -> bool:
    if isinstance(candidate, Relation) and candidate.variable:
        is_member = candidate.sign == r"\in" and _holds_many(candidate.right)
        form = candidate.right if candidate.sign == "=" or is_member else _ray(candidate)
        return form is not None and equal(gold, form)
    if not isinstance(candidate, Group):
        return False
    if gold.kind in ("list", "set"):
        return candidate.kind in ("list", "set") and _unordered(gold.items, candidate.items)
    if gold.kind != candidate.kind or len(gold.items) != len(candidate.items) or gold.brackets != candidate.brackets:
        return False
    if gold.kind in ("union", "intersection"):
        return _unordered(gold.items, candidate.items)
    return all(map(equal, gold.items, candidate.items))


def _holds_many(form: Form) -> bool:
    """Whether something can be in it: a set, an interval, or several joined."""
    if not isinstance(form, Group):
        return False
    return form.kind in ("set", "union", "intersection") or (form.kind == "tuple" and len(form.items) == 2)


def _ray(inequality: Relation) -> Group | None:
    """An inequality of a name as an interval with one infinite end."""
    zero = algebra.number(0)
    if inequality.sign in ("<", r"\le"):
        return Group("tuple", (Expression(zero, -1), inequality.right), "()" if inequality.sign == "<" else "(]")
    if inequality.sign in (">", r"\ge"):
        return Group("tuple", (inequality.right, Expression(zero, 1)), "()" if inequality.sign == ">" else "[)")
    return None


def _unordered(gold: Sequence[Form], candidate: Sequence[Form]) -> bool:
    """Each of one has its own partner in the other."""
    left = list(candidate)
    for item in gold:
        partner = next((n for n, other in enumerate(left) if equal(item, other)), -1)
        if partner < 0:
            return False
        del left[partner]
    return not left


def _relation(gold: Relation, candidate: Form) -> bool:
    if not isinstance(candidate, Relation):
        value = _right_side(gold, "=", r"\in")
        return value is not gold and equal(value, candidate)
    if gold.sign == "=" == candidate.sign:
        return _equation(gold, candidate)
    is_direct = gold.sign == candidate.sign and equal(gold.left, candidate.left) and equal(gold.right, candidate.right)
    is_turned = _TURNED.get(gold.sign) == candidate.sign
    return is_direct or (is_turned and equal(gold.left, candidate.right) and equal(gold.right, candidate.left))


def _equation(gold: Relation, candidate: Relation) -> bool:
    """Both say the same: one difference of sides is a multiple of the other."""
    match gold.left, gold.right, candidate.left, candidate.right:
        case Expression(first, 0), Expression(second, 0), Expression(third, 0), Expression(fourth, 0):
            return algebra.proportional(first - second, third - fourth)
    return gold.variable == candidate.variable and equal(gold.right, candidate.right)
