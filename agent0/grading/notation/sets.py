"""Sets of numbers as intervals, unions of them and lists in braces, from each notation that they have."""

import re
from itertools import pairwise

from agent0.grading.math import algebra
from agent0.grading.math.cleaning import closing
from agent0.grading.notation.names import value_of

_fonts = re.compile(r"\\(?:text(?:bf|rm|it)?|math(?:rm|it)|mbox)\s*\{([^{}]*)\}")
_set_of = re.compile(r"((?:[A-Za-z]\s*(?:=|\\in(?![A-Za-z]))\s*)?)\{(.*)\}\s*\.?", re.DOTALL)
_is_set = re.compile(r"\\\{|\\emptyset(?![A-Za-z])")
_builder = re.compile(
    r"\\?\{\s*([a-z])\s*(?:\\in\s*\\mathbb\{R\}\s*)?(?::|\\mid|\\vert|\||\\text\{ such that \})\s*([^{}]*)\\?\}"
)
_R = r"(?:[a-z]\s*\\in\s*)?\\mathbb\{R\}"
_reals = rf"{_R}|(?:the set of |x is )?(?:all |the |any )?(?:real numbers|reals|real number)(?: [a-z])?"
_SETS = tuple(
    (re.compile(pattern, re.IGNORECASE), interval)
    for pattern, interval in (
        (rf"{_reals}|R", r"(-\infty,\infty)"),
        (r"(?:the |set of |all )*natural numbers\.?", r"\mathbb{N}"),
        (r"(?:the |set of |all )*rational numbers\.?", r"\mathbb{Q}"),
        (r"(?:the |set of |all )*complex numbers\.?", r"\mathbb{C}"),
        (r"(?:the |set of |all )*integers", r"\mathbb{Z}"),
        (rf"{_R}\s*[\^_]\s*\{{?\s*(?:>\s*0|\+)\s*\}}?|(?:all |the )*positive (?:real numbers|reals)", r"(0,\infty)"),
        (rf"{_R}\s*[\^_]\s*\{{?\s*(?:<\s*0|-)\s*\}}?|(?:all |the )*negative (?:real numbers|reals)", r"(-\infty,0)"),
        (rf"{_R}\s*_\s*\{{?\s*\\ge\s*0\s*\}}?|(?:all |the )*non-?negative (?:real numbers|reals)", r"[0,\infty)"),
        (rf"{_R}\s*_\s*\{{?\s*\\le\s*0\s*\}}?|(?:all |the )*non-?positive (?:real numbers|reals)", r"(-\infty,0]"),
    )
)
_named = re.compile(r"R|real|\\ne|integer|natural|rational|complex|\\\{|\{\s*[a-z]", re.IGNORECASE)
_but = r"(?:\\setminus|\\backslash|-|except(?: for)?|other than|,|such that|where|with|excluding)"
_except = re.compile(rf"(?:{_reals})\s*{_but}\s*(.+)", re.IGNORECASE)
_unequal = re.compile(r"([a-z])\s*\\ne\s*([^=<>]+?)\s*")
_joint = re.compile(r"\s*(?:,\s*(?:and\b)?|;|\\text\s*\{\s*,?\s*and\s*\}|\band\b|\\land|\\wedge)\s*(?=[a-z]\s*\\ne)")
_signed = re.compile(r"\\pm\s*(\d+(?:\.\d+)?(?:/\d+)?|\\frac\{\d+\}\{\d+\}|\\sqrt\{?\d+\}?)")
_or = re.compile(r"\s*(?:\\text\s*\{\s*or\s*\}|\bor\b|\\cup|\\lor|\\vee)\s*")
_and = re.compile(r"\s*(?:\\text\s*\{\s*(?:and|&)\s*\}|\band\b|\\land|\\wedge)\s*")
_sign = r"(<|>|\\[lg]e(?![a-z]))"
_ray = re.compile(rf"\s*([a-z])\s*{_sign}\s*([^<>,=]{{1,40}}?)\s*")
_magnitude = re.compile(rf"\s*\|\s*[a-z]\s*\|\s*{_sign}\s*([\d./]+|\\[a-z]+\{{\d+\}}(?:\{{\d+\}})?)\s*")
_value = r"([^\[\](){},;<>=]{1,40}?)"
_fence = re.compile(rf"([\[\](])\s*{_value}\s*[,;]\s*{_value}\s*([\[\])])")


def in_sets(gold: str, answer: str) -> tuple[str, str]:
    """Return both in one notation; the gold decides what ambiguous signs of the other mean."""
    gold = _braces(gold, "," in gold)
    answer = _braces(answer, bool(_is_set.search(gold)))
    gold, answer = _between(_fenced(gold)), _between(_fenced(answer))
    if not ("|" in gold and "|" in answer):
        gold, answer = _unsigned(gold), _unsigned(answer)
    excluded = not (r"\ne" in gold and r"\ne" in answer)
    gold, answer = _numbers(gold, excluded), _numbers(answer, excluded)
    if r"\cup" in gold + answer or (r"\infty" in answer and r"\infty" not in gold):
        gold, answer = _rays(gold), _rays(answer)
    return gold, answer


def _braces(text: str, expected: bool) -> str:
    r"""``{1, 2}`` as ``\{1, 2\}`` where a set is ``expected``."""
    match = _set_of.fullmatch(text.strip()) if expected and "{" in text else None
    if match is None or closing(braced := f"{{{match[2]}}}", 0) < len(braced) - 1:
        return text
    return f"{match[1]}\\{{{match[2]}\\}}" if match[2].strip() else f"{match[1]}\\emptyset"


def _fenced(text: str) -> str:
    """``]0,5]`` and ``[1; 2]`` with brackets and a comma of the usual kind, each piece of a union."""
    if not re.search(r";|^\s*\]|\[\s*$|\]\s*\\cup|\\in\s*\]", text):
        return text
    head, sign, body = text.rpartition(r"\in ") if text.count(r"\in ") == 1 else ("", "", text)
    pieces = [_piece(part.strip()) for part in body.split(r"\cup")]
    return f"{head}{sign}" + r"\cup ".join(pieces) if all(pieces) else text


def _piece(text: str) -> str:
    match = _fence.fullmatch(text)
    if match is None or (match[4] == ")" and match[1] == "]") or (match[1] == "(" and match[4] == "["):
        return text if re.fullmatch(r"[\[(].*[\])]", text) else ""
    return f"{match[1].replace(']', '(')}{match[2]},{match[3]}{match[4].replace('[', ')')}"


def _between(text: str) -> str:
    r"""``x \ge 1 and x \le 2`` as ``1 \le x \le 2``."""
    rays = [ray for part in _and.split(text) if (ray := _ray.fullmatch(part))]
    by_side = {ray[2] in (">", r"\ge"): ray for ray in rays}
    if len(rays) != len(by_side) or len(rays) != len(_and.split(text)) or len(rays) != len("<>"):
        return text
    low, high = by_side[True], by_side[False]
    below, above = ("<" if ray[2] in "<>" else r"\le" for ray in (low, high))
    return f"{low[3]} {below} {low[1]} {above} {high[3]}" if low[1] == high[1] else text


def _unsigned(text: str) -> str:
    """``|x| < 2`` as an interval, ``|x| > 2`` as a union."""
    if (match := _magnitude.fullmatch(text)) is None:
        return text
    end, closed = match[2], match[1] not in "<>"
    if match[1] in ("<", r"\le"):
        return f"[-{end},{end}]" if closed else f"(-{end},{end})"
    return rf"(-\infty,-{end}]\cup[{end},\infty)" if closed else rf"(-\infty,-{end})\cup({end},\infty)"


def _rays(text: str) -> str:
    """``x < 1 or x > 2`` as the union of two intervals, one inequality as one."""
    parts = _or.split(text.strip().strip("$"))
    rays = [ray for part in parts if (ray := _ray.fullmatch(part))]
    one_name = len(rays) == len(parts) and len({ray[1] for ray in rays}) == 1
    return r"\cup".join(map(_interval, rays)) if one_name else text


def _interval(ray: re.Match[str]) -> str:
    end, closed = ray[3], ray[2] not in "<>"
    if ray[2] in (">", r"\ge"):
        return f"{'[' if closed else '('}{end},\\infty)"
    return rf"(-\infty,{end}{']' if closed else ')'}"


def _numbers(text: str, excluded: bool) -> str:
    """The set that ``text`` names: real numbers, all but some, those of a condition; also those that ``x`` is not,
    where ``excluded``."""
    if not _named.search(text):
        return text
    bare = _fonts.sub(r"\1", text).strip().rstrip(".").strip("$ ")
    if match := _builder.fullmatch(bare):
        return _numbers(match[2].strip().rstrip("\\").strip(), excluded)
    if interval := next((interval for pattern, interval in _SETS if pattern.fullmatch(bare)), ""):
        return interval
    bare = _signed.sub(r"\1,-\1", bare)
    parts = [part for piece in _joint.split(bare) if (part := _unequal.fullmatch(piece))]
    if len(parts) == len(_joint.split(bare)) and len({part[1] for part in parts}) == 1:
        points = ",".join(part[2] for part in parts)
        return (_without(points) if excluded else rf"{parts[0][1]} \ne {points}") or text
    if match := _except.fullmatch(bare):
        return _without(re.sub(r"(?:^|(?<=,))\s*[a-z]\s*(?:=|\\ne)\s*", "", match[1].strip())) or text
    return text


def _without(points: str) -> str:
    """All real numbers but ``points`` as a union of intervals; empty where these are no list of numbers."""
    bare = re.sub(r"^\\?\{(.*?)\\?\}$", r"\1", points.strip())
    parts = [part.strip() for part in re.split(r",|\band\b|\bor\b", bare) if part.strip()]
    values = [value and algebra.rational(value) for value in map(value_of, parts)]
    if None in values and (len(parts) > 1 or not re.fullmatch(r"[-\w\\{}^/ ]{1,40}", bare)):
        return ""
    ordered = sorted(parts, key=lambda part: values[parts.index(part)] or 0)
    return r"\cup".join(f"({low},{high})" for low, high in pairwise([r"-\infty", *ordered, r"\infty"])) if parts else ""
