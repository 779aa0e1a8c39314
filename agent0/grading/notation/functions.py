"""Functions that language models write in several ways: expectations, compositions, binomials, whole parts, exact
sines."""

import re
from fractions import Fraction

from agent0.grading.math.algebra import whole
from agent0.grading.notation.names import arguments, bracketed, key_of, name, value_of
from agent0.grading.notation.sets import vector
from agent0.grading.rules import rewrite, rules

MOST = 20
_left = re.compile(r"\\(?:left|right)(?![A-Za-z])")
_expected = re.compile(
    r"\\mathbb\s*\{?\s*[EP]|\\operatorname\*?\s*\{\s*(?:E|P|Pr|Var|Cov)\s*\}|\\Pr(?![A-Za-z])"
    r"|(?<![A-Za-z\\])(?:E\s*\[|(?:Var|Cov)\s*[\[(]|P\s*\([^()]*\\c[au]p)"
)
_operator = re.compile(
    r"(?:\\(?:mathbb|operatorname\*?|mathrm|text)\s*\{?\s*(E|Pr?|Var|Cov)\s*\}?|\\(Pr)|(?<![A-Za-z\\])(E|P|Var"
    r"|Cov))\s*([\[(])"
)
_composed = re.compile(r"\(?\s*(?<![A-Za-z\\])([A-Za-z])\s*(?:\\circ|∘)\s*([A-Za-z])\s*\)?\s*\(")
_respelled = rules(
    (r"(?<![A-Za-z\\])(GCD|LCM|MAX|MIN)(?=\s*[({])", lambda match: match[0].lower()),
    (r"\\?(?<![A-Za-z])(max|min)\s*\\\{([^{}]*)\\\}", r"\\\1(\2)"),
    (r"(?<![A-Za-z\\])floor\s*\(([^()]*)\)", r"\\lfloor \1\\rfloor"),
    (r"(?<![A-Za-z\\])ceil(?:ing)?\s*\(([^()]*)\)", r"\\lceil \1\\rceil"),
    (r"⌊([^⌊⌋]*)⌋", r"\\lfloor \1\\rfloor"),
    (r"⌈([^⌈⌉]*)⌉", r"\\lceil \1\\rceil"),
    (r"(?<![A-Za-z\\])(?:abs|Abs)\s*\(([^()]*)\)", r"|\1|"),
    (r"\\[lr]?Vert(?![A-Za-z])|\|\|", r"\\|"),
    (r"\\\|([^|]{1,60}?)\\\|", lambda match: name(f"norm {key_of(match[1])}")),
    (r"\\(?:bar|overline)\s*\{?\s*([a-z])(?![A-Za-z])\s*\}?", lambda match: name(f"bar {match[1]}")),
    (r"\\(?:vec|mathbf|hat)\s*\{\s*(\w)\s*\}\s*('+)", lambda match: name(f"vector {match[1]}{match[2]}")),
    (r"\\log_\s*\{?\s*e\s*\}?(?![A-Za-z])", r"\\ln "),
)
_known = re.compile(r"bar|overline|Vert|\\?\||\'|GCD|LCM|MAX|MIN|max|min|floor|ceil|abs|Abs|log_|⌊|⌈")
_whole = re.compile(r"\\l(floor|ceil)(?![A-Za-z])([^\\]{1,60})\\r\1(?![A-Za-z])")
_choose = (
    re.compile(r"(?<![A-Za-z\\\d_^.])(\d{1,6}|[nmNk])\s*C\s*(\d{1,6}|[rkm])(?![A-Za-z\d_]|\s*\()"),
    re.compile(
        r"(?<![A-Za-z\\\d])(\w{1,6}|\([^()]{1,20}\))\s+(?:\\text\s*\{\s*)?choose\s*\}?\s+(\w{1,6}|\([^()]{1,20}\))"
    ),
)
_own_c = re.compile(r"(?<![A-Za-z\\\d ])C|\dC(?!\s*\d)")
_pair = re.compile(r"\s*[\[(<].*,.*[\])>]\s*|.*\\(?:begin|langle).*", re.DOTALL)
_states = re.compile(r"\\?(?:gcd|lcm|binom|max|min)(?![A-Za-z])")
_one_unit = re.compile(r"\s*(-?[\d./]*)\s*\\(?:mathbf|hat|vec)\s*\{\s*\\?([ijk])(?:math)?\s*\}\s*")
_number = re.compile(r"[\s(){}]*(-?\d+)[\s(){}]*")
_modulo = re.compile(r"\s*(\d{1,9})(?:\s*\^\s*\{?(\d{1,6})\}?)?\s*\\b?mod\s*\{?\s*(\d{1,9})\s*\}?\s*")
_angle = re.compile(
    r"\\?(?<![A-Za-z])(sin|cos|tan)\s*(?P<open>\(|\{)?\s*(?:(\d{1,4})\s*(?:\^\s*\{?\s*\\circ\s*\}?|°|\\degree"
    r"|\s?degrees)|\\[dt]?frac\s*\{\s*(\d*)\s*\\pi\s*\}\s*\{?\s*(\d{1,2})\s*\}?"
    r"|(\d*)\s*\\pi\s*/\s*(\d{1,2}))\s*(?(open)[)}])"
)
_r2, _r3, _r6 = r"\sqrt{2}", r"\sqrt{3}", r"\sqrt{6}"
_SINES = {0: "0", 15: rf"\frac{{{_r6}-{_r2}}}{{4}}", 30: r"\frac{1}{2}", 45: rf"\frac{{{_r2}}}{{2}}",
          60: rf"\frac{{{_r3}}}{{2}}", 75: rf"\frac{{{_r6}+{_r2}}}{{4}}", 90: "1"}  # fmt: skip
_TANGENTS = {0: "0", 15: f"2-{_r3}", 30: rf"\frac{{{_r3}}}{{3}}", 45: "1", 60: _r3, 75: f"2+{_r3}"}


def applied(gold: str, answer: str) -> tuple[str, str]:
    """Return both with functions in one notation, work that is left to be done still to be done."""
    if _expected.search(gold) or _expected.search(answer):
        gold, answer = _operators(gold), _operators(answer)
    if "C" in answer + gold or "choose" in answer + gold:
        own = bool(_own_c.search(gold)) and r"\binom" not in gold
        gold, answer = (_chosen(text, own) for text in (gold, answer))
    gold, answer = _in_one_way(gold), _in_one_way(answer)
    if (unit := _one_unit.fullmatch(answer)) and _pair.fullmatch(gold):
        answer = rf"{answer} + 0\mathbf{{{'j' if unit[2] == 'i' else 'i'}}}"
    return _in_plane(gold, answer), answer


def _in_one_way(text: str) -> str:
    if r"\circ" in text or "∘" in text:
        text = _compositions(text)
    if _known.search(text):
        text = rewrite(text, _respelled)
    return _whole.sub(_part, text) if r"\l" in text else text


def _part(match: re.Match[str]) -> str:
    """A whole part of what is no number is a name of its own."""
    return (
        match[0]
        if _number.fullmatch(match[2]) or re.search(r"\d\s*[./]\s*\d", match[2])
        else name(f"{match[1]}({key_of(match[2])})")
    )


def _operators(text: str) -> str:
    """Expectation, probability, variance of something as a name of its own."""
    text, place = _left.sub(" ", text), 0
    for _ in range(MOST):
        if (match := _operator.search(text, place)) is None or (end := bracketed(text, match.end() - 1)) < 0:
            return text
        what = {"Pr": "P"}.get(word := match[1] or match[2] or match[3], word)
        inside = re.sub(r"\\(?:mid|[lr]?vert)(?![A-Za-z])", "|", text[match.end() : end])
        made = name(f"{what} of {','.join(map(key_of, arguments(inside)))}")
        text, place = text[: match.start()] + made + text[end + 1 :], match.start() + len(made)
    return text


def _compositions(text: str) -> str:
    r"""``(f \circ g)(x)`` as ``f(g(x))``."""
    for _ in range(MOST):
        if (match := _composed.search(text)) is None or (end := bracketed(text, match.end() - 1)) < 0:
            return text
        text = f"{text[: match.start()]}{match[1]}({match[2]}({text[match.end() : end]})){text[end + 1 :]}"
    return text


def _chosen(text: str, own: bool) -> str:
    r"""``5C2`` and ``5 choose 2`` as ``\binom{5}{2}``; not where C is a name of the gold's, or a digit."""
    if not own and "_{" not in text:
        text = _choose[0].sub(r"\\binom{\1}{\2}", text)
    return _choose[1].sub(r"\\binom{\1}{\2}", text)


def _in_plane(gold: str, answer: str) -> str:
    r"""``3\mathbf{i} - 4\mathbf{j}`` as a tuple of two, where two are said."""
    if not re.search(r"[ij]", gold) or not _pair.fullmatch(answer) or (plane := vector(gold, 2, bare=False)) is None:
        return gold
    given = vector(answer, 2, bare=True) or answer
    return plane if plane.count(",") == 1 == given.count(",") and "(" in plane else gold


def computed_functions(text: str) -> str:
    """Return ``text`` with exact sines, binomials of large factorials, remainders and stated values in figures."""
    if match := _modulo.fullmatch(text) if "mod" in text else None:
        return str(pow(int(match[1]), int(match[2] or 1), int(match[3]))) if int(match[3]) else text
    if "=" in text and _states.search(text):
        text = _stated(text)
    return _angle.sub(_exact, text) if re.search("sin|cos|tan", text) else text


def _stated(text: str) -> str:
    r"""``6`` of ``\gcd(12,18)=6``."""
    values = [value_of(side) for side in text.split("=")]
    numbers = {None if value is None else whole(value) for value in values}
    return str(numbers.pop()) if len(values) == 2 and len(numbers) == 1 and None not in numbers else text


def _exact(match: re.Match[str]) -> str:
    r"""The value at a multiple of 15 degrees."""
    below = match[5] or match[7]
    angle = Fraction(match[3]) if match[3] else Fraction(180 * int(match[4] or match[6] or 1), int(below) or 1)
    if angle.denominator != 1 or angle % 15 or (below and not int(below)):
        return match[0]
    turn = int(angle) + (90 if match[1] == "cos" else 0)
    if match[1] == "tan":
        turn %= 180
        sign, value = ("", turn) if turn < 90 else ("-", 180 - turn)
        return f"({sign}({_TANGENTS[value]}))" if value in _TANGENTS else match[0]
    turn %= 360
    sign, turn = ("-", turn - 180) if turn > 180 else ("", turn)
    return f"({sign}({_SINES[min(turn, 180 - turn)]}))"
