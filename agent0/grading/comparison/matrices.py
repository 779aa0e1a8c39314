r"""Products that do not commute: letters for matrices are compared by putting matrices in their places, operators such
as ``\nabla`` by their text."""

import ast
import hashlib
import operator
import re
from typing import Any

from mpmath import MPContext

from agent0.grading.math.cleaning import clean
from agent0.grading.math.lexer import UnreadableError, parsed, tokens_of

LONGEST, DIGITS, LARGEST = 120, 40, 1_000
"""Characters of an answer, digits in which two matrices agree, and the largest power of e."""
_operator = re.compile(
    r"\\(?:nabla|hat|dagger|otimes|partial(?!\s*[a-z]\s*[/}]))(?![A-Za-z])|\\circ\s*[a-z]|∇"
    r"|\\(?:operatorname|mathrm|text)\s*\{\s*(?:div|grad|curl|rot)\s*\}"
)
_pair = re.compile(
    r"[A-Z][\s)]*(?:\^\s*\{?\s*(?:-?\s*\d+|T|\\top)\s*\}?)?[\s)]*(?:\\cdot|\\times|\*)?[\s(]*[A-Z]|\)\s*\^"
)
_powers_of_e = re.compile(
    r"(?:(?<![A-Za-z])e\s*\^|\\?exp(?![a-z]))\s*(?:\{[^{}]*[A-Z][^{}]*\}|\([^()]*[A-Z][^()]*\)|[A-Z])"
)
_crossed = re.compile(r"\s*([A-Z])\s*\\times\s*([A-Z])\s*")
_no_product = re.compile(r"[a-z=<>|,]|\\times|P\s*\(\s*[A-Z]\s*\)")
_gap = re.compile(r"\s+|[${}]|\\[,;:! ]|\\(?:left|right|mathbf|vec|boldsymbol|bm|(?<!bla.)(?<!bla .)cdot)(?![A-Za-z])")
_factor_i = re.compile(r"[A-Z]\s*I|I\s*[A-Z^(]")  # which is a letter like others, and no identity
Matrix = Any  # of two rows and columns, in the types of mpmath
_PYTHON = {"{": "(", "}": ")", "^": "**", "cdot": "*", "top": "T", "exp": "e **"}
_fraction, _beside = re.compile(r"frac (\([^()]*\)) (?=\()"), re.compile(r"(?<=[\w)]) (?=[\w(])")
_JOINTS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
_mp = MPContext()
_mp.dps = 3 * DIGITS


def same_products(gold: str, answer: str) -> bool | None:
    """Whether two products of capital letters, or of their powers of e, are one for all matrices, or two texts with
    operators are one; None where they are neither."""
    if max(len(gold), len(answer)) > LONGEST:
        return None
    if _operator.search(gold):
        return True if _gap.sub("", gold) == _gap.sub("", answer) else False if _operator.search(answer) else None
    if (crossed := _crossed.fullmatch(gold)) and (others := _crossed.fullmatch(answer)):
        return crossed.groups() == others.groups()
    left, right = clean(gold), clean(answer)
    both, several = (left.text, right.text), set(re.findall(r"[A-Z]", left.text))
    bare = re.sub(r"\\(?:cdot|top|frac)", "", left.text)
    if any(len(_powers_of_e.findall(text)) > 1 for text in both):
        bare = re.sub("[a-z]", "", bare)
    is_product = len(several) > 1 and (bare != left.text or any(map(_pair.search, both)))
    if not is_product or left.unit or right.unit or _no_product.search(bare):
        return None
    identity = "" if any(map(_factor_i.search, both)) else "I"
    try:
        expected, matrix = (_matrix(_product(text), identity) for text in both)
    except (UnreadableError, ValueError, ArithmeticError):
        return None
    return bool(_mp.norm(expected - matrix) <= _mp.mpf(10) ** -DIGITS * _mp.norm(expected))


def _product(text: str) -> ast.expr:
    """The tree of a sum of products."""
    python = " ".join(_PYTHON.get(lexeme, lexeme) for _, lexeme in tokens_of(text, None))
    return parsed(_beside.sub("*", _fraction.sub(r"\1 / ", python)))


def _matrix(node: ast.expr, identity: str) -> Matrix:
    """One matrix, with another one for each capital letter but ``identity``, and a number for each small one."""
    match node:
        case ast.Name(id=letter) if len(letter) == 1 or letter == "pi":
            return _mp.eye(2) if letter == identity else _of_letter(letter)
        case ast.Constant(value=int(number)):
            return number * _mp.eye(2)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_matrix(inner, identity)
        case ast.BinOp(left=ast.Name(id="e"), op=ast.Pow(), right=exponent):
            return _raised(_matrix(exponent, identity), "e")
        case ast.BinOp(left=left, op=ast.Pow(), right=exponent):
            return _raised(_matrix(left, identity), ast.unparse(exponent))
        case ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=int(number))):
            return _matrix(left, identity) / number
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _JOINTS:
            return _JOINTS[type(sign)](_matrix(left, identity), _matrix(right, identity))
    raise UnreadableError("no product of matrices")


def _raised(value: Matrix, exponent: str) -> Matrix:
    """A matrix raised, or ``e`` raised to it."""
    if not re.fullmatch(r"[Te]|-?\d", exponent) or (exponent == "e" and _mp.norm(value) > LARGEST):
        raise UnreadableError("no power of a matrix")
    return value.T if exponent == "T" else _mp.expm(value) if exponent == "e" else value ** int(exponent)


def _of_letter(letter: str) -> Matrix:
    """A matrix with an inverse, another one for each capital letter; a multiple of the identity for a small one."""
    entries = [1 + byte / 256 for byte in hashlib.sha256(letter.encode()).digest()[:4]]
    return _mp.matrix([entries[:2], entries[2:]]) if letter.isupper() else entries[0] * _mp.eye(2)
