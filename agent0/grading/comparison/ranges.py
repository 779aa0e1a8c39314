"""Sets of numbers on a line: inequalities, intervals, unions, exclusions and endless lists, as their ends and holes."""

import re
from fractions import Fraction

from agent0.grading.math import algebra
from agent0.grading.notation.names import value_of

_endless = re.compile(r"\\?\{(.*(?:\\[lc]?dots|…|\.\.\.).*)\\?\}")
_integers = re.compile(r"\\mathbb\s*\{?\s*Z\s*\}?|(?:the set of )?(?:all )?(?:the )?integers", re.IGNORECASE)
_value = r"[^\[\](){},;<>=]{1,40}?"
_interval = re.compile(rf"([\[(])\s*({_value})\s*,\s*({_value})\s*([\])])")
_removed = re.compile(r"(.+?)\s*(?:\\setminus|\\backslash)\s*\\?\{(.+?)\\?\}\s*")
_bounds = re.compile(
    r"\\?\{?\s*(?:([a-z])\s*(?:\\in\s*\\mathbb\s*\{?R\}?\s*)?(?::|\\mid|\||\\vert)\s*)?([^<>=]{1,30}?)\s*(<"
    r"|\\leq?(?:slant)?(?![a-z]))\s*([a-z])\s*(<|\\leq?(?:slant)?(?![a-z]))\s*([^<>=,]{1,30}?)\s*(?:,"
    r"|\\text\s*\{\s*,?\s*and\s*\}|\band\b|\\land|\\wedge)?\s*\4\s*\\neq?(?![a-z])\s*([^<>=,{}]{1,30}?)\s*\\?\}?\s*"
)
_infinite = re.compile(r"([-+]?)\s*\\?(?:infty|infinity|oo)")
_name = re.compile(r"^\s*[A-Za-z]\s*(?:=|\\in(?![A-Za-z]))\s*")
Pieces = frozenset[tuple[Fraction | str, Fraction | str, str]]


def same_range(gold: str, answer: str) -> bool | None:
    r"""Whether both are the same numbers, where one removes points (``(1,3)\setminus\{2\}``) or lists endlessly; None
    for everything else."""
    if _integers.fullmatch(gold.strip()) and (match := _endless.fullmatch(_name.sub("", answer).strip())):
        return _two_sided(match[1])
    parts = [_without(text) or _union(text) for text in (gold, answer)]
    if parts[0] is None or parts[1] is None or not any(map(_without, (gold, answer))):
        return None
    return parts[0] == parts[1]


def _two_sided(text: str) -> bool:
    """Whether ``…, -1, 0, 1, …`` lists each integer between its ends."""
    parts = [part.strip() for part in text.replace("\\,", "").rstrip("\\ ").split(",")]
    dots = [bool(re.fullmatch(r"\\[lc]?dots|…|\.\.\.", part)) for part in parts]
    numbers = [part.replace(" ", "") for part in parts[1:-1]]
    if not (len(parts) > 4 and dots[0] and dots[-1]) or not all(re.fullmatch(r"-?\d{1,6}", n) for n in numbers):
        return False
    return [int(n) for n in numbers] == list(range(int(numbers[0]), int(numbers[0]) + len(numbers)))


def _end(text: str) -> Fraction | str | None:
    if match := _infinite.fullmatch(text.strip()):
        return "-" if match[1] == "-" else "+"
    value = value_of(text)
    return None if value is None else algebra.rational(value)


def _piece(text: str) -> tuple[Fraction | str, Fraction | str, str] | None:
    match = _interval.fullmatch(text.strip())
    if match is None:
        return None
    low, high = _end(match[2]), _end(match[3])
    return None if low is None or high is None else (low, high, match[1] + match[4])


def _union(text: str) -> Pieces | None:
    pieces = [_piece(part) for part in re.split(r"\\cup(?![A-Za-z])", _name.sub("", text))]
    return None if None in pieces else frozenset(piece for piece in pieces if piece)


def _without(text: str) -> Pieces | None:
    r"""The pieces that are left of an interval without some points."""
    bare = _name.sub("", text).strip()
    if match := _removed.fullmatch(bare):
        whole, points = _piece(match[1]), match[2]
    elif match := _bounds.fullmatch(bare):
        opening, closing = ("(" if match[3] == "<" else "["), (")" if match[5] == "<" else "]")
        whole, points = _piece(f"{opening}{match[2]},{match[6]}{closing}"), match[7]
    else:
        return None
    holes = [_end(point) for point in points.split(",")]
    return None if whole is None else _pierced(whole, holes)


def _pierced(whole: tuple[Fraction | str, Fraction | str, str], holes: list[Fraction | str | None]) -> Pieces | None:
    out: set[tuple[Fraction | str, Fraction | str, str]] = set()
    low, high, fence = whole
    inside = sorted(hole for hole in holes if isinstance(hole, Fraction) and _within(hole, low, high))
    if len(inside) < len(holes):
        return None
    opening = fence[0]
    for hole in inside:
        out.add((low, hole, f"{opening})"))
        low, opening = hole, "("
    return frozenset({*out, (low, high, opening + fence[1])})


def _within(hole: Fraction, low: Fraction | str, high: Fraction | str) -> bool:
    return (isinstance(low, str) or low < hole) and (isinstance(high, str) or hole < high)
