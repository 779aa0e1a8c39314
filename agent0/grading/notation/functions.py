"""Functions that language models write in several ways: expectations, compositions, binomials, whole parts."""

import re

from agent0.grading.notation.names import arguments, bracketed, key_of, name

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
_choose = re.compile(r"(?<![A-Za-z\\\d_^.])(\d{1,6}|[nmNk])\s*C\s*(\d{1,6}|[rkm])(?![A-Za-z\d_]|\s*\()")
_own_c = re.compile(r"(?<![A-Za-z\\\d ])C|\dC(?!\s*\d)")


def applied(gold: str, answer: str) -> tuple[str, str]:
    """Return both with functions in one notation, work that is left to be done still to be done."""
    if _expected.search(gold) or _expected.search(answer):
        gold, answer = _operators(gold), _operators(answer)
    if "C" in answer + gold and not (_own_c.search(gold) and r"\binom" not in gold):
        gold, answer = (text if "_{" in text else _choose.sub(r"\\binom{\1}{\2}", text) for text in (gold, answer))
    gold, answer = (_compositions(text) if r"\circ" in text else text for text in (gold, answer))
    return gold, answer


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
