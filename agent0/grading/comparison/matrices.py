r"""Products that do not commute: letters for matrices are compared by putting matrices in their places, operators such
as ``\nabla`` by their text."""

import re
from fractions import Fraction
from itertools import product

LONGEST, DEEPEST, HIGHEST = 120, 8, 6
_operator = re.compile(r"\\(?:nabla|hat|dagger|otimes|partial(?!\s*[a-z]\s*[/}]))(?![A-Za-z])|\\circ\s*[a-z]|∇")
_letters = re.compile(r"[A-Z]")
_pair = re.compile(r"[A-Z][\s)]*(?:\^\s*\{?\s*(?:-?\s*\d+|T|\\top)\s*\}?)?[\s)]*(?:\\cdot|\\times|\*)?[\s(]*[A-Z]")
_fonts = re.compile(
    r"\\(?:mathbf|mathrm|boldsymbol|bm|mathit)\s*\{\s*([A-Z])\s*\}|\\(?:left|right)(?![A-Za-z])|\\[,;:! ]|[$~]"
)
_token = re.compile(
    r"\s*(?:(?P<number>\d+(?:/\d+)?)|(?P<letter>[A-Z])|(?P<power>\^\s*(?:\{\s*(?:-\s*1|\d|T|\\top)\s*\}|\d|T|\\top))"
    r"|(?P<times>\\cdot|\*)|(?P<sign>[-+()]))"
)
_gap = re.compile(r"\s+|\\[,;:! ]|\\(?:left|right|cdot)(?![A-Za-z])|[${}]|\\(?:mathbf|vec|boldsymbol|bm)(?![A-Za-z])")
Matrix = tuple[Fraction, Fraction, Fraction, Fraction]
_SEEDS = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)


class _UnreadableError(ValueError):
    """No sum of products of matrices."""


def same_products(gold: str, answer: str) -> bool | None:
    """Whether two products of capital letters are one for all matrices, or two texts with operators are one; None where
    the gold is neither."""
    if max(len(gold), len(answer)) > LONGEST:
        return None
    if _operator.search(gold):
        return True if _gap.sub("", gold) == _gap.sub("", answer) else False if _operator.search(answer) else None
    left, right = (_fonts.sub(lambda font: f" {font[1] or ''} ", text) for text in (gold, answer))
    if (
        not _pair.search(left)
        or len(set(_letters.findall(left))) < len("AB")
        or re.search(r"[a-z=<>|,]|\\times", re.sub(r"\\(?:cdot|top)", "", left))
    ):
        return _crossed(left, right)
    try:
        return all(_value(left, shift) == _value(right, shift) for shift in range(2))
    except (_UnreadableError, ZeroDivisionError):
        return None


def _crossed(gold: str, answer: str) -> bool | None:
    r"""``A \times B`` is no ``B \times A``."""
    sides = [re.split(r"\\times|×", text) for text in (gold, answer)]  # noqa: RUF001 (the sign as it is written)
    parts = [[part.strip() for part in side] for side in sides]
    named = all(len(side) == len("AB") and all(re.fullmatch(r"[A-Z]", part) for part in side) for side in parts)
    return parts[0] == parts[1] if named and parts[0][0] != parts[0][1] else None


def _value(text: str, shift: int) -> Matrix:
    tokens, position = [], 0
    while text[position:].strip():
        match = _token.match(text, position)
        if match is None:
            raise _UnreadableError
        tokens.append((str(match.lastgroup), match[0].strip()))
        position = match.end()
    value = _sum(tokens, shift, 0)
    if tokens:
        raise _UnreadableError
    return value


def _sum(tokens: list[tuple[str, str]], shift: int, depth: int) -> Matrix:
    if depth > DEEPEST:
        raise _UnreadableError
    total: Matrix = (Fraction(0),) * 4
    sign = 1
    while True:
        while tokens and tokens[0][1] in ("+", "-"):
            sign = -sign if tokens.pop(0)[1] == "-" else sign
        total = _added(total, _product(tokens, shift, depth), sign)
        if not tokens or tokens[0][1] not in ("+", "-"):
            return total
        sign = 1


def _product(tokens: list[tuple[str, str]], shift: int, depth: int) -> Matrix:
    value: Matrix = (Fraction(1), Fraction(0), Fraction(0), Fraction(1))
    count = 0
    while tokens and tokens[0][1] not in ("+", "-", ")"):
        if tokens[0][0] == "times" and count:
            tokens.pop(0)
        value, count = _multiplied(value, _factor(tokens, shift, depth)), count + 1
    if not count:
        raise _UnreadableError
    return value


def _factor(tokens: list[tuple[str, str]], shift: int, depth: int) -> Matrix:
    if not tokens:
        raise _UnreadableError
    kind, text = tokens.pop(0)
    if kind == "number":
        value: Matrix = (Fraction(text), Fraction(0), Fraction(0), Fraction(text))
    elif kind == "letter":
        value = _of_letter(text, shift)
    elif text == "(":
        value = _sum(tokens, shift, depth + 1)
        if not tokens or tokens.pop(0)[1] != ")":
            raise _UnreadableError
    else:
        raise _UnreadableError
    while tokens and tokens[0][0] == "power":
        value = _raised(value, re.sub(r"[\^{}\s]", "", tokens.pop(0)[1]))
    return value


def _of_letter(letter: str, shift: int) -> Matrix:
    """A matrix with an inverse, another one for each letter; the identity for I."""
    if letter == "I":
        return (Fraction(1), Fraction(0), Fraction(0), Fraction(1))
    n = ord(letter) - ord("A") + 7 * shift
    a, b, c, d = (Fraction(_SEEDS[(n * k + k) % len(_SEEDS)] + n * m) for k, m in ((1, 1), (3, 2), (7, 0), (9, 3)))
    return (a, b, c, d + 101 * n + 1)


def _raised(value: Matrix, power: str) -> Matrix:
    a, b, c, d = value
    if power in ("T", "\\top"):
        return (a, c, b, d)
    if power == "-1":
        determinant = a * d - b * c
        return (d / determinant, -b / determinant, -c / determinant, a / determinant)
    result: Matrix = (Fraction(1), Fraction(0), Fraction(0), Fraction(1))
    for _ in range(int(power)):
        result = _multiplied(result, value)
    return result


def _multiplied(left: Matrix, right: Matrix) -> Matrix:
    rows, columns = (left[:2], left[2:]), (right[::2], right[1::2])
    a, b, c, d = (row[0] * column[0] + row[1] * column[1] for row, column in product(rows, columns))
    return (a, b, c, d)


def _added(left: Matrix, right: Matrix, sign: int) -> Matrix:
    a, b, c, d = (x + sign * y for x, y in zip(left, right, strict=True))
    return (a, b, c, d)
