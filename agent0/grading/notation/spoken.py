r"""Formulas in words: ``three plus root two``, ``2 pi over 3``, ``n factorial``, ``alpha plus beta``.

A text is read only where each of its words is mathematics, and only in the way in which it is written down: nothing is
computed. ``plus`` and ``over`` in one text say two things, so that is not read.
"""

import re

from agent0.grading.math.lexer import GREEK
from agent0.grading.math.units import NUMERALS
from agent0.grading.notation.numerals import figures
from agent0.grading.rules import rewrite, rules

LONGEST = 160
_phrases = rules(
    *((rf"(?<![A-Za-z\\])(?:{pattern})(?![A-Za-z])", sign.replace("\\", r"\\")) for pattern, sign in (
        (r"(?:the )?(?:cube|cubic|third) root of|cuberoot|cbrt", " cuberoot "),
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
        (r"(?:positive )?infinity", r" \infty "),
        (r"(?:natural log|ln) of", r" \ln "),
    )),
    flags=re.IGNORECASE,
)  # fmt: skip
_word = re.compile(r"[A-Za-z]{2,}")
_numeral = re.compile(
    r"(?:(?:"
    + "|".join(sorted({w for w in NUMERALS if " " not in w and "-" not in w}, key=len, reverse=True))
    + r"|hundred|thousand|million|billion|half|halves|thirds?|quarters?|fourths|fifths?|sixths?"
    r"|sevenths?|eighths?|ninths?|tenths?)\b[ -]?)+"
)
_ARGUMENT = r"\s*\(?\s*(\d+(?:\.\d+)?|[a-z]|\\[a-z]+)(?![\w(])\s*\)?"
_LATEX = rules(
    (rf"(?<![A-Za-z\\])({'|'.join(GREEK)}|pi|zeta|eta|kappa|nu|xi|tau|chi|psi)(?![A-Za-z])", r" \\\1 "),
    (rf"cuberoot{_ARGUMENT}", r"\\sqrt[3]{\1}"),
    (rf"fourthroot{_ARGUMENT}", r"\\sqrt[4]{\1}"),
    (rf"root{_ARGUMENT}", r"\\sqrt{\1}"),
    (r"\^\s*\(?\s*(-?\s*\w+|\\[a-z]+)\s*\)?(?!\w)", lambda f: f"^{{{f[1].strip()}}}"),
)
_signs = re.compile(r"\\[A-Za-z]+|[\d\s+*/^!=().,{}\[\]|-]|(?<![A-Za-z])[A-Za-z](?![A-Za-z])")
_APPLIED = rules(
    (r"(?:the )?(gcd|lcm) of (\w+) and (\w+)", r"\\\1(\2, \3)"),
    *(
        (rf"(?:the )?\\?(?:(?:operatorname|mathrm|text)\s*\{{\s*)?{name}\s*\}}?(?:\s*\(([^()]+)\)| of (\w+))\s*", bars)
        for name, bars in (
            ("floor", r"\\lfloor \1\2 \\rfloor"), ("ceil(?:ing)?", r"\\lceil \1\2 \\rceil"),
            ("abs(?:olute value)?", r"|\1\2|"),
        )
    ),
    flags=re.IGNORECASE,
)  # fmt: skip
_geometry = re.compile(
    r"(?:the )?(?:line )?(segment|vector|ray|line|angle|triangle) (?:\\(?:over\w+)\s*\{\s*)?([A-Z]{2,3})\}?"
)
_GEOMETRY = {"segment": "overline", "vector": "overrightarrow", "ray": "overrightarrow", "line": "overleftrightarrow"}
_SIGNS = str.maketrans({"∛": " cuberoot ", "∜": " fourthroot "})


def in_notation(text: str) -> str:
    """Return ``text`` as a formula where all of its words are mathematics, else unchanged."""
    if len(text) > LONGEST or "\\text" in text or not (_word.search(text) or "∛" in text or "∜" in text):
        return text
    text = rewrite(text, _APPLIED)
    if match := _geometry.fullmatch(text.strip(" .$")):
        kind = match[1]
        return rf"\{_GEOMETRY[kind]}{{{match[2]}}}" if kind in _GEOMETRY else rf"\{kind} {match[2]}"
    before = f" {text.translate(_SIGNS).strip(' .')} "
    made = _numeral.sub(lambda f: f" {figures(f[0].strip())} ", before)
    made = rewrite(made, _phrases, _LATEX[:1])
    if made == before or ("/" in made and re.search(r"[+]|\d\s*-|\w\s+-\s", made)):
        return text
    made = rewrite(made, _LATEX[1:])
    return text if _signs.sub("", made).strip() else " ".join(made.split())
