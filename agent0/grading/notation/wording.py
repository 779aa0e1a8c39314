"""Words around an answer that only say what kind of thing it is; ordinals; cases in words."""

import re

_NOUNS = (
    r"(?:solution set|solution|set|closed interval|open interval|half-open interval|interval|union|ordered pair"
    r"|ordered triple|pair|triple|tuple|point|vector|column vector|row vector|matrix|sequence|list|polynomial|function"
    r"|expression|equation|line|circle|parabola|inequality|fraction|decimal|number|integer|values?|coordinates|numbers"
    r"|roots|polynomials)"
)
_lead = re.compile(
    rf"\s*(?:\\text\s*\{{\s*)?(?:(?:it|the (?:answer|result)) (?:is|are)\s+)?(?:the|a|an)\s+{_NOUNS}"
    r"(?: of solutions| is| are|:)?\s*\}?\s+(?=[$\\({\[\d<⟨-])",
    re.IGNORECASE,
)
_note = re.compile(
    r"(?<=[\d}])(?:\\[ ,;:]|~|\s)*(?:\\(?:text|textit|mathrm)\s*\{\s*\(([a-z][a-z ]{1,30})\)\s*\}"
    r"|\(([a-z][a-z ]{2,30})\))\s*\.?$"
)
_not_note = re.compile(r"\b(?:not|or|and|if|mod|base|approx|about|per|less|more|wrong|only|to|each|a|an)\b")
_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
    "twentieth",
)  # fmt: skip
_ordinal = re.compile(
    r"\s*(?:the\s+)?(\d{1,2})(?:\s*\^?\s*\{?\s*(?:\\text\s*\{)?\s*(?:st|nd|rd|th)\s*\}*)\s*", re.IGNORECASE
)
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_month = re.compile(rf"\b{_MONTH}\b")
_day_of = re.compile(
    rf"\s*(?:on )?(?:the )?(twenty-|thirty-)?({'|'.join(_ORDINALS)})(?: day)? of ({_MONTH})", re.IGNORECASE
)
_in_text = re.compile(r"\s*\\(?:text|textbf|mathrm|mbox)\s*\{\s*([^{}]+?)\s*\}\s*\.?\s*")
_before = re.compile(r"(?:on|in|it is|it's|at|by|a|an)\s+(?:the\s+)?(?=[A-Z])")
_part = re.compile(
    r"\s*(?:[a-zA-Z]\s*\(\s*[a-z]\s*\)\s*=)?\s*(\S.*?)\s*,?\s+(?:\\text\s*\{\s*)?(?:for|if|when|whenever)\s*\}?\s+(\S.*?)\s*"
)
_joint = re.compile(
    r"\s*(?:[;\n]|,\s*(?:and\b)?|\band\b|\\text\s*\{\s*,?\s*and\s*\})\s*(?=\S[^,;]*\b(?:for|if|when|whenever)\b)"
)


def without_words(answer: str, gold: str) -> str:
    """Return ``answer`` without ``the set`` and its kind before mathematics and a note in brackets behind it, in cases
    where it says them in words and the gold has them."""
    if r"\begin{cases}" in gold.replace(" ", "") and r"\begin" not in answer:
        return _cases(answer)
    if _month.search(gold) and (match := _day_of.match(answer)):
        tens = {"twenty-": 20, "thirty-": 30}.get((match[1] or "").lower(), 0)
        return f"{match[3]} {tens + _ORDINALS.index(match[2].lower()) + 1}{answer[match.end() :]}"
    if (match := _in_text.fullmatch(gold)) and match[1].isalpha():
        return _worded(answer, match[1])
    if " " in answer and not _lead.match(gold) and (match := _lead.match(answer)):
        rest = answer[match.end() :].rstrip()
        answer = rest.removesuffix("$").lstrip("$") if rest.count("$") < len("$$$") else rest
    note = _note.search(answer)
    return answer[: note.start()] if note and not _not_note.search(note[0]) and "(" not in gold else answer


def _worded(answer: str, gold: str) -> str:
    """``answer`` without a preposition where the gold is a name, and an ordinal in a word where it is one."""
    if gold.lower() in _ORDINALS and (match := _ordinal.fullmatch(answer)) and 0 < int(match[1]) <= len(_ORDINALS):
        return _ORDINALS[int(match[1]) - 1]
    return _before.sub("", answer, count=1) if gold[:1].isupper() and _before.match(answer) else answer


def _cases(answer: str) -> str:
    rows = [_part.fullmatch(part) for part in _joint.split(answer.strip().strip("$").rstrip("."))]
    if len(rows) < len("ab") or not all(rows):
        return answer
    return r"\begin{cases}" + r" \\ ".join(f"{row[1]} & {row[2]}" for row in rows if row) + r"\end{cases}"
