"""Figures, money, ratios, points and matrices in the spelling that is read."""

# ruff: noqa: RUF001 (signs as they are written)
import re

from agent0.grading.notation.numerals import figures
from agent0.grading.notation.sets import vector
from agent0.grading.rules import rewrite, rules

LONGEST = 400
_raised = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", "01234567890123456789")
_unicode_fraction = re.compile(r"([⁰¹²³⁴⁵⁶⁷⁸⁹]+)[⁄/]([₀₁₂₃₄₅₆₇₈₉]+)")
_latex_fraction = re.compile(r"\^\{(\d{1,6})\}\s*/\s*_\{(\d{1,6})\}")
_SIGNS = rules(
    (r"\+\s*/\s*-|\+-", r"\\pm "),
    (r"(?<=\d)['’](?=\d{3}(?!\d))", ""),
    (r"(?<=\d)\s*(?:\\[ ,;]|~)*\s*\\(?:text|mathrm)\s*\{\s*(hundred|thousand|million|billion|trillion)\s*\}", r" \1"),
    (r"^\d{1,3}(?: \d{3})+(?= [A-Za-z]|$)", lambda match: match[0].replace(" ", "")),
    (r"^(\s*([a-z])\s*=[^=<>]*?)\s(?:or|and)\s(?=\s*\2\s*=[^=<>]*$)", r"\1, "),
    (r"\\lg(?![A-Za-z])", r"\\log_{10}"),
    (r"(?<![A-Za-z])(?:np\.|numpy\.)?(?:array|Matrix|matrix)\(\s*(\[.*\])\s*\)", r"\1"),
    (r"^(?:All|Every|Any|The set of all)(?= )", lambda match: match[0].lower()),
    (r"^\s*([a-z])\s*\\in\s*\\mathbb\s*\{?R\}?\s*,\s*(?=\1\s*\\ne)", ""),
    (r"^\s*[A-Z]\s*=\s*(?=[\[\]][^\[\]]*[\[\]]$)", ""),
    (r"(?<=[\d\w])\\[,;!:]\s*(?=;)|(?<=;)\s*\\[,;!:]", ""),
    (r"\ball reals\b", "all real numbers"),
)
_MONEY = rules(
    (r"^\s*(?:USD|US\s?\\?\$)\s*(?=[\d.])", r"\\$"),
    (r"^\s*(?:EUR|€)\s*([\d.,]+)\s*$", r"\1 euros"),
    (r"^\s*(?:GBP|£)\s*([\d.,]+)\s*$", r"\1 pounds"),
    (r"^\s*(?:Rs\.?|INR|₹|¥|JPY|CHF|CAD|AUD)\s*([\d.,]+)\s*$", r"\1 currency"),
)
_to = re.compile(r"\s+(?:is\s+)?to\s+")
_clock = re.compile(r"\d{1,2}:[0-5]\d(?!\d)")
_numbered = re.compile(r"(?<![A-Za-z\\])([a-z])_\s*\{?\d\}?\s*=")
_numeral = re.compile(r"[a-z]+(?:-[a-z]+)?|\d[\d.]*")
_ratio = re.compile(r"([^:=<>]{1,30}):([^:=<>]{1,30})")
_plain_fraction = re.compile(r"-?(?:\\[dt]?frac\s*\{[^{}]+\}\s*\{[^{}]+\}|\d+\s*/\s*\d+)")
_point = re.compile(r"^\s*[A-Z]\s*(?:=\s*)?(?=\()")
_barred = re.compile(r"\(([^()|]+(?:\s*(?:\||\\mid)\s*[^()|]+)+)\)")
_bar = re.compile(r"\||\\mid")
_named = re.compile(r"^\s*(?:[A-Z](?:\^\s*\{?\s*-?\s*[1T]\s*\}?)?|\\mathbf\s*\{\s*[A-Z]\s*\})\s*=\s*")
_block = r"\\begin\s*\{([bp]?matrix)\}(.*?)\\end\s*\{\2\}"
_scaled = re.compile(
    rf"\s*((?:[-+]?\s*(?:\\[dt]?frac\s*(?:\d\s*\d|\{{[^{{}}]+\}}\s*\{{[^{{}}]+\}})|[\d./]+"
    rf"|\([^()]+\))?)?)\s*(?:\\cdot|\\times|\*|\\,)?\s*{_block}\s*",
    re.DOTALL,
)
_turned = re.compile(
    rf"\s*()(?:\\left)?\s*{_block}\s*\^\s*\{{?\s*(?:T|\\top|\\intercal|\\(?:mathsf|mathrm|text)\s*\{{?\s*T\s*\}}?)\s*\}}?\s*",
    re.DOTALL,
)
_diagonal = re.compile(
    r"\s*\\?(?:operatorname\*?|mathrm"
    r"|text)?\s*\{?\s*diag\s*\}?\s*[({]\s*(?:\\?[{(\[])?([^()\[\]{}]+(?:\{[^()]*\})?[^()\[\]]*?)[\])}]*\s*",
    re.IGNORECASE,
)
_unit = re.compile(r"\s*(-?[\d./]*)\s*(?:\\(?:mathbf|mathrm)\s*\{\s*I\s*\}|I)\s*(?:_\s*\{?\s*(\d)\s*\}?)?\s*")


def respelled(gold: str, answer: str) -> tuple[str, str]:
    """Return both with these in one spelling; the gold decides what is a ratio, a point or a matrix."""
    if max(len(gold), len(answer)) > LONGEST:
        return gold, answer
    gold, answer = _signs(gold), _signs(answer)
    if (":" in gold and r"\{" not in gold and not _clock.search(gold)) or _plain_fraction.fullmatch(gold.strip()):
        gold, answer = _ratios(gold, answer)
    if "_" not in gold and "_1" in answer.replace("{", ""):
        answer = _numbered.sub(r"\1 =", answer)
    if "matrix" in gold:
        gold, answer = matrix(gold, gold), matrix(answer, gold)
    elif "(" in gold and "," in gold and "(" in answer:
        answer = _points(answer)
    return gold, answer


def _signs(text: str) -> str:
    text = _latex_fraction.sub(
        r"\\frac{\1}{\2}",
        _unicode_fraction.sub(lambda f: rf"\frac{{{f[1].translate(_raised)}}}{{{f[2].translate(_raised)}}}", text),
    )
    text = rewrite(text, _SIGNS, _MONEY)
    return text


def _ratios(gold: str, answer: str) -> tuple[str, str]:
    """``3 to 4`` and ``three to four`` as ``3:4``; a ratio of two as the fraction, where one side is one."""
    parts = _to.split(answer.strip().strip("."))
    if len(parts) > 1 and all(_numeral.fullmatch(part.lower()) for part in parts):
        answer = ":".join(figures(part) for part in parts)
    sides = [_ratio.fullmatch(text.strip()) for text in (gold, answer)]
    if bool(sides[0]) == bool(sides[1]) or "," in answer:
        return gold, answer
    made = [
        rf"\frac{{{side[1].strip()}}}{{{side[2].strip()}}}" if side else text
        for side, text in zip(sides, (gold, answer), strict=True)
    ]
    return made[0], made[1]


def _points(answer: str) -> str:
    """``S(1 | 0 | -2)`` and ``P = (1, 0)`` as tuples."""
    bare = _point.sub("", answer)
    if match := _barred.fullmatch(bare.strip()):
        return f"({','.join(part.strip() for part in _bar.split(match[1]))})"
    return bare if bare.strip().startswith("(") and bare.strip().endswith(")") and "," in bare else answer


def matrix(text: str, gold: str) -> str:
    r"""Return ``\frac{1}{2}`` times a matrix, its transpose, ``diag(1,2)`` and ``2I`` as a matrix of entries."""
    body = _named.sub("", text)
    if match := _diagonal.fullmatch(body):
        return _square([cell.strip() for cell in match[1].split(",")])
    if (match := _unit.fullmatch(body)) and (rows := len([row for row in gold.split(r"\\") if row.strip()])) > 1:
        return _square([{"": "1", "-": "-1"}.get(match[1], match[1])] * rows) if match[2] in (None, str(rows)) else text
    turned = _turned.fullmatch(body)
    match = turned or _scaled.fullmatch(body)
    if match is None or not (turned or match[1].strip()):
        return _column(text, gold)
    cells = [
        [cell.strip() for cell in row.split("&")] for row in re.split(r"\\\\(?:\[[^\]]*\])?", match[3]) if row.strip()
    ]
    if turned:
        return _block_of([list(row) for row in zip(*cells, strict=True)]) if len({*map(len, cells)}) == 1 else text
    factor = {"-": "-1", "+": "1"}.get(match[1].strip(), match[1].strip())
    return _block_of([[f"({factor})\\cdot({cell})" for cell in row] for row in cells])


def _column(text: str, gold: str) -> str:
    """A list in brackets as a column, where the gold is one."""
    bare = text.strip()
    if "&" in gold or not bare.startswith("[") or not bare.endswith("]") or "[" in bare[1:]:
        return text
    return vector(bare, bare=True) or text


def _square(cells: list[str]) -> str:
    return _block_of([[cell if n == place else "0" for n in range(len(cells))] for place, cell in enumerate(cells)])


def _block_of(rows: list[list[str]]) -> str:
    body = r"\\ ".join("&".join(row) for row in rows)
    return rf"\begin{{pmatrix}}{body}\end{{pmatrix}}"
