"""General solutions: the same numbers, whichever whole number counts them and wherever it begins."""

# ruff: noqa: RUF001 (signs as they are written)
import math
import re
from fractions import Fraction

from agent0.grading.math.algebra import TooLargeError
from agent0.grading.math.cleaning import clean
from agent0.grading.math.lexer import UnreadableError
from agent0.grading.math.parser import read
from agent0.grading.math.sampling import NoValueError, near, value_at, variables

Family = tuple[Fraction, Fraction]
MOST = 720
"""Numbers in one period that are listed."""
_whole = re.compile(
    r"(?:,|;|\\q?quad|\\[,;:! ]|\s|\(|\\text\s*\{\s*(?:,|where|for|with)?\s*\}|\b(?:where|for|with|any|all"
    r"|integers?)\b)*[a-zA-Z]\s*(?:\\in|∈)\s*(?:\\(?:mathbb|mathbf|Bbb)\s*\{?\s*Z\s*\}?|ℤ|Z)\s*\)?\s*\.?\s*$"
    r"|,?\s*(?:\\text\s*\{)?\s*(?:where|for|with)\s+[$]?[a-z][$]?\s+(?:is )?(?:an? |any |all )?integers?\s*\}?\s*$"
)
_joint = re.compile(
    r"\s*(?:,\s*(?:or|and)\b|,|;|\\text\s*\{\s*(?:,?\s*(?:or|and)\s*)\}|\bor\b|\band\b|\\lor|\\vee"
    r"|\\cup)\s*(?:\\q?quad|\\[,;:! ])*\s*"
)
_name = re.compile(r"^\s*(?:\\[,;: ]|\\quad)*([A-Za-z]|\\theta|θ|\\alpha)\s*(?:=|\\in)\s*")
_sign = re.compile(r"\\(?:pm|mp)(?![A-Za-z])")
_degrees = re.compile(r"\^\s*\{?\s*\\circ\s*\}?|\\degree(?![A-Za-z])|°|\bdegrees\b")
_counts = re.compile(r"(?<![A-Za-z\\])[knmlt](?![A-Za-z(])|\\pi\s*[knml]|[knml]\s*\\pi")


def same_families(gold: str, answer: str) -> bool | None:
    """Whether both are the same numbers; None where one is no general solution with multiples of pi or degrees."""
    if not (_counts.search(gold) and ("pi" in gold or _degrees.search(gold))):
        return None
    expected = _families(gold)
    if not expected or not (found := _families(answer)):
        return None
    whole = _common([step for _, step in (*expected, *found)])
    sets = [_listed(one, whole) for one in (expected, found)]
    return None if None in sets else sets[0] == sets[1]


def _common(steps: list[Fraction]) -> Fraction:
    below = math.lcm(*(step.denominator for step in steps))
    return Fraction(math.lcm(*(int(step * below) for step in steps)), below)


def _listed(families: list[Family], whole: Fraction) -> set[Fraction] | None:
    if sum(whole / step for _, step in families) > MOST:
        return None
    return {(start + n * step) % whole for start, step in families for n in range(int(whole / step))}


def _families(text: str) -> list[Family]:
    """(first, step) of each part, in multiples of pi; empty where one cannot be read."""
    bare, name = _whole.sub("", text.strip(" .$")), ""
    out: list[Family] = []
    for part in filter(None, _joint.split(bare)):
        if match := _name.match(part):
            name, part = match[1], part[match.end() :]
        for one in [_sign.sub(sign, part) for sign in "+-"] if len(_sign.findall(part)) == 1 else [part]:
            if not (made := _family(one, name)):
                return []
            out += made
    return out


def _family(text: str, name: str) -> list[Family]:
    """Those of even and of odd whole numbers."""
    text = _degrees.sub(r" \\cdot\\frac{\\pi}{180} ", text)
    try:
        value = read(clean(text).text)
        letters = variables(value)
        if len(letters) != 1 or letters == {name}:
            return []
        counted = [value_at(value, dict.fromkeys(letters, n)) / math.pi for n in range(6)]
    except (UnreadableError, TooLargeError, NoValueError):
        return []
    exact = [Fraction(one.real).limit_denominator(MOST) for one in counted]
    if not all(near(float(one), other, MOST) for one, other in zip(exact, counted, strict=True)):
        return []
    step = exact[2] - exact[0]
    steady = step and all(exact[n + 2] - exact[n] == step for n in range(4))
    return [(exact[0], abs(step)), (exact[1], abs(step))] if steady else []
