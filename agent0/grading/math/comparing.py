"""Compares the form of a candidate answer with the gold's. The gold decides the kind of answer."""

from collections.abc import Callable, Sequence
from typing import Any

from agent0.grading.math import algebra
from agent0.grading.math.forms import Based, Expression, Form, Group, Relation, Words
from agent0.grading.math.units import NUMERALS

_TURNED = {r"\le": r"\ge", r"\ge": r"\le", "<": ">", ">": "<", "=": "=", r"\ne": r"\ne"}


def equal(gold: Form, candidate: Form) -> bool:
    """Total and exact; kinds that do not fit are different."""
    compare: dict[type, Callable[[Any, Form], bool]] = {
        Words: lambda g, c: isinstance(c, Words) and bool(g.text) and g.text == c.text,
        Expression: _expression,
        Based: _based,
        Group: _group,
        Relation: _relation,
    }
    return compare[type(gold)](gold, candidate)


def _expression(gold: Expression, candidate: Form) -> bool:
    match candidate:
        case Expression():
            return gold.infinite == candidate.infinite and algebra.same(gold.value, candidate.value)
        case Relation(sign="=", variable=variable) if variable and variable not in gold.value.names:
            return _expression(gold, candidate.right)
        case Based(base=10):
            return candidate.digits.isdigit() and algebra.same(gold.value, algebra.number(int(candidate.digits)))
        case Words(text=text) if text in NUMERALS:
            return not gold.infinite and algebra.same(gold.value, algebra.number(NUMERALS[text]))
    return False


def _based(gold: Based, candidate: Form) -> bool:
    if isinstance(candidate, Relation) and candidate.sign == "=" and candidate.variable:
        return gold == candidate.right
    return gold == candidate


def _group(gold: Group, candidate: Form) -> bool:
    if isinstance(candidate, Relation):
        if gold.kind == "tuple" and candidate.sign in (r"\le", r"\ge", "<", ">"):
            return _ray(gold, candidate)
        named = candidate.sign == "=" or (candidate.sign == r"\in" and _holds_many(candidate.right))
        return named and bool(candidate.variable) and equal(gold, candidate.right)
    if not isinstance(candidate, Group):
        return False
    if gold.kind in ("list", "set"):
        return candidate.kind in ("list", "set") and _unordered(_bare(gold.items), _bare(candidate.items))
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


def _bare(items: Sequence[Form]) -> list[Form]:
    """``x = 1, x = 2`` without its variable, ``x = 1, 2`` too; one variable throughout."""
    named = {item.variable for item in items if isinstance(item, Relation) and item.sign == "="}
    if len(named) != 1 or not next(iter(named)):
        return list(items)
    return [item.right if isinstance(item, Relation) and item.sign == "=" else item for item in items]


def _unordered(gold: Sequence[Form], candidate: Sequence[Form]) -> bool:
    """Each of one has its own partner in the other."""
    left = list(candidate)
    for item in gold:
        partner = next((n for n, other in enumerate(left) if equal(item, other)), -1)
        if partner < 0:
            return False
        del left[partner]
    return not left


def _ray(gold: Group, candidate: Relation) -> bool:
    """An interval with one infinite end, as an inequality."""
    if len(gold.items) != 2 or not all(isinstance(item, Expression) for item in gold.items) or not candidate.variable:
        return False
    low, high = gold.items
    assert isinstance(low, Expression)  # noqa: S101 (checked above)
    assert isinstance(high, Expression)  # noqa: S101
    if low.infinite == -1 and not high.infinite:
        return candidate.sign == (r"\le" if gold.brackets[1] == "]" else "<") and equal(high, candidate.right)
    if high.infinite == 1 and not low.infinite:
        return candidate.sign == (r"\ge" if gold.brackets[0] == "[" else ">") and equal(low, candidate.right)
    return False


def _relation(gold: Relation, candidate: Form) -> bool:
    if isinstance(candidate, Relation):
        if gold.sign == "=" == candidate.sign:
            return _equation(gold, candidate)
        direct = gold.sign == candidate.sign and equal(gold.left, candidate.left) and equal(gold.right, candidate.right)
        turned = _TURNED.get(gold.sign) == candidate.sign
        return direct or (turned and equal(gold.left, candidate.right) and equal(gold.right, candidate.left))
    return gold.sign in ("=", r"\in") and bool(gold.variable) and equal(gold.right, candidate)


def _equation(gold: Relation, candidate: Relation) -> bool:
    """Both say the same: one difference of sides is a multiple of the other."""
    sides = (gold.left, gold.right, candidate.left, candidate.right)
    if all(isinstance(side, Expression) and not side.infinite for side in sides):
        differences = [
            algebra.add(left.value, algebra.negative(right.value))  # type: ignore[union-attr]
            for left, right in (sides[:2], sides[2:])
        ]
        return algebra.proportional(*differences)
    return gold.variable == candidate.variable and equal(gold.right, candidate.right)
