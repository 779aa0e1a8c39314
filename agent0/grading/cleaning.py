"""LaTeX and plain text of an answer brought to one spelling, before anything is read. String work in linear time."""

# ruff: noqa: RUF001 (look-alike characters are what is replaced here)
import re
from dataclasses import dataclass

_UNSEEN = (
    "\u00ad\u061c\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2066\u2067\u2068\u2069\ufeff"
)
_UNICODE = str.maketrans(
    {
        "−": "-", "–": "-", "—": "-", "π": r"\pi ", "√": r"\sqrt ", "∞": r"\infty ", "°": " degrees ", "×": r"\times ",
        "·": r"\cdot ", "⋅": r"\cdot ", "÷": "/", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "∪": r"\cup ",
        "∩": r"\cap ", "±": r"\pm ", "∓": r"\mp ", "∈": r"\in ", "²": "^2", "³": "^3", "½": r"\frac{1}{2}",
        "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}", "θ": r"\theta ", "′": "'", "’": "'", "\u00a0": " ", "\u2009": " ",
        "\u202f": " ", "（": "(", "）": ")", "，": ",",
        "\u2062": "*", "\u2063": ",", "\u2064": "+",
        **dict.fromkeys(_UNSEEN, ""),
    }
)  # fmt: skip
_NOISE = re.compile(
    r"\\(?:left|right|big|Big|bigg|Bigg|bigl|bigr|Bigl|Bigr|displaystyle|textstyle|limits|nonumber)(?![A-Za-z])"
)
_SPACE = re.compile(r"(?<!\\)\\(?:[!,;: ]|quad|qquad|hspace\{[^{}]*\}|phantom\{[^{}]*\})|~")
_FRACTION = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_FONT = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|mbox|hbox|mathrm|mathbf|mathit|mathsf|boldsymbol|bm|operatorname\*?)\s*\{"
)
_DEGREE = re.compile(r"\^?\{?\\circ(?![A-Za-z])\}?|\\degree(?![A-Za-z])|\^\{?\\degree\}?")
_SIMPLE = (
    (r"\{,\}", ","),
    (r",\\!", ","),
    (r"\\\$|(?<!\\)\$", " "),
    (r"\\[()\[\]](?!\d*(?:pt|em))", " "),
    (r"\\(?:leq|leqslant)(?![A-Za-z])", r"\\le "),
    (r"\\(?:geq|geqslant)(?![A-Za-z])", r"\\ge "),
    (r"\\neq(?![A-Za-z])", r"\\ne "),
    (r"\\lt(?![A-Za-z])", "<"),
    (r"\\gt(?![A-Za-z])", ">"),
    (r"\\(?:lbrace)(?![A-Za-z])", r"\\{"),
    (r"\\(?:rbrace)(?![A-Za-z])", r"\\}"),
    (r"\*\*", "^"),
    (r"\\mathrm\{e\}", "e"),
)
_simple = [(re.compile(pattern), text) for pattern, text in _SIMPLE]
_DISPLAY = re.compile(r"^\s*(?:\\\[(.*)\\\]|\\\((.*)\\\)|\$\$?(.*?)\$\$?)\s*\.?\s*$", re.S)
_DIGIT_GAP = re.compile(r"(?<=\d)\\[,! ]\s*(?=\d{3}(?!\d))")
_WORD = r"(?:square|cubic|sq\.?|cu\.?|per)?\s*[A-Za-z]{2,}\.?"
_UNIT = re.compile(
    rf"^(?P<value>.*?(?:[\d)}}\]]|(?<![A-Za-z])[ie]|\\pi))\s*(?P<unit>(?:{_WORD}(?:\s*/\s*|\s+)?)+)(?:\s*\^\s*\{{?(?P<power>[-\d]+)\}}?)?\s*$",
    re.S,
)
_FUNCTIONS = {
    "sin",
    "cos",
    "tan",
    "cot",
    "sec",
    "csc",
    "log",
    "ln",
    "exp",
    "sqrt",
    "pi",
    "and",
    "or",
    "to",
    "in",
    "infty",
}
_GENERIC = {"unit", "units", "square units", "cubic units"}


@dataclass(frozen=True)
class Clean:
    """``text`` without its unit; ``unit`` in lower case without plural, ``percent`` and ``degrees`` are units too."""

    text: str
    unit: str = ""


def clean(raw: str) -> Clean:
    """One spelling of ``raw``."""
    text = _unwrapped(raw.strip().translate(_UNICODE))
    dollars = "\\$" in text or bool(re.match(r"^\s*\$\s*[-\d.]", text))
    text = _FRACTION.sub(r"\\frac", _NOISE.sub(" ", text))
    text = _DIGIT_GAP.sub("", text)
    for pattern, replacement in _simple:
        text = pattern.sub(replacement, text)
    text = _SPACE.sub(" ", text)
    text = _plain_fonts(text)
    text = _DEGREE.sub(" degrees ", text)
    text = re.sub(r"\\?%", " percent ", text)
    text = re.sub(r"\s+", " ", text).strip()
    text = text.rstrip(".,; ") if not text.endswith("\\.") else text
    return _without_unit(text, "dollar" if dollars else "")


def _unwrapped(text: str) -> str:
    """Without displays and boxes around the whole."""
    for _ in range(4):
        if found := _DISPLAY.match(text):
            inner = next(group for group in found.groups() if group is not None)
            if "$" in inner:
                return text
            text = inner.strip()
        elif text.startswith(r"\boxed{") and text.endswith("}") and text.count("{") == text.count("}"):
            text = text[len(r"\boxed{") : -1].strip()
        else:
            return text
    return text


def _plain_fonts(text: str) -> str:
    r"""The inside of ``\text{...}`` and its kind, set apart by spaces."""
    for _ in range(20):
        found = _FONT.search(text)
        if found is None:
            return text
        end = closing(text, found.end() - 1)
        if end < 0:
            return text
        text = f"{text[: found.start()]} {text[found.end() : end]} {text[end + 1 :]}"
    return text


def closing(text: str, start: int) -> int:
    """Index of the brace that closes the one at ``start``, -1 where none does."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return place
    return -1


def _without_unit(text: str, unit: str) -> Clean:
    found = _UNIT.match(text)
    if found and not _FUNCTIONS & set(re.findall(r"[a-z]+", found["unit"].lower())):
        words = " ".join(found["unit"].lower().replace("/", " per ").split()).rstrip(".")
        if not found["value"].rstrip().endswith("\\"):
            return Clean(found["value"].strip(), _unit(words, found["power"] or "") or unit)
    return Clean(text, unit)


def _unit(words: str, power: str) -> str:
    """Without plural; ``square inches`` and ``inches^2`` alike."""
    if words in _GENERIC:
        return ""
    for word, meant in (("square ", "2"), ("sq ", "2"), ("cubic ", "3")):
        if words.startswith(word):
            words, power = words.removeprefix(word), meant
    return f"{words.removesuffix('s')}{'^' if power else ''}{power}"
