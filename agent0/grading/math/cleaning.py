"""LaTeX and plain text of an answer brought to one spelling, before anything is read. String work in linear time."""

# ruff: noqa: RUF001 (look-alike characters are what is replaced here)
import re
from dataclasses import dataclass
from functools import lru_cache

from agent0.chat_format import unboxed
from agent0.grading.math.algebra import opaque
from agent0.grading.math.units import cut_unit, spelt
from agent0.grading.rules import rewrite, rules

_UNSEEN = (
    "\u00ad\u061c\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2066\u2067\u2068\u2069\ufeff"
)
_FRACTIONS = [
    ("½", 1, 2), ("⅓", 1, 3), ("⅔", 2, 3), ("¼", 1, 4), ("¾", 3, 4), ("⅕", 1, 5), ("⅖", 2, 5), ("⅗", 3, 5), ("⅘", 4, 5),
    ("⅙", 1, 6), ("⅚", 5, 6), ("⅛", 1, 8), ("⅜", 3, 8), ("⅝", 5, 8), ("⅞", 7, 8),
]  # fmt: skip
_RAISED, _LOWERED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "₀₁₂₃₄₅₆₇₈₉"
_raised, _lowered = re.compile(f"[{_RAISED}]+"), re.compile(f"[{_LOWERED}]+")
_plain_digits = str.maketrans(_RAISED + _LOWERED, "0123456789+-0123456789")
_UNICODE = str.maketrans(
    {
        "−": "-", "–": "-", "—": "-", "π": r"\pi ", "√": r"\sqrt ", "∞": r"\infty ", "°": " degrees ", "×": r"\times ",
        "·": r"\cdot ", "⋅": r"\cdot ", "÷": "/", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "∪": r"\cup ",
        "∩": r"\cap ", "±": r"\pm ", "∓": r"\mp ", "∈": r"\in ",
        **{sign: rf"\frac{{{above}}}{{{below}}}" for sign, above, below in _FRACTIONS}, "∅": r"\emptyset ",
        "⟨": "(", "⟩": ")", "€": " euros ", "£": " pounds ", "⁄": "/", "ℓ": "l", "∠": r"\angle ", "θ": r"\theta ",
        "′": "'", "’": "'", "\u00a0": " ", "\u2009": " ",
        "\u202f": " ", "（": "(", "）": ")", "，": ",",
        "\u2062": "*", "\u2063": ",", "\u2064": "+",
        **dict.fromkeys(_UNSEEN, ""),
    }
)  # fmt: skip
_NOISE = re.compile(
    r"\\(?:left|right|big|Big|bigg|Bigg|bigl|bigr|Bigl|Bigr|displaystyle|textstyle|limits|nonumber)(?![A-Za-z])"
)
_SPACE = re.compile(r"(?<!\\)\\(?:[!,;: ]|quad|qquad|hspace\{[^{}]*\}|phantom\{[^{}]*\})|(?<=[\w)}\]$.,])~")
_FRACTION = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_FONT = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|mbox|hbox|mathrm|mathbf|mathit|mathsf|boldsymbol|bm|operatorname\*?)\s*\{"
)
_DEGREE = re.compile(r"\^?\{?\\circ(?![A-Za-z])\}?|\\degree(?![A-Za-z])|\^\{?\\degree\}?")
_SIMPLE = rules(
    (r"(?<=\d)(?:\{,\}|,\\!)\s*(?=\d{3}(?!\d))", ""),
    (r"\{,\}", ","),
    (r",\\!", ","),
    (r"\\\$|(?<!\\)\$", " "),
    (r"\\[()\[\]](?!\d*(?:pt|em))", " "),
    (r"\\(?:leq|leqslant)(?![A-Za-z])", r"\\le "),
    (r"\\(?:geq|geqslant)(?![A-Za-z])", r"\\ge "),
    (r"\\neq(?![A-Za-z])", r"\\ne "),
    (r"\\langle(?![A-Za-z])", "("),
    (r"\\rangle(?![A-Za-z])", ")"),
    (r"\\varnothing(?![A-Za-z])", r"\\emptyset "),
    (r"\\(?:colon|mathbin:)(?![A-Za-z])", ":"),
    (r"\\lt(?![A-Za-z])", "<"),
    (r"\\gt(?![A-Za-z])", ">"),
    (r"\\(?:lbrace)(?![A-Za-z])", r"\\{"),
    (r"\\(?:rbrace)(?![A-Za-z])", r"\\}"),
    (r"\*\*", "^"),
    (r"\\mathrm\{e\}", "e"),
    (r"\\[dt]binom(?![A-Za-z])", r"\\binom"),
    (r"\\(?:[lr]?vert|mid)(?![A-Za-z])", "|"),
    (r"\\[lr]?Vert(?![A-Za-z])", r"\\|"),
)
_VECTOR = r"\\(?:mathbf|boldsymbol|bm|pmb|vec|overrightarrow)\s*(?:\{\s*([A-Za-z])\s*\}|([A-Za-z])(?![A-Za-z]))"
_CROSS = re.compile(rf"{_VECTOR}\s*\\times\s*{_VECTOR}")
_DISPLAY = re.compile(r"^\s*(?:\\\[(.*)\\\]|\\\((.*)\\\)|\$\$?(.*?)\$\$?)\s*\.?\s*$", re.S)
_DIGIT_GAP = re.compile(r"(?<=\d)(?:\\[,;:! ]|~)\s*(?=\d{3}(?!\d))")
_GROUPED = re.compile(r"-?\d{1,3}(?: \d{3})+(?:\.\d+)?")


@dataclass(frozen=True)
class Clean:
    """``text`` without its unit; ``unit`` in one spelling, ``percent`` and ``degrees`` are units too."""

    text: str
    unit: str = ""


@lru_cache(4096)
def clean(raw: str) -> Clean:
    """Normalise the spelling of ``raw``: LaTeX noise, spaces, fractions and currency get one form."""
    text = _unwrapped((raw if raw.isascii() else latex_signs(raw)).strip())
    dollars = "\\$" in text or bool(re.match(r"^\s*\$\s*[-\d.]", text))
    text = spelt(_FRACTION.sub(r"\\frac", _NOISE.sub(" ", text)))
    text = _DIGIT_GAP.sub("", text)
    if r"\times" in text:
        text = _CROSS.sub(lambda match: f" {opaque(f'cross {match[1] or match[2]} {match[3] or match[4]}')} ", text)
    text = rewrite(text, _SIMPLE)
    text = _SPACE.sub(" ", text)
    text = _plain_fonts(text)
    text = _DEGREE.sub(" degrees ", text)
    text = re.sub(r"\\?%", " percent ", text)
    text = re.sub(r"\s+", " ", text).strip()
    text = text.rstrip(".,; ") if not text.endswith("\\.") else text
    text = text.removeprefix("=").lstrip()
    if _GROUPED.fullmatch(text):
        return Clean(text.replace(" ", ""))
    value, unit = cut_unit(text)
    return Clean(value, unit or ("dollar" if dollars else ""))


def latex_signs(raw: str) -> str:
    """Return ``raw`` with signs in the spelling of LaTeX; runs of raised and lowered digits in braces."""
    raw = _raised.sub(lambda match: f"^{{{match[0].translate(_plain_digits)}}}", raw)
    raw = _lowered.sub(lambda match: f"_{{{match[0].translate(_plain_digits)}}}", raw)
    return raw.translate(_UNICODE)


def _unwrapped(text: str) -> str:
    """Without displays and boxes around the whole."""
    for _ in range(4):
        if match := _DISPLAY.match(text):
            inner = next(group for group in match.groups() if group is not None)
            if "$" in inner:
                return text
            text = inner.strip()
        elif (inside := unboxed(text)) != text:
            text = inside.strip()
        else:
            return text
    return text


def _plain_fonts(text: str) -> str:
    r"""The inside of ``\text{...}`` and its kind, set apart by spaces."""
    for _ in range(20):
        match = _FONT.search(text)
        if match is None:
            return text
        end = closing(text, match.end() - 1)
        if end < 0:
            return text
        text = f"{text[: match.start()]} {text[match.end() : end]} {text[end + 1 :]}"
    return text


def closing(text: str, start: int) -> int:
    """Index of the brace that closes the one at ``start``, -1 where none does."""
    depth = 0
    for end in range(start, len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if depth == 0:
            return end
    return -1
