"""Notation in one spelling: sets, vectors, sets of numbers, times signs, binomials."""

import re
from fractions import Fraction
from itertools import pairwise

from agent0.grading.rules import rewrite, rules

_fonts = re.compile(r"\\(?:text(?:bf|rm|it)?|math(?:rm|bf|it)|mbox)\s*\{([^{}]*)\}")
_times = re.compile(r"(?<=\d)\s*[xX]\s*(?=\d)")
_chosen = rules(
    (r"\{\s*([^{}]{1,40}?)\s*\\choose\s*([^{}]{1,40}?)\s*\}", r"\\binom{\1}{\2}"),
    (r"^\s*(\w{1,8})\s*\\choose\s*(\w{1,8})\s*$", r"\\binom{\1}{\2}"),
    (r"(?:\{\})?[_^]\s*\{?\s*(\w{1,6})\s*\}?\s*C\s*_\s*\{?\s*(\w{1,6})\s*\}?", r"\\binom{\1}{\2}"),
    (r"(?<![A-Za-z\\])(?:nCr|C)\s*\(\s*([^(),]{1,20})\s*,\s*([^(),]{1,20})\s*\)", r"\\binom{\1}{\2}"),
)
_set_of = re.compile(r"((?:[A-Za-z]\s*(?:=|\\in(?![A-Za-z]))\s*)?)\{(.*)\}\s*\.?", re.DOTALL)
_is_set = re.compile(r"\\\{|\\(?:emptyset|varnothing)(?![A-Za-z])|\\lbrace")
_real = r"\\(?:mathbb|Bbb|mathbf|mathds)\s*\{?\s*R\s*\}?"
_builder = re.compile(
    rf"\\?\{{\s*([a-z])\s*(?:\\in\s*{_real}\s*)?"
    r"(?::|\\mid|\\vert|\||\\colon|\\text\{ such that \})\s*([^{}]*)\\?\}"
)
_reals = re.compile(
    rf"(?:[a-z]\s*\\in\s*)?{_real}"
    r"|(?:the set of |x is )?(?:all |the |any )?(?:real numbers|reals|real number)(?: [a-z])?"
)
_HALVES = (
    (r"\^\s*\{?\s*\+\s*\}?|_\s*\{?\s*(?:>\s*0|\+)\s*\}?", "positive", r"(0,\infty)"),
    (r"\^\s*\{?\s*-\s*\}?|_\s*\{?\s*<\s*0\s*\}?", "negative", r"(-\infty,0)"),
    (r"_\s*\{?\s*(?:\\geq?|\\geqslant|>=)\s*0\s*\}?", "non-?negative", r"[0,\infty)"),
    (r"_\s*\{?\s*(?:\\leq?|\\leqslant|<=)\s*0\s*\}?", "non-?positive", r"(-\infty,0]"),
)
_SETS = [
    (_reals, r"(-\infty,\infty)"),
    (re.compile(r"(?:the set of |all |the )*natural numbers"), r"\mathbb{N}"),
    (re.compile(r"(?:the set of |all |the )*integers|\\(?:mathbb|Bbb|mathbf)\s*\{?\s*Z\s*\}?"), r"\mathbb{Z}"),
    *(
        (
            re.compile(rf"(?:[a-z]\s*\\in\s*)?{_real}\s*(?:{latex})|(?:all |the )*{word} (?:real numbers|reals)"),
            interval,
        )
        for latex, word, interval in _HALVES
    ),
]
_but = r"(?:\\setminus|\\backslash|-|except(?: for)?|other than|,|such that|where|with|excluding)"
_except = re.compile(rf"(?:{_reals.pattern})\s*{_but}\s*(.+)")
_unequal = re.compile(r"([a-z])\s*(?:\\neq?|\\not\s*=|!=)\s*(.+)")
_or = re.compile(r"\s*(?:\\text\s*\{\s*or\s*\}|\bor\b|\\cup|\\lor|\\vee)\s*")
_ray = re.compile(r"\s*([a-z])\s*(<=|>=|<|>|\\leq?(?:slant)?(?![a-z])|\\geq?(?:slant)?(?![a-z]))\s*([^<>,=]{1,40}?)\s*")
_differs = re.compile(r"\\neq?(?![A-Za-z])|\\not\s*=|!=")
_number = re.compile(r"-?\d+(?:/\d+|\.\d+)?|-?\\frac\{(\d+)\}\{(\d+)\}")
_column = re.compile(r"\\begin\{([bp]?matrix|array)\}(?:\{[clr]\})?((?:(?!\\end|&).)+)\\end\{\1\}", re.DOTALL)
_row = re.compile(r"\\begin\{([bp]?matrix|array)\}((?:(?!\\end|\\\\).)+)\\end\{\1\}", re.DOTALL)
_turned = re.compile(r"\s*\^\s*\{?\s*(?:\\top|\\intercal|T|\\(?:text|mathrm|mathsf)\s*\{?\s*T\s*\}?)\s*\}?\s*$")
_pointed = re.compile(r"(?:\\langle|<)(?![=\s]*$)(.*,.*)(?:\\rangle|>)", re.DOTALL)
_unit = re.compile(
    r"\\(?:mathbf|boldsymbol|bm|pmb|hat|vec|widehat)\s*\{?\s*(?:\\(?:hat|mathbf|boldsymbol|vec)\s*\{?\s*)?\\?([ijk])(?:math)?\s*\}?\s*\}?"
)
_bare_unit = re.compile(r"(?<![A-Za-z\\])([ijk])(?![A-Za-z])")
_tuple = re.compile(r"\s*\([^()]*,.*\)\s*", re.DOTALL)
_assigned = re.compile(r"\s*(?:\\(?:vec|mathbf|boldsymbol)\s*\{?\s*)?[A-Za-z]\s*\}?\s*=\s*(?=[\\<(\[])")
_multiple = re.compile(
    r"\s*(-?\s*(?:[\d./]+|\\[dt]?frac\s*\{\d+\}\s*\{\d+\})?)\s*(?:\\cdot\s*)?\\(?:mathbf|boldsymbol|bm|hat"
    r"|vec)\s*\{?\s*(?:\\(?:mathbf|hat)\s*\{?\s*)?\\?([ijk])(?:math)?\s*\}*\s*"
)
_entries = re.compile(r"\s*(?:\\left\s*)?(?:\\langle|<|⟨|\(|\[|\\begin\s*\{[bp]matrix\}).*", re.DOTALL)
_one_column = re.compile(r"\\begin\s*\{[bp]matrix\}((?:(?!\\end|&).)+)\\end\s*\{[bp]matrix\}\s*", re.DOTALL)
_binomial = re.compile(r"\s*\\d?binom\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}\s*")


def noted(gold: str, answer: str) -> tuple[str, str]:
    """Return both in one notation; the gold decides what ambiguous signs of the other mean."""
    if "x" in answer.lower():
        gold, answer = _times.sub(r" \\times ", gold), _times.sub(r" \\times ", answer)
    gold, answer = _chosen_of(gold), _chosen_of(answer)
    gold, answer = _braced(gold, answer)
    excluded = not (_differs.search(gold) and _differs.search(answer))
    gold, answer = numbers(gold, excluded), numbers(answer, excluded)
    if r"\cup" in gold + answer or (r"\infty" in answer and r"\infty" not in gold):
        gold, answer = _rays(gold), _rays(answer)
    return _vectors(gold, answer)


def _rays(text: str) -> str:
    """``x < 1 or x > 2`` as the union of two intervals, one inequality as one."""
    parts = [_ray.fullmatch(part) for part in _or.split(text.strip().strip("$"))]
    found = [part for part in parts if part]
    if len(found) < len(parts) or len({part[1] for part in found}) > 1:
        return text
    return r"\cup".join(map(_interval, found))


def _interval(inequality: re.Match[str]) -> str:
    end, closed = inequality[3], inequality[2] not in "<>"
    if inequality[2].startswith((">", r"\g")):
        return f"{'[' if closed else '('}{end},\\infty)"
    return rf"(-\infty,{end}{']' if closed else ')'}"


def _chosen_of(text: str) -> str:
    if "C" in text or "choose" in text:
        text = rewrite(text, _chosen)
    return text


def _braced(gold: str, answer: str) -> tuple[str, str]:
    r"""``{1, 2}`` as ``\{1, 2\}`` where a set is wanted, or where braces hold several."""
    gold = _braces(gold, "," in gold)
    return gold, _braces(answer, bool(_is_set.search(gold)))


def _braces(text: str, expected: bool) -> str:
    match = _set_of.fullmatch(text.strip()) if expected and "{" in text else None
    if match is None or not _balanced(match[2]):
        return text
    return f"{match[1]}\\{{{match[2]}\\}}" if match[2].strip() else f"{match[1]}\\emptyset"


def _balanced(text: str) -> bool:
    depth = 0
    for letter in text:
        depth += (letter == "{") - (letter == "}")
        if depth < 0:
            return False
    return depth == 0


def numbers(text: str, excluded: bool) -> str:
    """Return the interval or union that ``text`` names: real numbers, all but some, those of a condition; also those
    that ``x`` is not, where ``excluded``."""
    if not re.search(r"R|real|\\ne|!=|\\not|integer|Z|\\\{|\{\s*[a-z]", text):
        return text
    bare = _fonts.sub(r"\1", text) if "mathbf" not in text else text
    bare = bare.strip().rstrip(".").strip("$ ")
    if match := _builder.fullmatch(bare):
        bare = match[2].strip().rstrip("\\").strip()
        return numbers(bare, excluded)
    for pattern, interval in _SETS:
        if pattern.fullmatch(bare):
            return interval
    if excluded and (match := _unequal.fullmatch(bare)):
        return _without(match[2]) or text
    if match := _except.fullmatch(bare):
        return _without(re.sub(r"^[a-z]\s*(?:=|\\neq?|!=)\s*", "", match[1].strip())) or text
    return text


def _without(points: str) -> str:
    """All real numbers but ``points`` as a union of intervals; empty where these are no list of numbers."""
    bare = (
        re.sub(r"^\\?\{|\\?\}$", "", points.strip())
        if points.strip()[:1] in "\\{" and "frac" not in points[:6]
        else points
    )
    parts = [part.strip() for part in re.split(r",|\band\b|\bor\b", bare) if part.strip()]
    values = []
    for part in parts:
        match = _number.fullmatch(part)
        if match is None or (match[2] and int(match[2]) == 0) or part.endswith("/0"):
            if len(parts) > 1 or not re.fullmatch(r"[-\w\\{}^/ ]{1,40}", part):
                return ""
            return rf"(-\infty,{part})\cup({part},\infty)"
        value = Fraction(int(match[1]), int(match[2])) * (-1 if part[0] == "-" else 1) if match[1] else Fraction(part)
        values.append((value, part))
    ends = [r"-\infty", *(part for _, part in sorted(values)), r"\infty"]
    return r"\cup".join(f"({low},{high})" for low, high in pairwise(ends)) if parts else ""


def _vectors(gold: str, answer: str) -> tuple[str, str]:
    """A vector in any notation as a tuple, where the gold is one or a point."""
    expected = vector(gold, bare=False)
    if expected is None and not _tuple.fullmatch(gold):
        return gold, answer
    size = (expected or gold).count(",") + 1
    head = _assigned.match(answer)
    body = answer[head.end() :] if head else answer
    given = vector(body, size, bare=expected is not None)
    if given is None and expected and _tuple.fullmatch(body):
        given = body
    return (gold, answer) if given is None else (expected or gold, given)


def vector(text: str, size: int = 3, *, bare: bool) -> str | None:
    """Return the tuple that a vector is written as; None where it is none. ``bare``: also ``[1,2]`` and ``i + 2j``."""
    text = text.strip().rstrip(".").strip("$ ")
    turned = _turned.search(text)
    body = text[: turned.start()].strip() if turned else text
    if match := (_row if turned else _column).fullmatch(body.strip("()[] ")):
        cells = [cell.strip() for cell in re.split(r"&" if turned else r"\\\\(?:\[[^\]]*\])?", match[2])]
        cells = cells[:-1] if cells and not cells[-1] else cells
        return f"({','.join(cells)})" if len(cells) > 1 else None
    if match := _pointed.fullmatch(body):
        return f"({match[1].strip()})"
    if bare and "," in body and re.fullmatch(r"[\[(][^\[\]()]*[\])]", body) and (turned or body[0] == "["):
        return f"({body[1:-1]})" if body[-1] == {"[": "]", "(": ")"}[body[0]] else None
    return _combined(
        _unit.sub(r" !\1 ", body) if _unit.search(body) else _bare_unit.sub(r" !\1 ", body) if bare else body, size
    )


def _combined(text: str, size: int) -> str | None:
    """``(1,2,3)`` of ``1 !i + 2 !j + 3 !k``."""
    pieces = re.split(r"!([ijk])", text)
    units = pieces[1::2]
    if len(units) < 2 or len(set(units)) < len(units) or pieces[-1].strip():
        return None
    parts: dict[str, str] = {}
    for unit, before in zip(units, pieces[::2], strict=False):
        factor = re.sub(r"(?:\\cdot|\*|\\,|\s)+$", "", before.strip()).replace(" ", "")
        if parts and factor[:1] not in ("+", "-"):
            return None
        factor = factor.removeprefix("+")
        parts[unit] = {"": "1", "-": "-1"}.get(factor, factor)
    letters = "ij" if size == 2 and "k" not in units else "ijk"
    return f"({','.join(parts.get(letter, '0') for letter in letters)})"


def one_vector(gold: str, answer: str) -> tuple[str, str]:
    """Return a multiple of one unit vector as the vector of as many entries as the other side has; a binomial as the
    column of two that the gold is."""
    if (column := _one_column.fullmatch(gold.strip())) and (match := _binomial.fullmatch(answer)):
        two = len([row for row in column[1].split(r"\\") if row.strip()]) == len("ab")
        return gold, rf"\begin{{pmatrix}}{match[1]}\\{match[2]}\end{{pmatrix}}" if two else answer
    if (match := _multiple.fullmatch(gold)) and _entries.fullmatch(answer):
        return _as_entries(match, answer) or gold, answer
    if (match := _multiple.fullmatch(answer)) and _entries.fullmatch(gold):
        return gold, _as_entries(match, gold) or answer
    return gold, answer


def _as_entries(match: re.Match[str], other: str) -> str:
    """The vector with as many entries as ``other``."""
    size = other.count(",") + 1 if "," in other else len([row for row in other.split(r"\\") if row.strip()])
    if size not in (2, 3) or (size == 2 and match[2] == "k"):
        return ""
    factor = match[1].replace(" ", "")
    value = {"": "1", "-": "-1"}.get(factor, factor)
    return rf"\langle {','.join(value if letter == match[2] else '0' for letter in 'ijk'[:size])} \rangle"
