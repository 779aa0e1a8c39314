"""Statements that are compared as they are written."""

import re

from agent0.grading.math.cleaning import latex_signs
from agent0.grading.rules import rewrite, rules

_STATED = re.compile(
    r"\\(?:equiv|p?mod|pod|n?mid|n?subset(?:eq)?|n?supset(?:eq)?|n?parallel|perp|cong|sim|simeq|to|rightarrow|gets"
    r"|begin\s*\{cases\}|notin)(?![A-Za-z])|[A-Za-z}]\s*\^\s*\{?\s*(?:T(?![a-z])|\\(?:top|intercal|(?:text|mathrm|mathsf)\s*\{?\s*T))"
    r"|[A-Z]\s*\^\s*\{?\s*-\s*1\s*\}?\s*[A-Z]|[A-Z]\s*[A-Z]\s*\^\s*\{?\s*-\s*1|^\s*\w+\s*\|\s*\w+\s*$"
)
_STATEMENT = rules(
    (r"\\q?quad|\\hfill|~", " "),
    (r"\\operatorname\s*\{\s*([^{}]*?)\s*\}", r" \1 "),
    (r"\\rightarrow(?![A-Za-z])", r"\\to"),
    (r"\(?\s*\\?[pb]?mod(?![A-Za-z])\s*\{?\s*(\w+)\s*\}?\s*\)?", r"(mod \1)"),
    (r"\^\s*\{?\s*(?:\\(?:top|intercal)|\\(?:mathsf|mathrm)\s*\{?\s*T\s*\}?|\bT)\s*\}?", "^T "),
    (r"(?<=&)\s*(?:if|for|when)\b|[.,;]\s*(?=\\\\|\\end|&|$)", " "),
    (r"\{\s*(\w)\s*\}", r"\1"),
)
_degrees = re.compile(r"\\circ(?![A-Za-z])|\\degree|\N{DEGREE SIGN}|&deg;|\bdeg(?:ree)?s?\b", re.IGNORECASE)
_pi = re.compile(r"\\pi(?![A-Za-z])|\N{GREEK SMALL LETTER PI}|\bpi\b")
_mathematical = re.compile(r"[\\^_{()<>=+*/]")
_builder = re.compile(r"\{.*(?:\\mid|\||:)", re.DOTALL)
_BAR = rules((r"\\mid(?![A-Za-z])|:|\\(?:vert|colon)(?![A-Za-z])", "|"))
_TIGHT = rules(
    (r"\\(?:text|mathrm|mbox)\s*\{([^{}]*)\}", r" \1 "),
    (r"\\(?:left|right|big|Big)(?![A-Za-z])|(?<!\\)\\[ ,;:!]|\$", ""),
    (r"\\([{}])", r"\1"),
    (r"^[\s.$]+|[\s.$]+$", ""),
    (r"([_^])\s*\{\s*(\w)\s*\}", r"\1\2"),
    (r"\\([lgn]e)q(?![A-Za-z])", r"\\\1"),
    (r"\s+", " "),
    (r"(?<![A-Za-z\d]) | (?![A-Za-z\d])", ""),
)


def same_text(gold: str, answer: str) -> bool | None:
    """True where both are one text of mathematics but for spaces, braces around single signs and, in a set given by a
    condition, the bar; else None."""
    return True if _mathematical.search(gold) and _tight(gold) == _tight(answer) else None


def _tight(text: str) -> str:
    text = rewrite(latex_signs(text), _TIGHT)
    return rewrite(text, _BAR, _TIGHT[-1:]) if _builder.match(text) else text


def degrees_for_radians(gold: str, answer: str) -> bool | None:
    r"""False where degrees are said and the gold is a multiple of :math:`\pi`."""
    return False if _pi.search(gold) and not _degrees.search(gold) and _degrees.search(answer) else None


def same_statement(gold: str, answer: str) -> bool | None:
    """Whether both are the same statement but for spacing; None where the gold is none of the kind."""
    if gold.lstrip().startswith(("\\{", "{", "P(", "(")) or r"\lim" in gold or not _STATED.search(gold):
        return None
    similar = r"\sim" in gold
    return statement(gold) == statement(answer.replace("~", r"\sim ") if similar else answer)


def statement(text: str) -> str:
    """Return ``text`` in the one spelling that equal statements have."""
    return re.sub(r"\s+", "", rewrite(text, _TIGHT[:2], _STATEMENT, _BAR))
