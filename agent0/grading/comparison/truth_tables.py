"""Formulas of propositional logic: equal where they are true in the same worlds, every one of which is looked at.

A formula becomes one number: bit w is its truth in world w. With at most ``MOST_VARIABLES`` a comparison is bounded.
A hat is no sign here: some mean "and" by it, others "either, not both".
"""

# ruff: noqa: RUF001 (signs of logic that look like letters are what is read here)
import ast
import operator
import re
from collections.abc import Callable, Mapping
from functools import reduce

from agent0.grading.math.lexer import UnreadableError, parsed
from agent0.grading.rules import rewrite, rules

MOST_VARIABLES, MOST_TOKENS = 10, 400
_SPELLINGS = rules(
    (r"(?i)\\(?:leftrightarrow|Leftrightarrow|iff)(?![A-Za-z])|<->|<=>|↔|⇔|≡|\biff\b", " ↔ "),
    (r"(?i)\\(?:rightarrow|Rightarrow|to|implies)(?![A-Za-z])|->|=>|⇒|⊃|\bimplies\b", " → "),
    (r"(?i)\\(?:land|wedge)(?![A-Za-z])|&&?|∧|\band\b", " & "),
    (r"(?i)\\(?:lor|vee)(?![A-Za-z])|\|\|?|∨|\bor\b", " | "),
    (r"(?i)\\(?:oplus)(?![A-Za-z])|⊕|\bxor\b", " % "),
    (r"(?i)\\(?:lnot|neg)(?![A-Za-z])|[~!¬]|\bnot\b", " ~ "),
    (r"(?i)\\top(?![A-Za-z])|⊤|\btrue\b", " 1 "),
    (r"(?i)\\bot(?![A-Za-z])|⊥|\bfalse\b", " 0 "),
    (r"\\(?:left|right)(?![A-Za-z])|[$]|\\[()\[\]]", " "),
)
_token = re.compile(r"[↔→&|%~()]|[01](?!\w)|[A-Za-z](?:_?\w{1,8})?(?!\w)|\S")
_PYTHON = {"↔": "==", "→": "<=", "%": "^", **{sign: sign for sign in "&|~()01"}}
"""Signs as Python writes operators of the same order; of these a row of arrows is joined here."""
_command = re.compile(r"\\[A-Za-z]+|\b(?:and|or|not|implies|iff|xor)\b")
_letters = re.compile(r"[\sp-tP-TAB()\[\]{}$~!&|<>=¬∧∨→↔⇒⇔⊕-]+")
SURE = re.compile(
    r"[∧∨¬→↔⊕]|\\(?:land|lor|lnot|neg|wedge|vee|rightarrow|Rightarrow|leftrightarrow|implies|iff)\b|<->|->"
)
_JOINTS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.BitAnd: operator.and_
}  # fmt: skip


class NoFormulaError(ValueError):
    """A text is no formula, or too much of one."""


def truths(*formulas: str) -> list[int]:
    """The truth of each formula, one bit for each assignment of truth values to all their variables.

    Raises:
        NoFormulaError: one is no formula, or they are too long or have too many variables.
    """
    signs = [_token.findall(rewrite(text, _SPELLINGS)) for text in formulas]
    names = sorted({sign for formula in signs for sign in formula if sign[0].isalpha()})
    if len(names) > MOST_VARIABLES:
        raise NoFormulaError(f"more than {MOST_VARIABLES} variables")
    if max(map(len, signs)) > MOST_TOKENS:
        raise NoFormulaError(f"more than {MOST_TOKENS} signs")
    worlds = 1 << len(names)
    masks = {f"v{n}": sum(1 << w for w in range(worlds) if w >> n & 1) for n in range(len(names))}
    python = _PYTHON | {name: f"v{n}" for n, name in enumerate(names)}
    try:
        trees = [parsed(" ".join(python[sign] for sign in formula)) for formula in signs]
        return [_truth(tree, masks, (1 << worlds) - 1) for tree in trees]
    except (UnreadableError, KeyError) as error:
        raise NoFormulaError("no formula") from error


def same_formula(gold: str, answer: str) -> bool | None:
    """Whether both are true in the same worlds; None where the gold is no formula of several single letters."""
    bare = _command.sub(" ", gold)
    if (
        not (SURE.search(gold) or r"\to" in gold)
        or not _letters.fullmatch(bare)
        or len(set(re.findall("[A-Za-z]", bare))) < 2
    ):
        return None
    try:
        expected, formula = truths(gold, answer)
    except NoFormulaError:
        return None
    return expected == formula


def _truth(node: ast.expr, masks: Mapping[str, int], everywhere: int) -> int:
    """``masks`` has the truth of each variable in every world, ``everywhere`` that of a truism."""
    match node:
        case ast.Name(id=name):
            return masks[name]
        case ast.Constant(value=int(value)):
            return everywhere * value
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            return everywhere ^ _truth(inner, masks, everywhere)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _JOINTS:
            return _JOINTS[type(sign)](_truth(left, masks, everywhere), _truth(right, masks, everywhere))
        case ast.Compare(left=first, ops=signs, comparators=others):
            values = [_truth(side, masks, everywhere) for side in (first, *others)]
            for n in reversed(range(len(signs))):  # an arrow joins to the right, before equivalences do
                if isinstance(signs[n], ast.LtE):
                    values[n : n + 2] = [everywhere ^ values[n] | values[n + 1]]
            return reduce(lambda left, right: everywhere ^ left ^ right, values)
    raise UnreadableError("no formula")
