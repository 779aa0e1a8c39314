"""An answer without what a sentence puts around it: closing marks, quotation marks, an aside behind a comma."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

from agent0.grading.extraction.phrases import HEDGE, NUMERALS

MOST = 4
_QUOTES = ('""', "''", "‘’", "“”", "«»", "»«", "‹›", "„“", "„”", "‚‘", "「」", "『』", "《》", "【】", "〈〉", "<>")
_smiley = re.compile(r"\s*(?:[:;=]['’]?-?[)D\]pP(]|\^_\^|<3|[\U0001f300-\U0001faff☀-➿\ufe0f]+)\s*\Z")
_closing = re.compile(r"(?:[\s.;,!…~]|\\[!,;: ]|\(!+\)|\.{2,}|\s+[-–—]|[–—]|(?<=[\w)}\]])[-–—](?=\Z))+\Z")
_dots = re.compile(r"(?:[,+]\s*|\.\d+\s*|\\[a-z]*\s*)(?:\.{3}|…)\Z")
_brackets = re.compile(r"\s*([()\[\]{}<>](?:\s*[()\[\]{}<>])*)\s*\.?\s*")
"""Brackets alone, which are then the answer and close nothing."""
_aside = re.compile(
    r"(?P<value>(?=.*[\d$\\])[^\n]*?[\w)}\]%$°*])\s*,\s+(?P<words>(?:I (?:believe|think|am sure|am certain"
    r"|am confident)|(?!(?:[a-z]|pi|infinity|oo|undefined|none|zero)\b)[a-z][A-Za-z'’ -]*(?:,\s+[a-z][A-Za-z'’ -]*)*))"
)
_alters = re.compile(
    rf"(?i)\b(?:or|and|plus|minus|per ?cent|double[ds]?|halved|rather|unsure|approximately|about|roughly (?!speaking)"
    rf"|hmm|actually|squared|cubed|positive|respectively|degrees?|radians?|cents?|minutes?|seconds?|should|else|no"
    rf"|presumably|mistaken|{NUMERALS})\b|{HEDGE.pattern}"
)
"""Words that make another answer of what stands before them, or none."""

_sure = re.compile(r"(?i)\bI (?:believe|think)\b|\b(?:without|no|beyond) (?:an?y? )?doubt\b")


def trimmed(text: str) -> str:
    """Return ``text`` without marks that end a sentence and quotation marks around all of it."""
    if alone := _brackets.fullmatch(text):
        return alone[1]
    for _ in range(MOST):
        bare = text if _dots.search(text) else _closing.sub("", _smiley.sub("", text))
        shorter = unquoted(_unclosed(bare)).strip(" *`_\n\t")
        if shorter == text:
            break
        text = shorter
    return text


def unquoted(text: str) -> str:
    """Return ``text`` without quotation marks around all of it; those of feet, inches and derivatives stay."""
    text = text.strip()
    if text.startswith("``") and text.endswith("''"):
        return text[2:-2].strip()
    inside = text[1:-1]
    quoted = len(text) > 2 and text[0] + text[-1] in _QUOTES and not {text[0], text[-1]} & set(inside)
    return inside.strip() if quoted and not (text[0] == "<" and "," in inside) else text


def _unclosed(text: str) -> str:
    """``text`` without one bracket at its end that nothing in it opens."""
    left, right = {")": "(", "]": "[", "}": "{"}.get(text[-1:], ""), text[-1:]
    alone = left and text.count(left) + 1 == text.count(right) and not text.endswith("\\" + right)
    return text[:-1] if alone and not re.search(r"[\[(].*,", text) else text


def without_aside(text: str) -> str:
    """Return ``text`` up to the comma behind which words stand that are no part of its value: ``72, in total``."""
    aside = _aside.fullmatch(text)
    return aside["value"] if aside and not _alters.search(_sure.sub("", aside["words"])) else text
