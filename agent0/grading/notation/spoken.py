r"""Formulas in words: ``three plus root two``, ``2 pi over 3``, ``n factorial``, ``alpha plus beta``.

A text is read only where each of its words is mathematics, and only in the way in which it is written down: nothing is
computed. ``plus`` and ``over`` in one text say two things, so that is not read.
"""

import re

from agent0.grading.math.units import NUMERALS
from agent0.grading.notation.numerals import figures
from agent0.grading.rules import rewrite, rules

LONGEST = 160
_GREEK = [
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda", "mu", "nu", "xi", "pi",
    "rho", "sigma", "tau", "phi", "chi", "psi", "omega"
]  # fmt: skip
_PHRASES: tuple[tuple[str, str], ...] = (
    (r"(?:the )?(?:cube|cubic|third) root of", " cuberoot "),
    (r"(?:the )?fourth root of", " fourthroot "),
    (r"(?:the )?(?:positive |principal )?square root of|(?:the )?sqrt of|root", " root "),
    (r"(?:raised )?to the power(?: of)?|to the", " ^ "),
    (r"(?:the )?(?:inverse|arc) ?sine?(?: of)?|arcsine", r" \arcsin "),
    (r"(?:the )?(?:inverse|arc) ?cos(?:ine)?(?: of)?|arccosine", r" \arccos "),
    (r"(?:the )?(?:inverse|arc) ?tan(?:gent)?(?: of)?|arctangent|arctg", r" \arctan "),
    (r"(?:the )?(?:hcf|greatest common divisor|greatest common factor)", r" \gcd "),
    (r"divided by|over|out of", " / "),
    (r"multiplied by|times", " * "),
    (r"plus or minus|plus-or-minus", r" \pm "),
    (r"plus", " + "),
    (r"minus|negative", " - "),
    (r"(?:is )?equals?(?: to)?", " = "),
    (r"squared", " ^2 "),
    (r"cubed", " ^3 "),
    (r"factorial", " ! "),
    (r"choose", " choose "),
    (r"(?:positive )?infinity", r" \infty "),
    (r"(?:natural log|ln) of", r" \ln "),
    (r"cuberoot|cbrt", " cuberoot "),
)
_phrases = rules(
    *((rf"(?<![A-Za-z\\])(?:{pattern})(?![A-Za-z])", sign.replace("\\", r"\\")) for pattern, sign in _PHRASES),
    flags=re.IGNORECASE,
)
_word = re.compile(r"[A-Za-z]{2,}")
_numeral = re.compile(
    r"(?:(?:"
    + "|".join(sorted({w for w in NUMERALS if " " not in w and "-" not in w}, key=len, reverse=True))
    + r"|hundred|thousand|million|billion|half|halves|thirds?|quarters?|fourths|fifths?|sixths?"
    r"|sevenths?|eighths?|ninths?|tenths?)\b[ -]?)+"
)
_root = re.compile(r"(cuberoot|fourthroot|root)\s*\(?\s*(\d+(?:\.\d+)?|[a-z]|\\[a-z]+)(?![\w(])\s*\)?")
_choose = re.compile(r"(\w+) +choose +(\w+)")
_power = re.compile(r"\^\s*\(?\s*(-?\s*\w+|\\[a-z]+)\s*\)?(?!\w)")
_signs = re.compile(r"\\[A-Za-z]+|[\d\s+*/^!=().,{}\[\]|-]|(?<![A-Za-z])[A-Za-z](?![A-Za-z])")
_applied = re.compile(
    r"(?:the )?\\?(?:(?:operatorname|mathrm|text)\s*\{\s*)?(floor|ceil(?:ing)?|abs(?:olute value)?)\s*\}?"
    r"(?:\s*\(([^()]+)\)| of (\w+))\s*",
    re.IGNORECASE,
)
_common = re.compile(r"(?:the )?(gcd|lcm) of (\w+) and (\w+)", re.IGNORECASE)
_geometry = re.compile(
    r"(?:the )?(?:line )?(segment|vector|ray|line|angle|triangle) (?:\\(?:over\w+)\s*\{\s*)?([A-Z]{2,3})\}?"
)
_GEOMETRY = {"segment": "overline", "vector": "overrightarrow", "ray": "overrightarrow", "line": "overleftrightarrow"}
_SIGNS = str.maketrans({"∛": " cuberoot ", "∜": " fourthroot "})


def in_notation(text: str) -> str:
    """Return ``text`` as a formula where all of its words are mathematics, else unchanged."""
    if len(text) > LONGEST or "\\text" in text or not (_word.search(text) or "∛" in text or "∜" in text):
        return text
    text = _common.sub(r"\\\1(\2, \3)", text)
    text = _applied.sub(_as_bars, text)
    if match := _geometry.fullmatch(text.strip(" .$")):
        kind = match[1]
        return rf"\{_GEOMETRY[kind]}{{{match[2]}}}" if kind in _GEOMETRY else rf"\{kind} {match[2]}"
    before = f" {text.translate(_SIGNS).strip(' .')} "
    made = _numeral.sub(lambda f: f" {figures(f[0].strip())} ", before)
    made = _greek(rewrite(made, _phrases))
    if made == before or ("/" in made and re.search(r"[+]|\d\s*-|\w\s+-\s", made)):
        return text
    made = _root.sub(_rooted, made)
    made = _choose.sub(r"\\binom{\1}{\2}", made)
    made = _power.sub(lambda f: f"^{{{f[1].strip()}}}", made)
    rest = _signs.sub("", made)
    return " ".join(made.split()) if not rest.strip() else text


def _as_bars(match: re.Match[str]) -> str:
    """``floor(x)`` and ``the absolute value of x`` with the bars that they are written with."""
    inner, kind = match[2] or match[3], match[1][0].lower()
    left, right = {"f": (r"\lfloor ", r" \rfloor"), "c": (r"\lceil ", r" \rceil")}.get(kind, ("|", "|"))
    return f"{left}{inner}{right}"


def _greek(text: str) -> str:
    return re.sub(rf"(?<![A-Za-z\\])({'|'.join(_GREEK)})(?![A-Za-z])", r" \\\1 ", text)


def _rooted(match: re.Match[str]) -> str:
    order = {"cuberoot": "[3]", "fourthroot": "[4]"}.get(match[1], "")
    return rf"\sqrt{order}{{{match[2]}}}"
