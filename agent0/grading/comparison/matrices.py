r"""Products that do not commute: letters for matrices are compared by putting matrices in their places, operators such
as ``\nabla`` by their text."""

import ast
import hashlib
import re
from functools import reduce

from agent0.grading.comparison.syntax import parsed
from agent0.grading.math.cleaning import clean
from agent0.grading.math.lexer import UnreadableError, tokens_of

LONGEST, PRIME = 120, 2**61 - 1
"""Characters of an answer, and of what the entries of matrices are remainders."""
_operator = re.compile(r"\\(?:nabla|hat|dagger|otimes|partial(?!\s*[a-z]\s*[/}]))(?![A-Za-z])|\\circ\s*[a-z]|∇")
_pair = re.compile(r"[A-Z][\s)]*(?:\^\s*\{?\s*(?:-?\s*\d+|T|\\top)\s*\}?)?[\s)]*(?:\\cdot|\\times|\*)?[\s(]*[A-Z]")
_crossed = re.compile(r"\s*([A-Z])\s*\\times\s*([A-Z])\s*")
_no_product = re.compile(r"[a-z=<>|,]|\\times")
_gap = re.compile(r"\s+|[${}]|\\[,;:! ]|\\(?:left|right|mathbf|vec|boldsymbol|bm|(?<!bla.)(?<!bla .)cdot)(?![A-Za-z])")
Matrix = tuple[int, int, int, int]
"""Of two rows, one after the other."""
_PYTHON = {"{": "(", "}": ")", "^": "**", "cdot": "*", "top": "T"}
_beside = re.compile(r"(?<=[\w)]) (?=[\w(])")


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
        return _matrix(_product(left.text)) == _matrix(_product(right.text))
    except (UnreadableError, ValueError):
        return None


def _product(text: str) -> ast.expr:
    """The tree of a sum of products."""
    return parsed(_beside.sub("*", " ".join(_PYTHON.get(lexeme, lexeme) for _, lexeme in tokens_of(text, None))))


def _matrix(node: ast.expr) -> Matrix:
    """One matrix, with another one for each letter."""
    match node:
        case ast.Name(id=letter) if letter.isupper() and len(letter) == 1:
            return _of_letter(letter)
        case ast.Constant(value=int(number)):
            return (number, 0, 0, number)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _times((-1, 0, 0, -1), _matrix(inner))
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=right):
            factor = -1 if isinstance(sign, ast.Sub) else 1
            return _times((factor, 0, 0, factor), _matrix(right), _matrix(left))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _times(_matrix(left), _matrix(right))
        case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
            return _raised(_matrix(base), ast.unparse(exponent))
    raise UnreadableError("no product of matrices")


def _raised(value: Matrix, exponent: str) -> Matrix:
    a, b, c, d = value
    if exponent == "T":
        return (a, c, b, d)
    if exponent == "-1":
        inverse = pow(a * d - b * c, -1, PRIME)
        return _times((inverse, 0, 0, inverse), (d, -b, -c, a))
    if not re.fullmatch(r"\d", exponent):
        raise UnreadableError("no power of a matrix")
    return reduce(_times, [value] * int(exponent), (1, 0, 0, 1))


def _of_letter(letter: str) -> Matrix:
    """A matrix with an inverse, another one for each letter; the identity for I."""
    entries = hashlib.sha256(letter.encode()).digest()
    a, b, c, d = (int.from_bytes(entries[n : n + 7]) for n in (0, 7, 14, 21))
    return (1, 0, 0, 1) if letter == "I" else (a, b, c, d)


def _times(left: Matrix, right: Matrix, more: Matrix = (0, 0, 0, 0)) -> Matrix:
    """The product, and ``more`` added to it."""
    (a, b, c, d), (e, f, g, h), (i, j, k, m) = left, right, more
    return (
        (a * e + b * g + i) % PRIME,
        (a * f + b * h + j) % PRIME,
        (c * e + d * g + k) % PRIME,
        (c * f + d * h + m) % PRIME,
    )
