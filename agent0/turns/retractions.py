"""Whether a writer takes back what a reply gave as its answer: behind it, it is called wrong, or another value stands
in its place after a word of correction."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

from agent0.chat_format import boxes
from agent0.turns.languages import ANSWER_IS, CORRECTION, CORRECTION_BEFORE_LETTERS, WRONG

LONGEST = 400
"""Characters behind an answer in which it is taken back, or not at all."""
_joint = r"[\s$,.;:!?)\\\]*_—–。，、！-]{0,8}"
_wrong = re.compile(
    rf"(?i){_joint}(?:(?:(?:was|is) (?:my|the|an?) (?:first|initial|earlier|old|tentative)[^.\n]{{0,40}}[,;] )?"
    r"(?:but |and |however,? )?(?:(?:that|this|it|which) )?(?:is|was|would be) (?:\w+ )?(?:wrong|incorrect|false"
    r"|a mistake|mistaken|not (?:correct|right|the answer|it|true))\b[^.\n]*(?:\.\s|\n|\Z|\.\Z)"
    rf"|{WRONG}[^.。，,\n]*(?:[.。，,\n]|\Z))"
)
_correction = re.compile(
    rf"{_joint}(?:(?:but |oh,? |hm+,? |ah,? |and )?(?:wait|no|oops|scratch that|sorry|actually|correction|hold on|hm+"
    r"|my mistake|on second thought|i made an? (?:mistake|error)|i was wrong|let me correct"
    rf"|{CORRECTION})\b|{CORRECTION_BEFORE_LETTERS}).{{0,240}}",
    re.IGNORECASE | re.DOTALL,
)
_other = re.compile(
    rf"(?i)(?:answer(?: is| should be| must be|:)|{ANSWER_IS}|it(?:['’]s| is| should be| must be| has to be)"
    r"|should (?:be|read)|must be|that makes|correction:|(?:actually|\bno|wait|sorry|oops|scratch that)[,:]?"
    r" (?=[-\d$\\(])|\bso (?=-?[\d./]+[.!]?\s*\Z))(?: actually| really)?[\s:$*]*"
    r"(?P<value>(?-i:\(?[A-J]\)?)(?![A-Za-z])|[-−]?\\?[\w\\{}/.,^()-]*[\d}][\w\\{}/.,^()-]*)"
)


def taken_back(text: str, end: int, value: str) -> int:
    """Return where ``text`` goes on once ``value``, which ends at ``end``, is taken back; 0 where it is not."""
    behind = text[end : end + LONGEST]
    if match := _wrong.match(behind):
        return end + match.end()
    correction = _correction.match(behind)
    other = _other.search(correction[0]) if correction else None
    return end + behind.index(other[0]) if other and _bare(other["value"]) != _bare(value) else 0


def box_taken_back(text: str) -> int:
    """Return where ``text`` goes on once its last closed box is taken back; 0 where it is not."""
    last = next((box for box in reversed(boxes(text)) if box.closed), None)
    return taken_back(text, last.end + 1, text[last.inside : last.end]) if last else 0


def _bare(value: str) -> str:
    return re.sub(r"[\s$(){}]|\\[,;! ]", "", value).rstrip(".,").replace("−", "-").lower()
