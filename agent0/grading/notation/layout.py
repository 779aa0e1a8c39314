"""How an answer is set: words for signs, matrices as lists of rows, repeating decimals, which side stands left."""

import re

from agent0.grading.notation.numerals import figures
from agent0.grading.rules import rewrite, rules

_words = rules(
    (r"(?<![A-Za-z\\])(angle|triangle)\s+(?=[A-Z]{1,3}(?![A-Za-z]))", r"\\\1 "),
    (r"\^\s*\{\s*('+)\s*\}", r"\1"),
    (r"\^\s*\{?\s*\\(?:top|intercal|(?:mathsf|mathrm|text)\s*\{?\s*T\s*\}?)\s*\}?|\^\s*\{\s*T\s*\}", "^T"),
    (r"\\(?:vec|mathbf|boldsymbol|bm|overrightarrow)\s*(?:\{\s*0\s*\}|0)", "0"),
    (r"(?<=\d) (Hundred|Thousand|Million|Billion|Trillion)\b", lambda match: match[0].lower()),
    (r"(?i)\band one (half|third|quarter)\b", r"and a \1"),
    (r"\\bbox\s*(?:\[[^\]]*\])?\s*(?=\{)", ""),
    (
        r"^(?!.*\b(?:wrong|incorrect|false|if|not|never|cannot|one of|either|neither|nor|or|except|but)\b)"
        r"\s*(?:\\text\s*\{\s*)?(?:The|the|Its|So)? ?[a-z]+(?: [a-z]+){0,4} (?:is|are|equals)(?:\s*\}\s*"
        r"|\s+)(?=[-\d(\\$])",
        "",
    ),
    (r"\\[lc]?dots(?![A-Za-z])[bcmio]?|…|\.{3,}", r"\\ldots "),
    ("∂", r"\\partial "),
    ("º", "°"),
)
_wanted = re.compile(
    r"bbox|text|is|dots|…|\.\.\.|[∂º]|angle|\^|vec|mathbf|boldsymbol|bm|illion|ousand|undred|and one|overrightarrow"
)
_empty = re.compile(r"\s*(?:\\text\s*\{)?\s*(?:the )?(?:empty|null) set\s*\}?\s*\.?\s*", re.IGNORECASE)
_starred = re.compile(r"\*\*([A-Za-z])\*\*")
_matrix = re.compile(r"\\begin\s*\{[bp]?matrix\}|\\begin\s*\{array\}")
_nested = re.compile(r"\s*[\[(]\s*([\[(].{1,300}[\])])\s*[\])]\s*", re.DOTALL)
_row = re.compile(r"[\[(]([^\[\]()]*)[\])]")
_flat = re.compile(r"\s*\[([^\[\]()]*;[^\[\]()]*)\]\s*")
_bracketed = re.compile(r"\s*(-?\d*\.\d*)\((\d{1,9})\)\s*")
_dotted = re.compile(r"\s*(-?\d*\.\d*?)\\dot\s*\{?(\d)\}?(?:(\d*)\\dot\s*\{?(\d)\}?)?\s*")
_mixed = re.compile(r"\s*([a-z-]+) and ((?:[a-z]+)[ -](?:halves|thirds|quarters|[a-z]+ths))\s*", re.IGNORECASE)
_nearly = re.compile(r"\s*(?:\\approx(?![A-Za-z])|≈|\\simeq(?![A-Za-z]))\s*")
_name = re.compile(r"\s*[A-Za-z](?:_\{?\w+\}?)?\s*")
_sides = re.compile(r"(?<![<>!:\\])=(?!=)")
_space = re.compile(r"(?<![A-Za-z\d])\s+|\s+(?![A-Za-z\d])")
_single = re.compile(r"([_^]|\\(?:d|t)?binom\s?|\\(?:d|t)?frac\s?)([A-Za-z\d])(?:\s*([A-Za-z\d]))?")
_costly = re.compile(r"\\(?:sum|prod|int|lim|binom|dbinom|ldots)(?![A-Za-z])|\)\s*\^T|[A-Z]\s*\^T")


def laid_out(text: str, gold: str) -> str:
    """Return ``text`` with these in the spelling that is read; ``gold`` says whether rows are a matrix."""
    if "**" in text and ("mathbf" in gold or "vec" in gold):
        text = _starred.sub(r"\\mathbf{\1}", text)
    if _wanted.search(text):
        text = rewrite(text, _words)
    if text[:1] in "[(" and _matrix.search(gold) and (rows := _rows(text)):
        return rf"\begin{{pmatrix}}{rows}\end{{pmatrix}}"
    return _figures(_exact(text, gold))


def _exact(text: str, gold: str) -> str:
    r"""Of ``a \approx b`` the side that is wanted: the rounded one where the gold is a decimal. Of a mere name, as in
    ``x \approx b``, nothing exact is said: that stays no value."""
    if text is gold or _nearly.search(gold) or not (nearly := _nearly.search(text)):
        return text
    if not nearly.start() or _name.fullmatch(text[: nearly.start()]):
        return text
    return text[nearly.end() :] if "." in gold else text[: nearly.start()]


def _figures(text: str) -> str:
    """The empty set, mixed numbers in words and repeating decimals."""
    if _empty.fullmatch(text):
        return r"\emptyset"
    if " and " in text and (match := _mixed.fullmatch(text)):
        return f"{figures(match[1])} {figures(match[2])}"
    return _repeating(text) if "." in text else text


def _rows(text: str) -> str:
    if match := _flat.fullmatch(text):
        rows = match[1].split(";")
    elif match := _nested.fullmatch(text):
        rows = [row[1] for row in _row.finditer(match[1])]
        if re.sub(r"[\s,;]", "", _row.sub("", match[1])):
            return ""
    else:
        return ""
    return r"\\".join("&".join(re.split(r"\s*,\s*|\s+", row.strip())) for row in rows)


def _repeating(text: str) -> str:
    r"""``0.\overline{3}`` of ``0.(3)`` and ``0.\dot{3}``."""
    if match := _bracketed.fullmatch(text):
        return rf"{match[1]}\overline{{{match[2]}}}"
    if match := _dotted.fullmatch(text):
        return rf"{match[1]}\overline{{{match[2]}{match[3] or ''}{match[4] or ''}}}"
    return text


def turned_alike(gold: str, answer: str) -> tuple[str, str]:
    """Return the answer with its sides turned round where one of them is the gold's other side."""
    expected, found = _sides.split(gold), _sides.split(answer)
    if len(expected) == len(found) == 2:
        (left, right), (ours, theirs) = (["".join(side.split()) for side in sides] for sides in (expected, found))
        if ours != left and theirs != right and (ours == right or theirs == left):
            return gold, f"{found[1]} = {found[0]}"
    return gold, answer


def spelled_alike(gold: str, answer: str) -> bool:
    """Whether both are one sum, product, integral, endless list or transpose, but for spaces and braces."""
    return bool(_costly.search(gold)) and _tight(gold) == _tight(answer)


def _tight(text: str) -> str:
    text = _single.sub(
        lambda match: (
            f"{match[1].strip()}{{{match[2]}}}"
            + (f"{{{match[3]}}}" if match[1][0] == "\\" and match[3] else match[3] or "")
        ),
        text,
    )
    return _space.sub("", text.replace(r"\{", "{").replace(r"\}", "}"))
