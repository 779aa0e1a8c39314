"""What is compared as it is written: dimensions, times beside ratios, terms of a congruence."""

# ruff: noqa: RUF001 (signs as they are written)
import re

from agent0.grading.comparison.congruences import residues_of
from agent0.grading.math.cleaning import latex_signs

_text = re.compile(r"\\(?:text|mathrm|mbox)\s*\{([^{}]*)\}")
_gap = re.compile(r"\\[ ,;:!]|[${}]|\s+")
_across = re.compile(
    r"(\d{1,5})\s*(?:\\times|\\cdot|[x×X*]|by|-by-)\s*(\d{1,5})(?:\s*(?:\\times|[x×X*]|by|-by-)\s*(\d{1,5}))?\s*"
    r"([A-Za-z][A-Za-z ]{2,})?"
)
_sign = re.compile(r"[\\^_{()<>=+*/]")
_single = re.compile(r"([_^])\s*\{\s*(\w)\s*\}")
_builder = re.compile(r"\{.*(?:\\mid|\||:)", re.DOTALL)
_bar = re.compile(r"\\mid(?![A-Za-z])|:|\\(?:vert|colon)(?![A-Za-z])")
_left = re.compile(r"\\(?:left|right|big|Big)(?![A-Za-z])|\\[ ,;:!]")
_SHORT = {r"\leq": r"\le", r"\geq": r"\ge", r"\neq": r"\ne"}
_long = re.compile(r"\\(?:leq|geq|neq)(?![A-Za-z])")
_space = re.compile(r"(?<![A-Za-z\d])\s+|\s+(?![A-Za-z\d])")
_time = re.compile(r"\d{1,2}:[0-5]\d")
_ratio = re.compile(r"[1-9]\d*:[1-9]\d*")
_terms = re.compile(
    r"\s*([a-z])\s*=\s*(?:(-?\d{1,6})\s*\+\s*(\d{1,5})\s*\\?(?:cdot|\*)?\s*([a-z])|(\d{1,5})\s*(?:\\cdot|\*)?\s*([a-z])\s*(?:([+-])\s*(\d{1,6}))?)"
    r"\s*(?:,?\s*(?:\\(?:text|quad|qquad)\s*\{?)?\s*(?:for|where|with)?\s*(?:some|any|all|an?)?\s*(?:integers?)?\s*\}?\s*(?:\4|\6)?\s*"
    r"(?:\\in\s*\\mathbb\s*\{?\s*Z\s*\}?|(?:is\s+)?(?:an?\s+)?(?:any\s+)?integer)?)?\s*\.?"
)


def same_shape(gold: str, answer: str) -> bool | None:
    """Whether both are one such thing; None where the gold is none of them."""
    bare, given = (" ".join(_gap.sub(" ", _text.sub(r" \1 ", one)).split()) for one in (gold, answer))
    for same in (_dimensions, _times):
        if (found := same(bare, given)) is not None:
            return found
    return _congruent(gold, answer)


def same_text(gold: str, answer: str) -> bool:
    """Whether both are one text of mathematics but for spaces, braces around single signs and, in a set given by a
    condition, the bar."""
    return bool(_sign.search(gold)) and _tight(gold) == _tight(answer)


def _tight(text: str) -> str:
    text = _left.sub("", _text.sub(r" \1 ", latex_signs(text))).replace(r"\{", "{").replace(r"\}", "}").strip(" .$")
    text = _bar.sub("|", text) if _builder.match(text) else text
    text = _long.sub(lambda match: _SHORT[match[0]], _single.sub(r"\1\2", text))
    return _space.sub("", " ".join(text.split()))


def _dimensions(gold: str, answer: str) -> bool | None:
    """``3 by 4`` is ``3 x 4``, and no ``4 x 3`` where a thing is named that has rows and columns."""
    expected, found = _across.fullmatch(gold), _across.fullmatch(answer)
    if not (expected and found):
        return None
    if expected.group(1, 2, 3) == found.group(1, 2, 3) and (not expected[4] or not found[4] or expected[4] == found[4]):
        return True
    return False if expected[4] and expected[4] in ("matrix", "grid", "board", "array", "table") else None


def _times(gold: str, answer: str) -> bool | None:
    """A ratio is no time of day: ``3:1`` is not ``3:01``."""
    both = {gold, answer}
    zero = any(_time.fullmatch(one) and one.partition(":")[2][0] == "0" for one in both)
    return False if zero and any(_ratio.fullmatch(one) and not _time.fullmatch(one) for one in both) else None


def _congruent(gold: str, answer: str) -> bool | None:
    """``5k + 2`` for the residue 2 modulo 5, either way."""
    for first, second in ((gold, answer), (answer, gold)):
        if "mod" in first and (expected := residues_of(first)) and (match := _terms.fullmatch(second)):
            step = int(match[3] or match[5])
            start = int(match[2]) if match[2] else int(match[8] or 0) * (-1 if match[7] == "-" else 1)
            own = match[1] == expected[0] and match[1] != (match[4] or match[6])
            return own and step == expected[2] and expected[1] == {start % step}
    return None
