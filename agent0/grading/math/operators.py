r"""Sums, products, integrals, limits, derivatives and determinants as the values that they come to, where these are
exact: ``\sum_{k=1}^{10} k`` is 55. What is not computed stays as it is written."""

import re
from fractions import Fraction
from functools import reduce
from itertools import pairwise

from agent0.grading.math import algebra
from agent0.grading.math.algebra import Quotient, TooLargeError, UndefinedError
from agent0.grading.math.cleaning import clean
from agent0.grading.math.parser import FUNCTIONS, UnreadableError, read

MOST, MOST_TERMS, LARGEST_MATRIX, HIGHEST = 6, 300, 5, 12
_group = r"(?:\{((?:[^{}]|\{[^{}]*\})*)\}|(\\[a-z]+|[A-Za-z\d]))"
_series = re.compile(rf"\\(sum|prod)(?:\\limits)?\s*_\s*\{{\s*([a-z])\s*=\s*([^{{}}]+?)\s*\}}\s*\^\s*{_group}")
_integral = re.compile(rf"\\int(?:\\limits)?\s*_\s*{_group}\s*\^\s*{_group}")
_differential = re.compile(r"(?:\\[,;!: ]|\s)*(?:\\(?:mathrm|text)\s*\{\s*d\s*\}|d)\s*([a-z])(?![A-Za-z])")
_limit = re.compile(r"\\lim(?:\\limits)?\s*_\s*\{\s*([a-z])\s*(?:\\to|\\rightarrow)\s*([^{}]+?)\s*\}")
_derivative = re.compile(r"\\[dt]?frac\s*\{\s*d\s*\}\s*\{\s*d\s*([a-z])\s*\}")
_determinant = re.compile(
    r"\\det\s*(?:\\left)?\s*\(?\s*\\begin\s*\{[bp]?matrix\}(.*?)\\end\s*\{[bp]?matrix\}\s*(?:\\right)?\s*\)?"
    r"|\\begin\s*\{vmatrix\}(.*?)\\end\s*\{vmatrix\}|\|\s*\\begin\s*\{matrix\}(.*?)\\end\s*\{matrix\}\s*\|",
    re.DOTALL,
)
_compound = re.compile(
    r"(?:\\left)?\(\s*1\s*([+-])\s*(?:\\[dt]?frac\s*\{?\s*(\w+)\s*\}?\s*\{?\s*([a-z])\s*\}?|(\w+)\s*/\s*([a-z]))\s*(?:\\right)?\)\s*\^\s*\{?\s*(\d*)\s*([a-z])\s*\}?"
)
_letters = re.compile(r"(?<![A-Za-z\\])[A-Za-z]{2,3}(?![A-Za-z])")
_wanted = re.compile(r"\\(?:sum|prod|int|lim|det)(?![A-Za-z])|vmatrix|\|\s*\\begin|\{\s*d\s*\}\s*\{\s*d")


def evaluated(text: str) -> str:
    """Return ``text`` with the value in place of each operator that can be computed, the innermost first."""
    for _ in range(MOST if _wanted.search(text) else 0):
        for evaluate in (_determinants, _last_operator):
            try:
                shorter = evaluate(text)
            except (UnreadableError, TooLargeError, UndefinedError, ZeroDivisionError):
                shorter = text
            if shorter != text:
                break
        else:
            return text
        text = shorter
    return text


def _value(text: str) -> Quotient:
    return read(clean(text).text)


def _put(body: str, variable: str, value: str) -> Quotient:
    """The value of ``body`` where ``variable`` is ``value``."""
    spaced = _letters.sub(
        lambda run: run[0] if run[0] in FUNCTIONS or run[0] in ("pi", "ln") else " ".join(run[0]), body
    )
    return _value(re.sub(rf"(?<![A-Za-z\\]){variable}(?![A-Za-z])", f"({value})", spaced))


def _determinants(text: str) -> str:
    match = _determinant.search(text)
    if match is None:
        return text
    rows = [
        [_value(cell) for cell in row.split("&")]
        for row in re.split(r"\\\\", match[1] or match[2] or match[3])
        if row.strip()
    ]
    if len({len(rows), *map(len, rows)}) != 1 or len(rows) > LARGEST_MATRIX:
        return text
    return f"{text[: match.start()]} {written(_expanded(rows))} {text[match.end() :]}"


def _expanded(rows: list[list[Quotient]]) -> Quotient:
    """The determinant, along its first row."""
    if len(rows) == 1:
        return rows[0][0]
    total = algebra.number(0)
    for position, entry in enumerate(rows[0]):
        minor = _expanded([[*row[:position], *row[position + 1 :]] for row in rows[1:]])
        part = algebra.multiply(entry, minor)
        total = algebra.add(total, algebra.negative(part) if position % 2 else part)
    return total


def _last_operator(text: str) -> str:
    """``text`` with the value of the operator that stands last in it."""
    kinds = ((_series, _series_value), (_integral, _integral_value), (_limit, _limit_value), (_derivative, _slope))
    matches = [(match, value) for pattern, value in kinds for match in pattern.finditer(text)]
    if not matches:
        return text
    operator, value = max(matches, key=lambda pair: pair[0].start())
    end = _body_end(text, operator.end(), integral=operator.re is _integral)
    result = value(operator, text[operator.end() : end])
    return text if result is None else f"{text[: operator.start()]} {written(result)} {text[end:]}"


def _body_end(text: str, start: int, *, integral: bool) -> int:
    """Where the product ends that an operator stands before, or the differential of an integral."""
    if integral:
        match = _differential.search(text, start)
        return match.end() if match else start
    depth = 0
    for position in range(start, len(text)):
        letter = text[position]
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0 or (depth == 0 and letter in "+-=," and text[start:position].strip()):
            return position
    return len(text)


def _series_value(operator: re.Match[str], body: str) -> Quotient | None:
    variable, first, last = operator[2], _value(operator[3]), (operator[4] or operator[5]).strip()
    start = algebra.rational(first)
    if start is None or start.denominator != 1:
        return None
    if "infty" in last:
        return _geometric(operator[1], body, variable, int(start))
    end = _value(last)
    stop = algebra.rational(end)
    if stop is None:
        return _of_powers(body, variable, int(start), end) if operator[1] == "sum" else None
    if stop.denominator != 1 or not start <= stop < start + MOST_TERMS:
        return None
    terms = [_put(body, variable, str(n)) for n in range(int(start), int(stop) + 1)]
    return reduce(algebra.add if operator[1] == "sum" else algebra.multiply, terms)


def _geometric(kind: str, body: str, variable: str, start: int) -> Quotient | None:
    """The sum of all terms where each of the first eight is the same part of the one before it."""
    terms = [algebra.rational(_put(body, variable, str(n))) for n in range(start, start + 8)]
    values = [term for term in terms if term]
    if kind != "sum" or len(values) < len(terms):
        return None
    ratio = values[1] / values[0]
    steady = abs(ratio) < 1 and all(b == ratio * a for a, b in pairwise(values))
    return algebra.number(values[0] / (1 - ratio)) if steady else None


def _of_powers(body: str, variable: str, start: int, end: Quotient) -> Quotient | None:
    """The sum of a polynomial up to a letter, by Faulhaber's polynomials."""
    total = algebra.number(0)
    for power, factor in _polynomial(_value(body), variable).items():
        if power.denominator != 1 or not 0 <= power <= HIGHEST:
            return None
        upper = _power_sum(int(power), end)
        lower = algebra.number(sum(Fraction(n) ** int(power) for n in range(1, start)) if start > 0 else 0)
        if start < 1:
            lower = algebra.number(-sum(Fraction(n) ** int(power) for n in range(start, 1)))
        total = algebra.add(total, algebra.multiply(factor, algebra.add(upper, algebra.negative(lower))))
    return total


def _power_sum(power: int, end: Quotient) -> Quotient:
    """1^p + ... + n^p at ``end``, through its first values (Lagrange)."""
    values = [Fraction(0)]
    for n in range(1, power + 2):
        values.append(values[-1] + Fraction(n) ** power)
    total = algebra.number(0)
    for n, value in enumerate(values):
        part = algebra.number(value)
        for other in range(len(values)):
            if other != n:
                step = algebra.add(end, algebra.number(-other))
                part = algebra.multiply(part, algebra.multiply(step, algebra.number(Fraction(1, n - other))))
        total = algebra.add(total, part)
    return total


def _polynomial(value: Quotient, variable: str) -> dict[Fraction, Quotient]:
    """The coefficient of each power of ``variable``.

    Raises:
        UnreadableError: it is there in another way.
    """
    terms: dict[Fraction, Quotient] = {}
    below = Quotient(value.below, {algebra.ONE: Fraction(1)})
    if any(re.search(rf"(?<![A-Za-z]){variable}(?![A-Za-z])", base) for base in below.bases):
        raise UnreadableError("no polynomial")
    for monomial, factor in value.above.items():
        power, rest = Fraction(0), algebra.number(factor)
        for base, exponent in monomial:
            if base == variable:
                power = exponent
            elif re.search(rf"(?<![A-Za-z]){variable}(?![A-Za-z])", base):
                raise UnreadableError("no polynomial")
            else:
                rest = algebra.multiply(rest, Quotient({((base, exponent),): Fraction(1)}, {algebra.ONE: Fraction(1)}))
        part = algebra.multiply(rest, algebra.inverse(below))
        terms[power] = algebra.add(terms.get(power, algebra.number(0)), part)
    return terms


def _integral_value(operator: re.Match[str], body: str) -> Quotient | None:
    match = _differential.search(body)
    if match is None:
        return None
    low, high = (_value(operator[n] or operator[n + 1]) for n in (1, 3))
    total = algebra.number(0)
    for power, factor in _polynomial(_value(body[: match.start()] or "1"), match[1]).items():
        if power == -1:
            return None
        ends = [algebra.power(end, algebra.number(power + 1)) for end in (high, low)]
        part = algebra.multiply(factor, algebra.number(1 / (power + 1)))
        total = algebra.add(total, algebra.multiply(part, algebra.add(ends[0], algebra.negative(ends[1]))))
    return total


def _limit_value(operator: re.Match[str], body: str) -> Quotient | None:
    variable, target = operator[1], operator[2].replace(" ", "")
    if (match := _compound.fullmatch(body.strip())) and target.lstrip("+") == r"\infty":
        rate, names = match[2] or match[4], {match[3] or match[5], match[7]}
        exponent = f"{match[1].replace('+', '')}({rate})({match[6] or 1})"
        return algebra.power(algebra.symbol("e"), _value(exponent)) if names == {variable} else None
    if "infty" not in target:
        return _limit_at(body, variable, target.rstrip("+-^{}"))
    above, below = _as_polynomials(_value(body), variable)
    tops = [max((power for power, factor in terms.items() if factor.above), default=None) for terms in (above, below)]
    if tops[0] is None or tops[1] is None or tops[0] > tops[1]:
        return algebra.number(0) if tops[0] is None else None
    if tops[0] < tops[1]:
        return algebra.number(0)
    return algebra.multiply(above[tops[0]], algebra.inverse(below[tops[1]]))


def _as_polynomials(value: Quotient, variable: str) -> list[dict[Fraction, Quotient]]:
    """Both sides of a quotient by powers of ``variable``."""
    return [_polynomial(Quotient(terms, {algebra.ONE: Fraction(1)}), variable) for terms in (value.above, value.below)]


def _limit_at(body: str, variable: str, target: str) -> Quotient | None:
    """The value at ``target``; of a quotient of polynomials that are 0 there that of their derivatives (l'Hôpital)."""
    try:
        return _put(body, variable, target)
    except (UnreadableError, UndefinedError):
        above, below = _as_polynomials(_value(body), variable)
    position = _value(target)
    for _ in range(HIGHEST):
        values = [_at(terms, position) for terms in (above, below)]
        if values[1].above:
            return algebra.multiply(values[0], algebra.inverse(values[1]))
        if values[0].above:
            return None
        above, below = (
            {p - 1: algebra.multiply(c, algebra.number(p)) for p, c in terms.items() if p} for terms in (above, below)
        )
    return None


def _at(terms: dict[Fraction, Quotient], position: Quotient) -> Quotient:
    parts = [
        algebra.multiply(factor, algebra.power(position, algebra.number(power))) for power, factor in terms.items()
    ]
    return reduce(algebra.add, parts, algebra.number(0))


def _slope(operator: re.Match[str], body: str) -> Quotient:
    """The derivative of a polynomial."""
    variable = operator[1]
    total = algebra.number(0)
    for power, factor in _polynomial(_value(body), variable).items():
        if power:
            lowered = algebra.power(algebra.symbol(variable), algebra.number(power - 1))
            total = algebra.add(total, algebra.multiply(algebra.multiply(factor, algebra.number(power)), lowered))
    return total


def written(value: Quotient) -> str:
    """Return ``value`` as a text that is read as it.

    Raises:
        UnreadableError: it holds a function.
    """
    parts = [_written(terms) for terms in (value.above, value.below)]
    return f"({parts[0]})" if parts[1] == "1" else rf"\frac{{{parts[0]}}}{{{parts[1]}}}"


def _written(terms: algebra.Terms) -> str:
    out = []
    for monomial, factor in terms.items():
        bases = [f"{_base(base)}^{{{exponent}}}" for base, exponent in monomial]
        number = str(factor) if factor.denominator == 1 else rf"\frac{{{factor.numerator}}}{{{factor.denominator}}}"
        out.append(
            r" \cdot ".join([f"({number})" if factor != 1 or not bases else "", *bases]).removeprefix(r" \cdot ")
        )
    return " + ".join(out).replace("(1)", "1") or "0"


def _base(base: str) -> str:
    if not re.fullmatch(r"\d+|[A-Za-z](?:_\d+)?|pi|[a-z]{3,8}", base):
        raise UnreadableError("a function")
    return rf"\{base}" if len(base) > 1 and base.isalpha() else base if base.isalpha() else f"({base})"
