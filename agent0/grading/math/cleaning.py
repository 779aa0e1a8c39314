"""Answers without markup, with signs and commands in one spelling; then without units. String work in linear time."""

# ruff: noqa: RUF001 (look-alike characters are what is replaced here)
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from agent0.chat_format import opened
from agent0.grading.math.algebra import opaque
from agent0.grading.math.units import cut_unit, spelt
from agent0.grading.rules import rewrite, rules, without_entities

MOST = 20
_NAMED = """
    √ sqrt ∞ infty × times · cdot ⋅ cdot ≤ le ≥ ge ⩽ le ⩾ ge ≠ ne ≈ approx ≡ equiv ≅ cong ∼ sim ∝ propto ± pm ∓ mp
    ∪ cup ∩ cap ∈ in ∉ notin ⊂ subset ⊆ subseteq ⊃ supset ∖ setminus ∅ emptyset ∠ angle △ triangle ∥ parallel ⊥ perp
    ⟂ perp ⟨ langle ⟩ rangle ∣ mid → to ⇒ Rightarrow ⇔ Leftrightarrow ↔ leftrightarrow ∧ land ∨ lor ¬ neg ∀ forall
    ∃ exists ⊕ oplus ∘ circ ∇ nabla ∂ partial ∑ sum ∏ prod ∫ int ⌊ lfloor ⌋ rfloor ⌈ lceil ⌉ rceil … ldots ϕ phi
    λ lambda Λ Lambda µ mu
""".split()  # noqa: SIM905 (a list would fill a page)
_PLAIN = {
    "−": "-", "–": "-", "—": "-", "÷": "/", "⁄": "/", "°": " degrees ", "º": " degrees ", "€": " euros ",
    "£": " gbp ", "′": "'", "’": "'", "″": "''", "∶": ":", "\ufe0f": "", "\u2062": "*", "\u2063": ",", "\u2064": "+",
}  # fmt: skip
_greek = re.compile(r"GREEK (SMALL|CAPITAL) LETTER ([A-Z]+)")


class _Signs(dict[int, str]):
    """How each character is written in LaTeX, for ``str.translate``; looked up in Unicode's names at first use."""

    def __missing__(self, code: int) -> str:
        sign, name = chr(code), unicodedata.name(chr(code), "")
        if code < 128:
            latex = sign
        elif letter := _greek.fullmatch(name):
            latex = rf"\{letter[2].lower() if letter[1] == 'SMALL' else letter[2].capitalize()} "
        elif name.startswith("DOUBLE-STRUCK CAPITAL"):
            latex = rf"\mathbb{{{name[-1]}}}"
        elif name.startswith("VULGAR FRACTION"):
            latex = r"\frac{{{}}}{{{}}}".format(*unicodedata.normalize("NFKC", sign).split("⁄"))
        else:
            unseen = {"Cf": "", "So": " "}.get(unicodedata.category(sign))
            latex = unicodedata.normalize("NFKC", sign) if unseen is None else unseen
        self[code] = latex
        return latex


_SIGNS = _Signs(
    {ord(sign): rf"\{name} " for sign, name in zip(_NAMED[::2], _NAMED[1::2], strict=True)}
    | {ord(sign): plain for sign, plain in _PLAIN.items()}
)
_raised = re.compile("[ʰʲˡʳˢʷˣʸᵃᵇᶜᵈᵉᵏᵐⁿᵒᵖᵗᵘᵛ⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀ]+")
_lowered = re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_script = re.compile(r"<(sup|sub)>([^<>]{1,40})</\1>", re.IGNORECASE)
_tag = re.compile(
    r"</?(?:b|strong|i|em|u|p|br|span|div|font|code|mark|big|small|center|h[1-6])(?:\s[^<>]*)?/?>", re.IGNORECASE
)
_formula = re.compile(
    r"^\s*(?:\$\$?([^$]+)\$\$?|\\\((.+)\\\)|\\\[(.+)\\\]|(?:\*\*|__|`)([^*_`]+)(?:\*\*|__|`))\s*\.?\s*$", re.S
)
_spoken = re.compile(
    r"^\s*(?:\\(?:text|mathrm)\s*\{\s*)?(?:the )?(?:final )?answer(?: is|:)\s*\}?\s*(?=[^\s}])", re.IGNORECASE
)
_colour = re.compile(
    r"\\(?:text)?color(?:box)?\s*(?:\[\w+\])?\s*\{[\w.,!\-# ]*[A-Za-z.,#][\w.,!\-# ]*\}\s*"
    r"|\\fcolorbox\s*\{\w+\}\s*\{\w+\}|\\(?:style|class|cssId)\s*\{[^{}]*\}"
)
_NO_MARKUP = dict.fromkeys(
    """
    tiny scriptsize footnotesize small normalsize large Large LARGE huge Huge displaystyle textstyle boldmath bf it rm
    sf tt bfseries itshape mathstrut left right big bigg Big Bigg bigl bigr bigm Bigl Bigr Bigm biggl biggr Biggl Biggr
    limits nonumber checkmark blacksquare qed square
    """.split(),  # noqa: SIM905
    " ",
)
_COMMANDS = _NO_MARKUP | {
    "dfrac": r"\frac", "tfrac": r"\frac", "cfrac": r"\frac", "dbinom": r"\binom", "tbinom": r"\binom",
    "leq": r"\le ", "leqslant": r"\le ", "leqq": r"\le ", "geq": r"\ge ", "geqslant": r"\ge ", "geqq": r"\ge ",
    "neq": r"\ne ", "lt": "<", "gt": ">", "lbrace": r"\{", "rbrace": r"\}", "colon": ":", "varnothing": r"\emptyset ",
    "implies": r"\Rightarrow ", "Longrightarrow": r"\Rightarrow ", "measuredangle": r"\angle ",
    "sphericalangle": r"\angle ", "Bbbk": r"\mathbb{R}", "Reals": r"\mathbb{R}", "reals": r"\mathbb{R}",
    "R": r"\mathbb{R}", "lvert": "|", "rvert": "|", "lVert": r"\|", "rVert": r"\|", "Vert": r"\|",
}  # fmt: skip
_command = re.compile(r"\\([A-Za-z]+)\s*")
_styled = re.compile(
    r"\\(?:emph|underline|underbrace|overbrace|mathtt|mathsf|mathit|texttt|textsf|textsl|textsc|textup|textmd|mathnormal"
    r"|ensuremath|pmb|bm|boldsymbol|mathbf|textbf|textit|uline|strut|mathcolor)(?![A-Za-z])\s*(?=\{)"
)
_bold = re.compile(
    r"\\(?:mathbf|boldsymbol|bm|pmb)\s*\{?\s*(?:\\hat\s*)?\{?\s*(?:[A-Za-z]|\\[ij]math)\s*\}?\s*\}?(?![A-Za-z\d}])"
)
_numbers = re.compile(r"\\(?:mathbf|mathbb|mathds|Bbb)\s*\{?\s*([RZQNC])\s*\}?(?![A-Za-z])")
_VECTOR = r"\\(?:mathbf|boldsymbol|bm|pmb|vec|overrightarrow)\s*(?:\{\s*([A-Za-z])\s*\}|([A-Za-z])(?![A-Za-z]))"
_CROSS = re.compile(rf"{_VECTOR}\s*\\times\s*{_VECTOR}")
_FONT = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|mbox|hbox|mathrm|mathbf|mathit|mathsf|boldsymbol|bm|operatorname\*?)\s*\{"
)
_SIMPLE = rules(
    (r"(?<=\d)(?:\{,\}|,?\\[,;:! ]|~)\s*(?=\d{3}(?!\d))", ""),
    (r"(?<!\\)\\(?:[!,;: ]|q?quad(?![A-Za-z])|hspace\{[^{}]*\}|phantom\{[^{}]*\})|(?<=[\w)}\]$.,])~", " "),
    (r"\\\$|(?<!\\)\$", " "),
    (r"\\[()\[\]](?!\d*(?:pt|em))", " "),
    (r"\\langle(?![A-Za-z])", "("),
    (r"\\rangle(?![A-Za-z])", ")"),
    (r"\*\*", "^"),
    (r"\\(?:vert|mid)(?![A-Za-z])", "|"),
    (r"\^?\{?\\circ(?![A-Za-z])\}?|\\degree(?![A-Za-z])|\^\{?\\degree\}?", " degrees "),
    (r"\\?%", " percent "),
)


@dataclass(frozen=True)
class Clean:
    """``text`` without its unit; ``unit`` in one spelling, ``percent`` and ``degrees`` are units too."""

    text: str
    unit: str = ""


@lru_cache(4096)
def clean(raw: str) -> Clean:
    """Return ``raw`` without markup and unit: LaTeX noise, spaces, fractions and currency get one form."""
    text = unmarked(raw).strip()
    dollars = "\\$" in text or bool(re.match(r"^\s*\$\s*[-\d.]", text))
    text = spelt(text)
    if r"\times" in text:
        text = _CROSS.sub(lambda match: f" {opaque(f'cross {match[1] or match[2]} {match[3] or match[4]}')} ", text)
    text = " ".join(_without(rewrite(text, _SIMPLE), _FONT).split())
    text = text.rstrip(".,; ") if not text.endswith("\\.") else text
    text = text.removeprefix("=").lstrip()
    value, unit = cut_unit(text)
    return Clean(value, unit or ("dollar" if dollars else ""))


def latex_signs(raw: str) -> str:
    """Return ``raw`` with signs in the spelling of LaTeX; runs of raised signs and lowered digits in braces."""
    if raw.isascii():
        return raw
    raw = _raised.sub(lambda run: f"^{{{unicodedata.normalize('NFKC', run[0])}}}", raw)
    raw = _lowered.sub(lambda run: f"_{{{unicodedata.normalize('NFKC', run[0])}}}", raw)
    return raw.translate(_SIGNS)


@lru_cache(4096)
def unmarked(text: str) -> str:
    """Return ``text`` without markup around and inside of it; a bold letter of a product of vectors stays bold."""
    text = without_entities(text)
    if "<" in text:
        text = _tag.sub(" ", _script.sub(lambda f: f"{'^' if f[1].lower() == 'sup' else '_'}{{{f[2]}}}", text))
    text = latex_signs(text)
    for _ in range(3):
        if match := _formula.fullmatch(text):
            text = str(match[match.lastindex or 0]).strip()
    text = _unstyled(opened(text)) if "\\" in text else text
    return _spoken.sub("", text)


def _unstyled(text: str) -> str:
    text = _command.sub(lambda f: _COMMANDS.get(f[1], f[0]), _colour.sub("", text))
    text = _numbers.sub(r"\\mathbb{\1}", text)
    is_vector = _bold.search(text) and re.search(r"\\times|\\cdot|[ijk]|\\[ij]math", text)
    return text if is_vector else _without(text, _styled)


def _without(text: str, command: re.Pattern[str]) -> str:
    """``text`` with what the braces behind ``command`` hold in its place, set apart by spaces."""
    for _ in range(MOST):
        match = command.search(text)
        start = match.end() - text[match.start() : match.end()].endswith("{") if match else 0
        if match is None or (end := closing(text, start)) < 0:
            return text
        text = f"{text[: match.start()]} {text[start + 1 : end]} {text[end + 1 :]}"
    return text


def closing(text: Sequence[str], start: int, opens: str = "{", closes: str = "}") -> int:
    """Index of what closes the bracket at ``start``, -1 where nothing does."""
    depth = 0
    for end in range(start, len(text)):
        depth += (text[end] in opens) - (text[end] in closes)
        if depth == 0:
            return end
    return -1
