r"""Lists with dots: ``1, 2, \ldots, n`` is ``1, 2, 3, \ldots, n``, and no ``1, 3, \ldots, n``."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from agent0.grading.math import algebra
from agent0.grading.math.algebra import Quotient
from agent0.grading.notation.names import arguments, value_of

MOST = 1_000
"""Terms that are written out."""
_dots = re.compile(r"\\[lc]?dots(?![A-Za-z])|\\dots[bcmio](?![A-Za-z])|…|\.{3,}")
_integers = re.compile(r"\\mathbb\s*\{?\s*Z\s*\}?|(?:the set of )?(?:all )?(?:the )?integers", re.IGNORECASE)
_name = re.compile(r"^\s*[A-Za-z]\s*(?:=|\\in(?![A-Za-z]))\s*")
_outer = re.compile(r"\s*(\\?\{|\(|\[)(.*?)(\\?\}|\)|\])\s*\.?\s*", re.DOTALL)
_indexed = re.compile(r"\s*([A-Za-z])_\s*\{?\s*([^{}]+?)\s*\}?\s*")
_gap = re.compile(r"\\[ ,;:!]|[$~]|\\(?:left|right)(?![A-Za-z])")
Run = list[Quotient]


class Listed(NamedTuple):
    """Terms between dots; an empty run where dots begin or end the list. ``name`` is that of indexed terms."""

    brackets: str
    name: str
    runs: list[Run]


def same_endless(gold: str, answer: str) -> bool | None:
    """Whether both list the same terms, where one has dots: those that are written in both agree, and those that only
    one has go on as the other's do. None where none has dots, or something in them is no term."""
    if _integers.fullmatch(gold.strip()) and _dots.search(answer):
        gold = r"\{\ldots, 0, 1, \ldots\}"
    if "," not in gold or not (_dots.search(gold) or _dots.search(answer)):
        return None
    expected, listed = _listed(gold), _listed(answer)
    if expected is None or listed is None:
        return None
    return expected[:2] == listed[:2] and _agree(expected.runs, listed.runs)


def _listed(text: str) -> Listed | None:
    bare, brackets = _name.sub("", _gap.sub(" ", text)).strip(), ""
    if outer := _outer.fullmatch(bare):
        bare, brackets = outer[2], "" if "{" in outer[1] else outer[1]
    parts = [part.strip() for part in arguments(bare)]
    indices = [index for part in parts if (index := _indexed.fullmatch(part))]
    names = {index[1] for index in indices}
    is_indexed = len(names) == 1 and len(indices) == sum(not _dots.fullmatch(part) for part in parts)
    runs: list[Run] = [[]]
    for part in parts:
        if _dots.fullmatch(part):
            runs.append([])
            continue
        value = value_of(_indexed.sub(r"\2", part) if is_indexed else part)
        if value is None or len(parts) > MOST:
            return None
        runs[-1].append(value)
    return Listed(brackets, names.pop() if is_indexed else "", runs)


def _agree(left: Sequence[Run], right: Sequence[Run]) -> bool:
    if len(left) != len(right):
        return _equal(_written_out(left), _written_out(right))
    front, *others = zip(left, right, strict=True)
    if not front[0] and not front[1]:
        return bool(others) and _same_line(*others[0])
    if not _go_on(*front) or len(others) > 1:
        return False
    step = _steps(max(front, key=len))[:1]
    return all(bool(ends[0]) == bool(ends[1]) and _go_back(*ends, step) for ends in others)


def _equal(left: Run, right: Run) -> bool:
    return bool(left) and len(left) == len(right) and all(map(algebra.same, left, right))


def _steps(run: Run) -> Run:
    return [after - before for before, after in pairwise(run)]


def _is_steady(run: Run) -> bool:
    """Whether all of it are one value."""
    return all(algebra.same(value, run[0]) for value in run)


def _is_regular(run: Run) -> bool:
    """Whether a rule gives all of it: one step, one ratio, steps with one step, or inverses with one step."""
    if _is_steady(_steps(run)) or (len(run) > len("abc") and _is_steady(_steps(_steps(run)))):
        return True
    inverses = [algebra.inverse(term) for term in run if term.above]
    ratios = [after / before for before, after in pairwise(run) if before.above]
    return len(inverses) == len(run) and (_is_steady(ratios) or _is_steady(_steps(inverses)))


def _go_on(left: Run, right: Run) -> bool:
    """Whether the longer run begins with the shorter one and goes on as that does."""
    short, long = sorted((left, right), key=len)
    if not _equal(short, long[: len(short)]) or len(short) == len(long):
        return _equal(short, long)
    return _is_steady(_steps(long)) if _is_steady(_steps(short)) and len(short) > 1 else _is_regular(long)


def _go_back(left: Run, right: Run, step: Run) -> bool:
    """Whether the longer run ends with the shorter one, and comes there in ``step``."""
    short, long = sorted((left, right), key=len)
    extra = _steps(long[: len(long) - len(short) + 1])
    return (not long or _equal(short, long[-len(short) :])) and (not extra or (bool(step) and _is_steady(extra + step)))


def _written_out(runs: Sequence[Run]) -> Run:
    """All terms of a list that ends, where it has no dots or one step; none of others."""
    if len(runs) == 1:
        return runs[0]
    steps = _steps(runs[0])
    if len(runs) > len("ab") or not (steps and runs[1] and _is_steady(steps) and steps[0].above):
        return []
    count = algebra.whole((runs[1][-1] - runs[0][0]) / steps[0])
    if count is None or not len(runs[0]) <= count < MOST:
        return []
    terms = [runs[0][0] + steps[0] * algebra.number(n) for n in range(count + 1)]
    return terms if _equal(terms[-len(runs[1]) :], runs[1]) else []


def _same_line(left: Run, right: Run) -> bool:
    """Whether two lists without ends are steps of one line."""
    steps = _steps(left), _steps(right)
    if not all(steps) or not _is_steady(steps[0] + steps[1]) or not steps[0][0].above:
        return _equal(left, right)
    return algebra.whole((right[0] - left[0]) / steps[0][0]) is not None
