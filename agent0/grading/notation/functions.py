"""Functions that language models write in several ways: expectations, compositions, binomials, whole parts."""

import re

from agent0.grading.notation.names import arguments, bracketed, key_of, name
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
_one_unit = re.compile(r"\s*(-?[\d./]*)\s*\\(?:mathbf|hat|vec)\s*\{\s*\\?([ijk])(?:math)?\s*\}\s*")
_number = re.compile(r"[\s(){}]*(-?\d+)[\s(){}]*")


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
