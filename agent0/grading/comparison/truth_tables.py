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
_command = re.compile(r"\\[A-Za-z]+|\b(?:and|or|not|implies|iff|xor)\b")
_letters = re.compile(r"[\sp-tP-TAB()\[\]{}$~!&|<>=¬∧∨→↔⇒⇔⊕-]+")
_JOINTS = ("↔", "→", "|", "%", "&")
"""Weakest first; an arrow joins to the right."""
SURE = re.compile(
    r"[∧∨¬→↔⊕]|\\(?:land|lor|lnot|neg|wedge|vee|rightarrow|Rightarrow|leftrightarrow|implies|iff)\b|<->|->"
)


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
    masks = {name: sum(1 << w for w in range(worlds) if w >> n & 1) for n, name in enumerate(names)}
    return [_Reader(formula, masks, (1 << worlds) - 1).whole() for formula in signs]


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


class _Reader:
    """Recursive descent; ``masks`` has the truth of each variable in every world, ``everywhere`` that of a truism."""

    def __init__(self, signs: Sequence[str], masks: dict[str, int], everywhere: int) -> None:
        self._left, self._masks, self._all = list(signs), masks, everywhere

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
        while self._left[:1] == [_JOINTS[level]]:
            sign = self._left.pop(0)
            other = self._join(level + (sign != "→"), depth + (sign == "→"))
            match sign:
                case "↔":
                    value = self._all ^ value ^ other
                case "→":
                    value = (self._all ^ value) | other
                case "|":
                    value |= other
                case "%":
                    value ^= other
                case _:
                    value &= other
        return value

    def _atom(self, depth: int) -> int:
        sign = self._left.pop(0) if self._left else ""
        if sign == "~":
            return self._all ^ self._join(len(_JOINTS), depth + 1)
        if sign == "(":
            value = self._join(0, depth + 1)
            if self._left[:1] != [")"]:
                raise NoFormulaError("a bracket is open")
            self._left.pop(0)
            return value
        if sign not in {"0", "1", *self._masks}:
            raise NoFormulaError("no formula")
        return self._all * int(sign) if sign.isdigit() else self._masks[sign]
