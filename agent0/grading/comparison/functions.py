"""Functions of variables: one function in two forms, by cases or not; antiderivatives that differ by a constant."""

import itertools
import re
from collections.abc import Callable
from functools import partial

from agent0.grading.comparison.piecewise import rows_of
from agent0.grading.math.algebra import Quotient
from agent0.grading.math.cleaning import clean
from agent0.grading.math.sampling import NoValueError, Sample, near, sample_at, value_at, variables
from agent0.grading.notation.names import value_of
from agent0.grading.notation.steps import spelled

LONGEST, FEWEST = 200, 5
"""Characters of an answer, and points at which both have real values."""
_REALS = (0.37, 1.618, -0.73, 2.917, -3.301, 5.093, 7.771, -6.127, 0.113, 11.39, -1.937, 3.467)
_WHOLES = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
_decimal = re.compile(r"\d*\.\d+|\d{7,}")
_constant = re.compile(r"\s*\+\s*(?:C|c|K|k|\\text\s*\{\s*(?:C|const(?:ant)?\.?)\s*\}|C_1|C_\{1\})\s*$")
_foreign = re.compile(
    r"\^\s*\{?\s*(?:T|\\top)(?![a-z])|matrix|\\circ|°|mod|%|\\(?:sum|prod|int|lim|vec|mathbf)(?![A-Za-z])|'"
)
_needed = re.compile(
    r"sin|cos|tan|sec|csc|cot|ln|log|lg|exp|e\s*\^|\||vert|cases|max|min|\bif\b|arc|\)\s*\^|\(-1\)|sqrt|cis"
)
_several_valued = re.compile(r"\\?log(?!_)|arc|\^\s*\{?\s*-\s*1|N_|[A-Z]")
_beyond = re.compile(r"\||vert|cases|max|min|\bif\b")
_extremes = re.compile(r"\\?(max|min)\s*(?:\\?\{|\()([^(){},]{1,40}),([^(){},]{1,40})(?:\\?\}|\))")
_if = re.compile(
    r"(?:.*?\b(?:is|equals|are)\s+)?(.+?)\s+(?:if|for|when)\s+(.+?)\s*(?:,\s*and|,|\band\b|;)\s*(.+?)\s+(?:(?:if|for"
    r"|when)\s+(.+?)|otherwise)\s*"
)
_name = re.compile(r"^\s*(?:[A-Za-z](?:_\{?\w+\}?)?(?:\([a-z](?:,\s*[a-z])?\))?|\\int[^=]*)\s*=\s*(?!=)")
_text = re.compile(r"\\(?:text|mathrm|textrm|mbox)\s*\{([^{}]*)\}")
_sign = re.compile(r"<=|>=|<|>|=|\\(?:le|ge|leq|geq|leqslant|geqslant|lt|gt|neq?)(?![A-Za-z])")
Value = Callable[[dict[str, float]], Sample]


def same_functions(gold: str, answer: str, engine: bool = False) -> bool:
    """Whether both are one function at each of some points, or of an antiderivative but for a constant. Only what has
    functions, cases or absolute values is looked at, and no decimal; where a symbolic ``engine`` will be
    asked, only what it does not know."""
    both = f"{gold} {answer}"
    if max(len(gold), len(answer)) > LONGEST or _decimal.search(both) or _foreign.search(both):
        return False
    if not (_beyond if engine else _needed).search(both) and not _constant.search(gold):
        return False
    if clean(gold).unit != clean(answer).unit:
        return False
    free = bool(_constant.search(gold))
    if free != bool(_constant.search(answer)):
        return False
    expected, function = (_function(_constant.sub("", text)) for text in _unnamed(gold, answer))
    if expected is None or function is None or expected[1] != function[1]:
        return False
    whole = bool(re.search(r"even|odd|\(-1\)\s*\^", gold + answer))
    pairs = _pairs(expected[0], function[0], sorted(expected[1]), whole)
    if pairs is None or len(pairs) < (FEWEST if expected[1] else 1):
        return False
    shift = pairs[0][1].value - pairs[0][0].value if free else 0
    return all(near(left.value + shift, right.value, left.scale + right.scale + abs(shift)) for left, right in pairs)


def _unnamed(gold: str, answer: str) -> tuple[str, str]:
    """Both without ``f(x) =`` before them; a name that the other one holds is none."""
    heads = [_name.match(text) for text in (gold, answer)]
    names = [re.sub(r"\W", "", head[0])[:1] if head else "" for head in heads]
    kept = any(
        head and re.search(rf"(?<![A-Za-z\\]){name}(?![A-Za-z])", text[head.end() if head is mine else 0 :])
        for head, name in zip(heads, names, strict=True)
        for text, mine in zip((gold, answer), heads, strict=True)
    )
    if kept or (all(names) and names[0] != names[1]):
        return gold, answer
    return _name.sub("", gold), _name.sub("", answer)


def _pairs(expected: Value, function: Value, names: list[str], whole: bool) -> list[tuple[Sample, Sample]] | None:
    """Both at each point where both have a real value; None where only one has."""
    pairs = []
    for n in range(len(_REALS)) if names else (0,):
        points = _WHOLES if whole else _REALS
        point = {name: points[(n + 5 * shift + n * shift) % len(points)] for shift, name in enumerate(names)}
        values = [_real(value, point, bool(names)) for value in (expected, function)]
        if (values[0] is None) != (values[1] is None):
            return None
        if values[0] is not None and values[1] is not None:
            pairs.append((values[0], values[1]))
    return pairs


def _real(function: Value, point: dict[str, float], real: bool) -> Sample | None:
    try:
        sample = function(point)
    except (NoValueError, ArithmeticError, ValueError):
        return None
    value = sample.value
    return None if value != value or (real and abs(value.imag) > 1e-9 * max(abs(value), sample.scale)) else sample


def surely_differ(gold: str, answer: str) -> bool:
    """Whether two expressions that exact algebra leaves open have different values at some point."""
    if (
        max(len(gold), len(answer)) > LONGEST
        or _foreign.search(f"{gold} {answer}")
        or _several_valued.search(gold + answer)
    ):
        return False
    expected, function = (_function(text) for text in (gold, answer))
    if expected is None or function is None:
        return False
    names = sorted(expected[1] | function[1])
    pairs = _pairs(expected[0], function[0], names, whole=False) or []
    different = [pair for pair in pairs if not near(pair[0].value, pair[1].value, pair[0].scale + pair[1].scale)]
    return len(different) >= (FEWEST if names else 1)


def _function(text: str) -> tuple[Value, set[str]] | None:
    """(its value at a point, its variables); None where it cannot be read."""
    text = text.strip(" .$")
    if block := rows_of(text):
        return _by_cases([(row[0], row[1]) for row in block[1]]) if all(len(row) == 2 for row in block[1]) else None
    if match := _if.fullmatch(_text.sub(r" \1 ", text)):
        return _by_cases([(match[1], match[2]), (match[3], match[4] or "otherwise")])
    value = _quotient(text)
    return None if value is None else (partial(sample_at, value), variables(value))


def _quotient(text: str) -> Quotient | None:
    text = _extremes.sub(
        lambda f: rf"\frac{{({f[2]})+({f[3]}){'+' if f[1] == 'max' else '-'}|({f[2]})-({f[3]})|}}{{2}}",
        text.replace("\\{", "{").replace("\\}", "}") if "max" in text or "min" in text else text,
    )
    text = re.sub(r"\\l?g(?![A-Za-z])", r"\\log_{10}", text)
    return value_of(spelled("", text)[1])


def _by_cases(rows: list[tuple[str, str]]) -> tuple[Value, set[str]] | None:
    values = [_quotient(value.strip(" ,.")) for value, _ in rows]
    tests = [_test(condition) for _, condition in rows]
    if not rows or None in values or None in tests:
        return None
    names = {name for value in values if value for name in variables(value)} | {
        name for test in tests if test for name in test[1]
    }
    pairs = [(value, test[0]) for value, test in zip(values, tests, strict=True) if value and test]

    def value_of_cases(point: dict[str, float]) -> Sample:
        chosen = next((value for value, holds in pairs if holds(point)), None)
        if chosen is None:
            raise NoValueError("no case")
        return sample_at(chosen, point)

    return value_of_cases, names


def _test(condition: str) -> tuple[Callable[[dict[str, float]], bool], set[str]] | None:
    """(whether it holds at a point, its variables)."""
    bare = " ".join(re.sub(r"\b(?:if|for|when|is)\b", " ", _text.sub(r" \1 ", condition)).split()).strip(" ,.$")
    if bare in ("otherwise", "else"):
        return (lambda point: True), set()
    if match := re.fullmatch(r"([a-z]) (even|odd)", bare):
        return (lambda point: int(point[match[1]]) % 2 == (match[2] == "odd")), {match[1]}
    signs = _sign.findall(bare)
    sides = [_quotient(side) for side in _sign.split(bare)]
    if not 1 <= len(signs) <= 2 or None in sides:
        return None

    def holds(point: dict[str, float]) -> bool:
        numbers = [value_at(side, point).real for side in sides if side]
        return all(_compared(sign, *pair) for sign, pair in zip(signs, itertools.pairwise(numbers), strict=True))

    return holds, {name for side in sides if side for name in variables(side)}


def _compared(sign: str, left: float, right: float) -> bool:
    if sign.startswith(("<", r"\l")):
        return left < right or (sign not in ("<", r"\lt") and left == right)
    if sign.startswith((">", r"\g")):
        return left > right or (sign not in (">", r"\gt") and left == right)
    return (left == right) == (sign == "=")
