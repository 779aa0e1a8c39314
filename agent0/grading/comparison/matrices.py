r"""Products that do not commute: letters for matrices are compared by putting matrices in their places, operators such
as ``\nabla`` by their text."""

import re
from fractions import Fraction

from agent0.grading.math.cleaning import clean
from agent0.grading.math.lexer import Cursor, UnreadableError, tokens_of

LONGEST, DEEPEST = 120, 8
_operator = re.compile(r"\\(?:nabla|hat|dagger|otimes|partial(?!\s*[a-z]\s*[/}]))(?![A-Za-z])|\\circ\s*[a-z]|∇")
_pair = re.compile(r"[A-Z][\s)]*(?:\^\s*\{?\s*(?:-?\s*\d+|T|\\top)\s*\}?)?[\s)]*(?:\\cdot|\\times|\*)?[\s(]*[A-Z]")
_gap = re.compile(r"\s+|\\[,;:! ]|\\(?:left|right|cdot)(?![A-Za-z])|[${}]|\\(?:mathbf|vec|boldsymbol|bm)(?![A-Za-z])")
_SEEDS = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
Matrix = tuple[Fraction, ...]
"""Of two rows, one after the other."""
_ZERO, _IDENTITY = (tuple(map(Fraction, entries)) for entries in ((0, 0, 0, 0), (1, 0, 0, 1)))


def same_products(gold: str, answer: str) -> bool | None:
    """Whether two products of capital letters are one for all matrices, or two texts with operators are one; None where
    the gold is neither."""
    if max(len(gold), len(answer)) > LONGEST:
        return None
    if _operator.search(gold):
        return True if _gap.sub("", gold) == _gap.sub("", answer) else False if _operator.search(answer) else None
    if clean(gold).unit or clean(answer).unit:
        return None
    left, right = clean(gold).text, clean(answer).text
    is_product = _pair.search(left) and len(set(re.findall(r"[A-Z]", left))) > 1
    if not is_product or re.search(r"[a-z=<>|,]|\\times", re.sub(r"\\(?:cdot|top)", "", left)):
        return _crossed(left, right)
    try:
        return all(_Products(left, shift).whole() == _Products(right, shift).whole() for shift in range(2))
    except (UnreadableError, ZeroDivisionError):
        return None


def _crossed(gold: str, answer: str) -> bool | None:
    r"""``A \times B`` is no ``B \times A``."""
    pairs = [re.fullmatch(r"\s*([A-Z])\s*\\times\s*([A-Z])\s*", text) for text in (gold, answer)]
    if not (pairs[0] and pairs[1]) or pairs[0][1] == pairs[0][2]:
        return None
    return pairs[0].groups() == pairs[1].groups()


class _Products(Cursor):
    """Reads a sum of products as one matrix, with another one for each letter by ``shift``."""

    def __init__(self, text: str, shift: int) -> None:
        super().__init__(tokens_of(text, None))
        self.shift = shift

    def whole(self) -> Matrix:
        """The value of all of the text."""
        value = self._sum(0)
        if self.peek()[0] != "end":
            raise UnreadableError("something follows")
        return value

    def _sum(self, depth: int) -> Matrix:
        total, sign = _ZERO, 1
        while True:
            while lexeme := self.accept("+", "-"):
                sign = -sign if lexeme == "-" else sign
            total = tuple(entry + sign * term for entry, term in zip(total, self._product(depth), strict=True))
            if self.peek()[1] not in ("+", "-"):
                return total
            sign = 1

    def _product(self, depth: int) -> Matrix:
        value = self._factor(depth)
        while self.peek()[0] in ("letter", "number") or self.peek()[1] in ("(", "cdot", "*"):
            self.accept("cdot", "*")
            value = _multiplied(value, self._factor(depth))
        return value

    def _factor(self, depth: int) -> Matrix:
        kind, lexeme = self.take()
        if depth > DEEPEST or not (kind in ("number", "letter") or lexeme == "("):
            raise UnreadableError("no product of matrices")
        if lexeme == "(":
            value = self._sum(depth + 1)
            self.expect(")")
        else:
            value = self._scaled(lexeme) if kind == "number" else _of_letter(lexeme, self.shift)
        while self.accept("^"):
            value = _raised(value, self._exponent())
        return value

    def _scaled(self, figures: str) -> Matrix:
        below = self.take()[1] if self.accept("/") else "1"
        if not below.isdigit():
            raise UnreadableError("no number")
        return tuple(entry * Fraction(figures) / int(below) for entry in _IDENTITY)

    def _exponent(self) -> str:
        inside = self.accept("{") and "}"
        exponent = self.accept("-") + self.take()[1]
        if inside:
            self.expect("}")
        if exponent not in ("-1", "T", "top", *"0123456789"):
            raise UnreadableError("no power of a matrix")
        return exponent


def _of_letter(letter: str, shift: int) -> Matrix:
    """A matrix with an inverse, another one for each letter; the identity for I."""
    if not letter.isupper():
        raise UnreadableError("no matrix")
    n = ord(letter) - ord("A") + 7 * shift
    a, b, c, d = (Fraction(_SEEDS[(n * k + k) % len(_SEEDS)] + n * m) for k, m in ((1, 1), (3, 2), (7, 0), (9, 3)))
    return _IDENTITY if letter == "I" else (a, b, c, d + 101 * n + 1)


def _raised(value: Matrix, exponent: str) -> Matrix:
    a, b, c, d = value
    if exponent in ("T", "top"):
        return (a, c, b, d)
    if exponent == "-1":
        return tuple(entry / (a * d - b * c) for entry in (d, -b, -c, a))
    result = _IDENTITY
    for _ in range(int(exponent)):
        result = _multiplied(result, value)
    return result


def _multiplied(left: Matrix, right: Matrix) -> Matrix:
    (a, b, c, d), (e, f, g, h) = left, right
    return (a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h)
