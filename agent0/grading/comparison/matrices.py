r"""Products that do not commute: letters for matrices are compared by putting matrices in their places, operators such
as ``\nabla`` by their text."""

import hashlib
import re

from agent0.grading.math.cleaning import clean
from agent0.grading.math.lexer import Cursor, UnreadableError, tokens_of

LONGEST, DEEPEST, PRIME = 120, 8, 2**61 - 1
"""Characters of an answer, its levels, and of what the entries of matrices are remainders."""
_operator = re.compile(r"\\(?:nabla|hat|dagger|otimes|partial(?!\s*[a-z]\s*[/}]))(?![A-Za-z])|\\circ\s*[a-z]|∇")
_pair = re.compile(r"[A-Z][\s)]*(?:\^\s*\{?\s*(?:-?\s*\d+|T|\\top)\s*\}?)?[\s)]*(?:\\cdot|\\times|\*)?[\s(]*[A-Z]")
_crossed = re.compile(r"\s*([A-Z])\s*\\times\s*([A-Z])\s*")
_no_product = re.compile(r"[a-z=<>|,]|\\times")
_gap = re.compile(r"\s+|\\[,;:! ]|\\(?:left|right|cdot)(?![A-Za-z])|[${}]|\\(?:mathbf|vec|boldsymbol|bm)(?![A-Za-z])")
Matrix = tuple[int, int, int, int]
"""Of two rows, one after the other."""
_IDENTITY: Matrix = (1, 0, 0, 1)


def same_products(gold: str, answer: str) -> bool | None:
    """Whether two products of capital letters are one for all matrices, or two texts with operators are one; None where
    the gold is neither."""
    if max(len(gold), len(answer)) > LONGEST:
        return None
    if _operator.search(gold):
        return True if _gap.sub("", gold) == _gap.sub("", answer) else False if _operator.search(answer) else None
    if (crossed := _crossed.fullmatch(gold)) and (others := _crossed.fullmatch(answer)):
        return crossed.groups() == others.groups()
    left, right = clean(gold), clean(answer)
    is_product = _pair.search(left.text) and len(set(re.findall(r"[A-Z]", left.text))) > 1
    if not is_product or left.unit or right.unit or _no_product.search(re.sub(r"\\(?:cdot|top)", "", left.text)):
        return None
    try:
        return _Products(left.text).whole() == _Products(right.text).whole()
    except (UnreadableError, ValueError):
        return None


class _Products(Cursor):
    """Reads a sum of products as one matrix, with another one for each letter."""

    def __init__(self, text: str) -> None:
        super().__init__(tokens_of(text, None))

    def whole(self) -> Matrix:
        """The value of all of the text."""
        value = self._sum(0)
        if self.peek()[0] != "end":
            raise UnreadableError("something follows")
        return value

    def _sum(self, depth: int) -> Matrix:
        total: Matrix = (0, 0, 0, 0)
        while True:
            sign = -1 if self.accept("+", "-") == "-" else 1
            total = _times((sign, 0, 0, sign), self._product(depth), total)
            if self.peek()[1] not in ("+", "-"):
                return total

    def _product(self, depth: int) -> Matrix:
        value = self._factor(depth)
        while self.peek()[0] in ("letter", "number") or self.peek()[1] in ("(", "cdot", "*"):
            self.accept("cdot", "*")
            value = _times(value, self._factor(depth))
        return value

    def _factor(self, depth: int) -> Matrix:
        kind, lexeme = self.take()
        if depth > DEEPEST or not (lexeme.isdigit() or lexeme == "(" or (kind == "letter" and lexeme.isupper())):
            raise UnreadableError("no product of matrices")
        if lexeme == "(":
            value = self._sum(depth + 1)
            self.expect(")")
        else:
            value = (int(lexeme), 0, 0, int(lexeme)) if kind == "number" else _of_letter(lexeme)
        while self.accept("^"):
            value = self._raised(value)
        return value

    def _raised(self, value: Matrix) -> Matrix:
        is_braced = self.accept("{")
        exponent = self.accept("-") + self.take()[1]
        if is_braced:
            self.expect("}")
        a, b, c, d = value
        if exponent in ("T", "top"):
            return (a, c, b, d)
        if exponent == "-1":
            inverse = pow(a * d - b * c, -1, PRIME)
            return _times((inverse, 0, 0, inverse), (d, -b, -c, a))
        if not re.fullmatch(r"\d", exponent):
            raise UnreadableError("no power of a matrix")
        result = _IDENTITY
        for _ in range(int(exponent)):
            result = _times(result, value)
        return result


def _of_letter(letter: str) -> Matrix:
    """A matrix with an inverse, another one for each letter; the identity for I."""
    entries = hashlib.sha256(letter.encode()).digest()
    a, b, c, d = (int.from_bytes(entries[n : n + 7]) for n in (0, 7, 14, 21))
    return _IDENTITY if letter == "I" else (a, b, c, d)


def _times(left: Matrix, right: Matrix, more: Matrix = (0, 0, 0, 0)) -> Matrix:
    """The product, and ``more`` added to it."""
    (a, b, c, d), (e, f, g, h), (i, j, k, m) = left, right, more
    return (
        (a * e + b * g + i) % PRIME,
        (a * f + b * h + j) % PRIME,
        (c * e + d * g + k) % PRIME,
        (c * f + d * h + m) % PRIME,
    )
