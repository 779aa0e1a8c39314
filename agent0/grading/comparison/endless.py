r"""Lists with dots: ``1, 2, \ldots, n`` is ``1, 2, 3, \ldots, n``, and no ``1, 3, \ldots, n``."""

import re
from collections.abc import Sequence
from itertools import pairwise

from agent0.grading.math import algebra
from agent0.grading.math.algebra import Quotient
from agent0.grading.notation.names import arguments, value_of

MOST = 1_000
"""Terms that are written out."""
_dots = re.compile(r"\\[lc]?dots(?![A-Za-z])|\\dots[bcmio](?![A-Za-z])|…|\.{3,}")
_name = re.compile(r"^\s*[A-Za-z]\s*(?:=|\\in(?![A-Za-z]))\s*")
_outer = re.compile(r"\s*(\\?\{|\(|\[|\\left\\\{)(.*?)(\\right\\\}|\\?\}|\)|\])\s*\.?\s*", re.DOTALL)
_indexed = re.compile(r"\s*([A-Za-z])_\s*\{?\s*([^{}]+?)\s*\}?\s*")
_gap = re.compile(r"\\[ ,;:!]|[$~]|\\(?:left|right)(?![A-Za-z])")
Run = list[Quotient]


def same_endless(gold: str, answer: str) -> bool | None:
    """Whether both list the same terms, where one has dots: those that are written in both agree, and those that only
    one has go on as the other's do. None where none has dots, or something in them is no term."""
    if not (_dots.search(gold) and ("," in gold)) and not (_dots.search(answer) and "," in gold):
        return None
    expected, listed = _listed(gold), _listed(answer)
    if expected is None or listed is None:
        return None if "".join(gold.split()) != "".join(answer.split()) else True
    if expected[0] != listed[0] or expected[1] != listed[1]:
        return False
    return _agree(expected[2], listed[2])


def _listed(text: str) -> tuple[str, str, list[Run]] | None:
    """(brackets, name of indexed terms, runs of terms between dots; an empty run where the dots go on)."""
    bare, brackets = (
        _name.sub("", _gap.sub(" ", text).strip(" .") if not text.rstrip().endswith("...") else _gap.sub(" ", text)),
        "",
    )
    if (outer := _outer.fullmatch(bare)) and _dots.sub("", outer[2]).count("(") == outer[2].count(")"):
        bare, brackets = outer[2], "" if "{" in outer[1] else outer[1]
    parts = [part.strip() for part in arguments(bare)]
    indices = [_indexed.fullmatch(part) for part in parts]
    names = {index[1] for index in indices if index}
    is_indexed = len(names) == 1 and all(
        index or _dots.fullmatch(part) for index, part in zip(indices, parts, strict=True)
    )
    if is_indexed:
        parts = [index[2] if index else part for index, part in zip(indices, parts, strict=True)]
    runs: list[Run] = [[]]
    for part in parts:
        if _dots.fullmatch(part):
            runs.append([])
            continue
        value = value_of(part) if part else None
        if value is None or len(parts) > MOST:
            return None
        runs[-1].append(value)
    return brackets, names.pop() if is_indexed else "", runs


def _agree(left: Sequence[Run], right: Sequence[Run]) -> bool:
    if len(left) == len(right) == len("abc") and not (left[0] or left[2] or right[0] or right[2]):
        return _same_line(left[1], right[1])
    if len(left) != len(right):
        whole = [run for runs in (left, right) for run in ([runs[0]] if len(runs) == 1 else [_written_out(runs)])]
        return None not in whole and _equal_runs(whole[0] or [], whole[1] or [])
    if len(left) != len("ab"):
        return len(left) == 1 and _equal_runs(left[0], right[0])
    if bool(left[1]) != bool(right[1]):
        return False
    return _goes_on(left[0], right[0]) and _goes_on(
        left[1][::-1], right[1][::-1], left[0] if len(left[0]) > 1 else right[0]
    )


def _equal_runs(left: Run, right: Run) -> bool:
    return len(left) == len(right) and all(map(algebra.same, left, right))


def _goes_on(left: Run, right: Run, front: Run | None = None) -> bool:
    """Whether the longer run begins with the shorter one and goes on as it does; ``front``: as that run does, back."""
    short, long = sorted((left, right), key=len)
    if not _equal_runs(short, long[: len(short)]):
        return False
    if len(short) == len(long):
        return bool(short) or front is not None
    if front is not None:
        step = _difference(front[1], front[0]) if len(front) > 1 else None
        extra = pairwise(long[len(short) - 1 :]) if short else ()
        return step is not None and bool(short) and all(algebra.same(_difference(a, b), step) for a, b in extra)
    if _is_arithmetic(short):
        return len(short) > 1 and _is_arithmetic(long)
    return any(rule(long) for rule in (_is_geometric, _is_quadratic, _is_harmonic))


def _difference(left: Quotient, right: Quotient) -> Quotient:
    return algebra.add(left, algebra.negative(right))


def _is_arithmetic(run: Run) -> bool:
    steps = [_difference(b, a) for a, b in pairwise(run)]
    return all(algebra.same(step, steps[0]) for step in steps)


def _is_geometric(run: Run) -> bool:
    return all(term.above for term in run) and all(
        algebra.same(algebra.multiply(b, b), algebra.multiply(a, c))
        for a, b, c in zip(run, run[1:], run[2:], strict=False)
    )


def _is_quadratic(run: Run) -> bool:
    steps = [_difference(b, a) for a, b in pairwise(run)]
    return len(run) > len("abc") and _is_arithmetic(steps)


def _is_harmonic(run: Run) -> bool:
    return all(term.above for term in run) and _is_arithmetic([algebra.inverse(term) for term in run])


def _written_out(runs: Sequence[Run]) -> Run | None:
    """All terms of an arithmetic list of numbers that ends."""
    if len(runs) != len("ab") or len(runs[0]) < len("ab") or not runs[1] or not _is_arithmetic(runs[0]):
        return None
    start, step, last = runs[0][0], _difference(runs[0][1], runs[0][0]), runs[1][-1]
    count = (
        None if not step.above else algebra.rational(algebra.multiply(_difference(last, start), algebra.inverse(step)))
    )
    if count is None or count.denominator != 1 or not len(runs[0]) <= count < MOST:
        return None
    terms = [algebra.add(start, algebra.multiply(step, algebra.number(n))) for n in range(int(count) + 1)]
    return terms if _equal_runs(terms[-len(runs[1]) :], runs[1]) else None


def _same_line(left: Run, right: Run) -> bool:
    """Whether two lists without ends are steps of one line."""
    if min(len(left), len(right)) < len("ab") or not (_is_arithmetic(left) and _is_arithmetic(right)):
        return _equal_runs(left, right)
    step = _difference(left[1], left[0])
    away = (
        algebra.rational(algebra.multiply(_difference(right[0], left[0]), algebra.inverse(step)))
        if step.above
        else None
    )
    return algebra.same(_difference(right[1], right[0]), step) and away is not None and away.denominator == 1
