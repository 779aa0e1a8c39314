"""Whether a writer takes back what a reply gave as its answer: behind it, it is called wrong, or another value stands
in its place after a word of correction."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re
from typing import NamedTuple

from agent0.chat_format import boxes
from agent0.turns.languages import ANSWER_IS, CORRECTION, CORRECTION_BEFORE_LETTERS, WRONG

LONGEST = 400
"""Characters behind an answer in which it is taken back, or not at all."""
_joint = r"[\s$,.;:!?)\\\]*_—–…。，、！-]{0,8}"
_interjection = (
    r"(?:(?:but |oh,? |ah,? |and )?(?:wait|no|oops|scratch that|sorry|hold on|hm+|actually|moment|nein|non"
    r"|nein,? moment|attendez|espera|espere|aspetta|нет|подождите)(?![A-Za-z])[,.!…\s—–-]{0,4}){0,3}"
)
_wrong = re.compile(
    rf"(?i){_joint}{_interjection}(?:(?:(?:was|is) (?:my|the|an?) (?:first|initial|earlier|old|tentative)[^.\n]{{0,40}}"
    r"[,;] )?(?:but |and |however,? )?(?:(?:(?:that|this|it|which) )?(?:is|was|would be)|(?:that|this|it)['’]s)"
    r" (?:\w+ )?(?:wrong|incorrect|false|a mistake|mistaken|not (?:correct|right|the answer|it|true))\b[^.\n]*"
    r"(?:\.\s|\n|\Z|\.\Z)"
    r"|(?:i(?:['’]ve| have)? made an? (?:mistake|error)|i was wrong|let me (?:redo|recompute|recalculate"
    rf"|start over|try again)\b)[^.:\n]*(?:[.:\n]|\Z)|{WRONG}[^.。，,\n]*(?:[.。，,\n]|\Z))"
)
_correction = re.compile(
    rf"{_joint}(?:(?:(?:but |oh,? |hm+,? |ah,? |and )?(?:wait|no|oops|scratch that|sorry|actually|correction|hold on"
    r"|hm+|my mistake|(?:on|upon) (?:second thought|(?:closer )?(?:reflection|review|inspection))|i made an?"
    r" (?:mistake|error)|i was wrong|let me (?:correct|(?:double.?|re.?)?(?:check|verify|count|consider|think"
    rf"|evaluate|read)))|(?P<foreign>{CORRECTION}))\b|(?P<letters>{CORRECTION_BEFORE_LETTERS})"
    r"|(?P<aside>(?:but|however),? (?=(?:we|i|this|that|it|with|since|there|\(?[A-J]\)?)(?![A-Za-z])))).{0,240}",
    re.IGNORECASE | re.DOTALL,
)
_letter = r"(?-i:\(?[A-J]\)?)(?![A-Za-z])"
_other = re.compile(
    rf"(?i)(?:answer(?: is| should be| must be|:)|{ANSWER_IS}|it(?:['’]s| is| should be| must be| has to be)"
    r"|should (?:be|read)|must be|(?:that|which) makes(?: it| that)?|we get|\btotal(?: is|:)"
    r"|\bha(?:s|ve) (?=\d+ (?:[a-z]+ )?(?:in (?:total|all)|altogether)\b)|correction ?:"
    rf"|(?:actually|\bno|wait|sorry|oops|scratch that)[,:]? (?=[-\d$\\(]|{_letter})|\bgo(?:ing)? with(?: option)?|\bso"
    rf" (?=-?[\d./]+[.!]?\s*\Z|{_letter}\.?\s*\Z))(?: actually| really)?[\s:$*]*(?P<value>{_letter}"
    r"|[-−]?\\?[\w\\{}/.,^()-]*[\d}][\w\\{}/.,^()-]*)"
    rf"|\b(?:option )?(?P<better>{_letter}) (?:is|fits|seems|looks) (?:the )?(?:(?!not)\w+ )?(?:better|correct"
    r"|right|best)\b"
)
_number = re.compile(
    r"(?<!не )(?<!nicht )(?<!no es )(?<!pas )(?<!non )(?<!não )(?<!não é )(?<!不是)(?<![\d.,])(?P<value>[-−]?\d[\d.,/]*"
    r"|(?<![A-Za-z])(?-i:[A-J])(?![A-Za-z]))"
)
"""A value that is not denied."""
_unreal = re.compile(r"(?i)\b(?:if|would|were|could)\b")


class Retraction(NamedTuple):
    """Where a text goes on behind an answer that it takes back, and the value that stands in its place, if any."""

    end: int
    value: str = ""


def taken_back(text: str, end: int, value: str) -> Retraction | None:
    """Return how ``text`` takes back ``value``, which ends at ``end``; None where it does not."""
    behind = text[end : end + LONGEST]
    if match := _wrong.match(behind):
        return Retraction(end + match.end())
    if not (correction := _correction.match(behind)):
        return None
    is_foreign = correction["foreign"] or correction["letters"]
    others = [*(_number if is_foreign else _other).finditer(correction[0])]
    if not others or (correction["aside"] and _unreal.search(correction[0])):
        return None
    other = others[-1]
    instead = str(other["value"] or other["better"])
    return Retraction(end + other.start(), instead.rstrip(".,")) if _bare(instead) != _bare(value) else None


def box_taken_back(text: str) -> Retraction | None:
    """Return how ``text`` takes back its last closed box; None where it does not."""
    last = next((box for box in reversed(boxes(text)) if box.closed), None)
    return taken_back(text, last.end + 1, text[last.inside : last.end]) if last else None


def _bare(value: str) -> str:
    return re.sub(r"[\s$(){}]|\\[,;! ]", "", value).rstrip(".,").replace("−", "-").lower()
