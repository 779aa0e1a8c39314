"""Markup that means nothing: HTML entities and tags, fonts, colours, sizes, spaces and signs of Unicode."""

# ruff: noqa: RUF001 (signs as they are written)
import re
from functools import lru_cache

from agent0.chat_format import opened
from agent0.grading.math.cleaning import closing, latex_signs
from agent0.grading.rules import without_entities

_script = re.compile(r"<(sup|sub)>([^<>]{1,40})</\1>", re.IGNORECASE)
_tag = re.compile(r"</?(?:b|strong|i|em|u|p|br|span|div|font|code|mark|big|small|center|h[1-6])(?:\s[^<>]*)?/?>", re.I)
_colour = re.compile(
    r"\\(?:text)?color(?:box)?\s*(?:\[\w+\])?\s*\{[\w.,!\-# ]*[A-Za-z.,#][\w.,!\-# ]*\}\s*"
    r"|\\fcolorbox\s*\{\w+\}\s*\{\w+\}|\\(?:style|class|cssId)\s*\{[^{}]*\}|\\(?:checkmark|blacksquare|qed|square)(?![A-Za-z])"
)
_font = re.compile(
    r"\\(?:tiny|scriptsize|footnotesize|small|normalsize|large|Large|LARGE|huge|Huge|displaystyle|textstyle|boldmath"
    r"|bf|it|rm|sf|tt|bfseries|itshape|mathstrut|left|right|[bB]igg?[lrm]?)(?![A-Za-z])\s*"
)
_styled = re.compile(
    r"\\(?:emph|underline|underbrace|overbrace|mathtt|mathsf|mathit|texttt|textsf|textsl|textsc|textup|textmd|mathnormal"
    r"|ensuremath|pmb|bm|boldsymbol|mathbf|textbf|textit|uline|strut|mathcolor)(?![A-Za-z])\s*(?=\{)"
)
_bold = re.compile(
    r"\\(?:mathbf|boldsymbol|bm|pmb)\s*\{?\s*(?:\\hat\s*)?\{?\s*(?:[A-Za-z]|\\[ij]math)\s*\}?\s*\}?(?![A-Za-z\d}])"
)
_numbers = re.compile(r"\\(?:mathbf|Bbb)\s*\{?\s*([RZQN])\s*\}?(?![A-Za-z])")
_emphasis = re.compile(r"^\s*(\*\*|__|`)(.+)\1\s*\.?\s*$", re.DOTALL)
_formula = re.compile(r"^\s*(?:\$\$?([^$]+)\$\$?|\\\((.+)\\\)|\\\[(.+)\\\])\s*\.?\s*$", re.DOTALL)
_angles = str.maketrans({"⟨": r"\langle ", "⟩": r"\rangle ", "⊂": r"\subset ", "⊆": r"\subseteq ", "⊃": r"\supset ",
    "≡": r"\equiv ", "∥": r"\parallel ", "⊥": r"\perp ", "→": r"\to ", "△": r"\triangle ", "ℝ": r"\mathbb{R}",
    "ℤ": r"\mathbb{Z}", "ℚ": r"\mathbb{Q}", "ℕ": r"\mathbb{N}", "′": "'", "″": "''", "∣": r"\mid ", "≅": r"\cong ",
    "∼": r"\sim ", "∖": r"\setminus "})  # fmt: skip
_spoken = re.compile(
    r"^\s*(?:\\(?:text|mathrm)\s*\{\s*)?(?:the )?(?:final )?answer(?: is|:)\s*\}?\s*(?=[^\s}])", re.IGNORECASE
)
MOST = 20


@lru_cache(4096)
def unmarked(text: str) -> str:
    """Return ``text`` without markup around and inside of it; a bold letter of a product of vectors stays bold."""
    text = without_entities(text)
    if "<" in text:
        text = _tag.sub(" ", _script.sub(lambda f: f"{'^' if f[1].lower() == 'sup' else '_'}{{{f[2]}}}", text))
    if not text.isascii():
        text = latex_signs(text.translate(_angles))
    for _ in range(3):
        match = _formula.match(text) or _emphasis.match(text)
        if match is None:
            break
        text = str(match[match.lastindex or 0]).strip()
    text = _unstyled(text) if "\\" in text else text
    return _spoken.sub("", text)


def _unstyled(text: str) -> str:
    text = _numbers.sub(r"\\mathbb{\1}", _font.sub(" ", _colour.sub("", opened(text))))
    if len(_bold.findall(text)) and re.search(r"\\times|\\cdot|[ijk]|\\[ij]math", text):
        return text
    for _ in range(MOST):
        match = _styled.search(text)
        end = closing(text, match.end()) if match else -1
        if match is None or end < 0:
            return text
        text = f"{text[: match.start()]}{text[match.end() + 1 : end]}{text[end + 1 :]}"
    return text
