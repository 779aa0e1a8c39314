"""Formulas of propositional logic: equal where they are true in the same worlds, every one of which is looked at.

A formula becomes one number: bit w is its truth in world w. With at most ``MOST_VARIABLES`` a comparison is bounded.
A hat is no sign here: some mean "and" by it, others "either, not both".
"""

# ruff: noqa: RUF001 (signs of logic that look like letters are what is read here)
import re
from collections.abc import Sequence

from agent0.grading.rules import rewrite, rules

MOST_VARIABLES, MOST_TOKENS, DEEPEST = 10, 400, 60
_SPELLINGS = rules(
    (r"(?i)\\(?:leftrightarrow|Leftrightarrow|iff)(?![A-Za-z])|<->|<=>|↔|⇔|≡|\biff\b", " <-> "),
    (r"(?i)\\(?:rightarrow|Rightarrow|to|implies)(?![A-Za-z])|(?<!<)->|=>|→|⇒|⊃|\bimplies\b", " -> "),
    (r"(?i)\\(?:land|wedge)(?![A-Za-z])|&&?|∧|\band\b", " & "),
    (r"(?i)\\(?:lor|vee)(?![A-Za-z])|\|\|?|∨|\bor\b", " | "),
    (r"(?i)\\(?:oplus)(?![A-Za-z])|⊕|\bxor\b", " % "),
    (r"(?i)\\(?:lnot|neg)(?![A-Za-z])|[~!¬]|\bnot\b", " ~ "),
    (r"(?i)\\top(?![A-Za-z])|⊤|\btrue\b", " 1 "),
    (r"(?i)\\bot(?![A-Za-z])|⊥|\bfalse\b", " 0 "),
    (r"\\(?:left|right)(?![A-Za-z])|[$]|\\[()\[\]]", " "),
)
_token = re.compile(r"\s*(<->|->|[&|%~()01]|[A-Za-z](?:_?\w{1,8})?)(?!\w)\s*|\s*(<->|->|[&|%~()])\s*")
_command = re.compile(r"\\[A-Za-z]+|\b(?:and|or|not|implies|iff|xor)\b")
_letters = re.compile(r"[\sp-tP-TAB()\[\]{}$~!&|<>=¬∧∨→↔⇒⇔⊕-]+")
_JOINTS = ("<->", "->", "|", "%", "&")
"""Weakest first; an arrow joins to the right."""
SURE = re.compile(
    r"[∧∨¬→↔⊕]|\\(?:land|lor|lnot|neg|wedge|vee|rightarrow|Rightarrow|leftrightarrow|implies|iff)\b|<->|->"
)


class NoFormulaError(ValueError):
    """A text is no formula, or too much of one."""


def tokens(text: str) -> list[str]:
    """Signs, constants and names.

    Raises:
        ValueError: something else, or too much.
    """
    text = rewrite(text, _SPELLINGS)
    out: list[str] = []
    start = 0
    while text[start:].strip():
        match = _token.match(text, start)
        if match is None or len(out) >= MOST_TOKENS:
            raise NoFormulaError("no formula")
        out.append(match[1] or match[2])
        start = match.end()
    return out


class _Reader:
    """Recursive descent; ``masks`` has the truth of each variable in every world."""

    def __init__(self, signs: Sequence[str], masks: dict[str, int], worlds: int) -> None:
        self._left, self._masks, self._all = list(signs), masks, (1 << worlds) - 1

    def whole(self) -> int:
        value = self._join(0, 0)
        if self._left:
            raise NoFormulaError("something follows")
        return value

    def _join(self, level: int, depth: int) -> int:
        if depth > DEEPEST:
            raise NoFormulaError("nested too deeply")
        if level == len(_JOINTS):
            return self._atom(depth)
        value = self._join(level + 1, depth)
        while self._left and self._left[0] == _JOINTS[level]:
            sign = self._left.pop(0)
            value = self._joined(sign, value, self._join(level + (sign != "->"), depth + (sign == "->")))
        return value

    def _joined(self, sign: str, left: int, right: int) -> int:
        match sign:
            case "<->":
                return self._all ^ left ^ right
            case "->":
                return (self._all ^ left) | right
            case "|":
                return left | right
            case "%":
                return left ^ right
        return left & right

    def _atom(self, depth: int) -> int:
        sign = self._left.pop(0) if self._left else ""
        if sign == "~":
            if depth > DEEPEST:
                raise NoFormulaError("nested too deeply")
            return self._all ^ self._atom(depth + 1)
        if sign == "(":
            value = self._join(0, depth + 1)
            if not self._left or self._left.pop(0) != ")":
                raise NoFormulaError("a bracket is open")
            return value
        if sign in ("0", "1"):
            return self._all * int(sign)
        if sign not in self._masks:
            raise NoFormulaError("out of place")
        return self._masks[sign]


def truths(formulas: Sequence[Sequence[str]]) -> list[int]:
    """The truth of each formula, one bit for each assignment of truth values to all their variables."""
    names = sorted({sign for signs in formulas for sign in signs if sign[0].isalpha()})
    if len(names) > MOST_VARIABLES:
        raise NoFormulaError(f"more than {MOST_VARIABLES} variables")
    worlds = 1 << len(names)
    masks = {name: sum(1 << w for w in range(worlds) if w >> n & 1) for n, name in enumerate(names)}
    return [_Reader(signs, masks, worlds).whole() for signs in formulas]


def same_formula(gold: str, answer: str) -> bool | None:
    """Whether both are true in the same worlds; None where the gold is no formula of single letters."""
    if not (SURE.search(gold) or r"\to" in gold) or not _letters.fullmatch(_command.sub(" ", gold)):
        return None
    try:
        if len({sign for sign in tokens(gold) if sign[0].isalpha()}) < 2:
            return None
        expected, formula = truths([tokens(gold), tokens(answer)])
    except NoFormulaError:
        return None
    return expected == formula
