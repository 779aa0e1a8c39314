"""Functions of variables: one function in two forms, by cases or not; antiderivatives that differ by a constant."""

import itertools
import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from agent0.grading.comparison.systems import rows_of
from agent0.grading.math.algebra import Applied, Quotient, rational
from agent0.grading.math.cleaning import clean
from agent0.grading.math.points import NoValueError, Point, Value, is_real, near, value_at, variables
from agent0.grading.notation.names import value_of
from agent0.grading.notation.steps import spelled

LONGEST, FEWEST = 200, 5
"""Characters of an answer, and points at which both have real values."""
_REALS = (0.37, 1.618, -0.73, 2.917, -3.301, 5.093, 7.771, -6.127, 0.113, 11.39, -1.937, 3.467)
_WHOLES = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
_constant = re.compile(r"\s*\+\s*(?:C|c|K|k|\\text\s*\{\s*(?:C|const(?:ant)?\.?)\s*\}|C_1|C_\{1\})\s*$")
_foreign = re.compile(r"\^\s*\{?\s*(?:T|\\top)(?![a-z])|matrix|\\circ|°|mod|%|\\(?:vec|mathbf)(?![A-Za-z])|'")
_open = re.compile(
    r"sin|cos|tan|sec|csc|cot|ln|log|lg|exp|max|min|arc|sqrt|int|sum|prod|lim|vert|cases|\||\^|/\s*d|\bif\b|\\frac\s*\{\s*d"
)
"""What exact algebra may leave open."""
_extremes = re.compile(r"\\?(max|min)\s*(?:\\?\{|\()([^(){},]{1,40}),([^(){},]{1,40})(?:\\?\}|\))")
_if = re.compile(
    r"(?:.*?\b(?:is|equals|are)\s+)?(.+?)\s+(?:if|for|when)\s+(.+?)\s*(?:,\s*and|,|\band\b|;)\s*(.+?)\s+(?:(?:if|for"
    r"|when)\s+(.+?)|otherwise)\s*"
)
_name = re.compile(r"^\s*(?:[A-Za-z](?:_\{?\w+\}?)?(?:\([a-z](?:,\s*[a-z])?\))?|\\int[^=]*)\s*=\s*(?!=)")
_text = re.compile(r"\\(?:text|mathrm|textrm|mbox)\s*\{([^{}]*)\}")
_sign = re.compile(r"<=|>=|<|>|=|\\(?:le|ge|leq|geq|leqslant|geqslant|lt|gt|neq?)(?![A-Za-z])")
Test = Callable[[Point], bool]


class Function(NamedTuple):
    """Expressions and where each holds, in this order; the ``edges`` are values that conditions compare with."""

    cases: list[tuple[Quotient, Test]]
    names: set[str]
    edges: set[float]

    def real_at(self, point: Point) -> tuple[Value, int] | None:
        """The value at a point and which case it is, None where there is none, or none on the line and no ``i``."""
        try:
            case = next((n for n, (_, holds) in enumerate(self.cases) if holds(point)), None)
            value = None if case is None else value_at(self.cases[case][0], point)
        except NoValueError:
            return None
        is_beside = point and not (value is None or is_real(value) or "i" in self.cases[case or 0][0].names)
        return None if value is None or case is None or is_beside else (value, case)

    @property
    def is_open(self) -> bool:
        """Whether exact algebra leaves open what it is equal to."""
        return len(self.cases) > 1 or any(isinstance(base, Applied) for value, _ in self.cases for base in value.bases)


def same_function(gold: str, answer: str) -> bool | None:
    """Whether both are one function at each of some points, or of an antiderivative but for a constant. None where
    exact algebra leaves nothing open, and where values do not tell."""
    both = f"{gold} {answer}"
    if max(len(gold), len(answer)) > LONGEST or _foreign.search(both) or not _open.search(both):
        return None
    is_free = bool(_constant.search(gold))
    if is_free != bool(_constant.search(answer)) or clean(gold).unit != clean(answer).unit:
        return None
    expected, function = (_function(_constant.sub("", text)) for text in _unnamed(gold, answer))
    if expected is None or function is None or expected.names != function.names:
        return None
    if not (is_free or expected.is_open or function.is_open):
        return None
    is_whole = re.search(r"even|odd|\(-1\)\s*\^|\\sum|\\prod", gold + answer)
    return _agree(expected, function, _WHOLES if is_whole else _REALS, is_free)


def _agree(expected: Function, function: Function, numbers: tuple[float, ...], is_free: bool) -> bool | None:
    """Whether both have one value wherever one has any; ``is_free``: but for a constant. None where only one has a
    value, and where few points have one."""
    names, numbers = sorted(expected.names), (*numbers, *sorted(expected.edges | function.edges))
    pairs, cases = list[tuple[Value, Value]](), set[tuple[int, int]]()
    for n in range(len(numbers) if names else 1):
        point = {name: numbers[(n + 5 * k + n * k) % len(numbers)] for k, name in enumerate(names)}
        left, right = expected.real_at(point), function.real_at(point)
        if (left is None) != (right is None):
            return None
        if left is not None and right is not None:
            pairs.append((left[0], right[0]))
            cases.add((left[1], right[1]))
            shift = pairs[0][1] - pairs[0][0] if is_free else 0
            if not near(left[0] + shift, right[0]):
                return False
    is_matched = len(expected.cases) != len(function.cases) or len(cases) == len(expected.cases)
    return True if is_matched and len(pairs) >= (FEWEST if names else 1) else None


def _unnamed(gold: str, answer: str) -> tuple[str, str]:
    """Both without ``f(x) =`` before them; a name that either holds otherwise, or that differs, is none."""
    heads = [_name.match(text) for text in (gold, answer)]
    bodies = [text[head.end() if head else 0 :] for text, head in zip((gold, answer), heads, strict=True)]
    names = {re.sub(r"\W", "", head[0])[:1] for head in heads if head}
    is_used = any(re.search(rf"(?<![A-Za-z\\]){name}(?![A-Za-z])", body) for name in names for body in bodies)
    return (gold, answer) if is_used or len(names) > 1 else (bodies[0], bodies[1])


@lru_cache(maxsize=256)
def _function(text: str) -> Function | None:
    """The function that a text is, None where it cannot be read. Kept: one gold is compared with many answers."""
    text = text.strip(" .$")
    if rows := rows_of(text):
        return _by_cases([(row[0], row[1]) for row in rows]) if all(len(row) == 2 for row in rows) else None
    if match := _if.fullmatch(_text.sub(r" \1 ", text)):
        return _by_cases([(match[1], match[2]), (match[3], match[4] or "otherwise")])
    value = _quotient(text)
    return None if value is None else Function([(value, lambda point: True)], variables(value), set())


def _quotient(text: str) -> Quotient | None:
    text = _extremes.sub(
        lambda f: rf"\frac{{({f[2]})+({f[3]}){'+' if f[1] == 'max' else '-'}|({f[2]})-({f[3]})|}}{{2}}",
        text.replace("\\{", "{").replace("\\}", "}") if "max" in text or "min" in text else text,
    )
    text = re.sub(r"\\l?g(?![A-Za-z])", r"\\log_{10}", text)
    return value_of(spelled("", text)[1])


def _by_cases(rows: list[tuple[str, str]]) -> Function | None:
    whole = Function([], set(), set())
    for text, condition in rows:
        value, test = _quotient(text.strip(" ,.")), _test(condition)
        if value is None or test is None:
            return None
        whole.cases.append((value, test[0]))
        whole.names.update(variables(value), test[1])
        whole.edges.update(test[2])
    return whole


def _test(condition: str) -> tuple[Test, set[str], set[float]] | None:
    """(whether it holds at a point, its variables, values that it compares with)."""
    bare = " ".join(re.sub(r"\b(?:if|for|when|is)\b", " ", _text.sub(r" \1 ", condition)).split()).strip(" ,.$")
    if bare in ("otherwise", "else"):
        return (lambda point: True), set(), set()
    if match := re.fullmatch(r"([a-z]) (even|odd)", bare):
        return (lambda point: int(point[match[1]]) % 2 == (match[2] == "odd")), {match[1]}, set()
    signs = _sign.findall(bare)
    sides = [side for text in _sign.split(bare) if (side := _quotient(text))]
    if not 1 <= len(signs) <= 2 or len(sides) <= len(signs):
        return None

    def holds(point: Point) -> bool:
        numbers = [value_at(side, point).real for side in sides]
        return all(_compared(sign, *pair) for sign, pair in zip(signs, itertools.pairwise(numbers), strict=True))

    edges = {float(edge) for side in sides if (edge := rational(side)) is not None}
    return holds, {name for side in sides for name in variables(side)}, edges


def _compared(sign: str, left: Value, right: Value) -> bool:
    if sign.startswith(("<", r"\l")):
        return bool(left < right or (sign not in ("<", r"\lt") and left == right))
    if sign.startswith((">", r"\g")):
        return bool(left > right or (sign not in (">", r"\gt") and left == right))
    return bool((left == right) == (sign == "="))
