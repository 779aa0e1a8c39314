"""Whether a call that a text writes is only talked about: quoted, warned against, a form without contents, or an
example in a text that goes on to its answer.

What counts is the sentence that leads up to the call, and only where nothing but words that point at it stand between:
"never write this: …" warns, "I do not guess, I compute: …" does not.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from agent0.chat_format import BOX, boxed, is_placeholder
from agent0.events.values import ToolCall
from agent0.turns.retractions import box_taken_back

LONGEST_LEAD = 300
"""Characters before a call in which it is introduced."""
_quoting = re.compile(r"[ \t]{0,8}>(?!>>)")
_verbs = (
    r"(?:writ(?:e|ing)|call(?:ing)?|run(?:ning)?|us(?:e|ing)|execut(?:e|ing)|send(?:ing)?|output(?:ting)?|copy(?:ing)?"
    r"|need|try(?:ing)?|(?:do|mak)(?:e|ing)?(?=\s*(?:[:\n]|\Z)|\s+(?:this|that|it|so|such|a\s+(?:tool\s+)?call|calls)\b))"
)
_pointing = (
    r"(?:[\s*_`\"'(-]+(?:an?|the|this|that|these|it|such|following|something|anything|things?|likes?|as|so|thus|with|in"
    r"|of|to|form|format|syntax|kind|sort|calls?|tools?|code|programs?|blocks?|commands?|json|objects?|python|here|please"
    r"|below|is|are|would|be|looks?|written)\b){0,9}[\s:!*_`\"'(…-]*(?:```\w{0,12}\s*|[-*+]\s+|\d\.\s+)?\Z"
)
_not = r"(?:(?:do|must|should|will|would|need|shall) not|(?:do|must|should|wo|would|need)n['’]t|never)"  # noqa: RUF001
_warned = re.compile(
    rf"(?i)\b(?:(?:{_not}|avoid|instead of|rather than|(?:no need|wrong|mistake|needless|pointless|forbidden"
    rf"|unnecessary|not (?:needed|necessary|allowed)) to)\s+(?:(?:need|have|want|try) to\s+|\w+\s+)?{_verbs}"
    r"|instead of|rather than|avoid|no need for|(?:must|should) (?:not|never) be (?:run|called|executed|used|written)"
    rf"|not(?=\s+(?:this|like)\b)){_pointing}"
)
_warned_below = re.compile(
    rf"(?i)[\s.,;:]*(?:please )?{_not} (?:run|execute|call|use) (?:this|that|it|the (?:code|program|call|block))\b"
)
_warned_within = re.compile(
    rf"`{{3}}[^\n]*\n\s*#[^\n]{{0,40}}(?:{_not} (?:run|execute|use|call)|not to be (?:run|executed))\b", re.IGNORECASE
)
_example = re.compile(
    r"(?i)\b(?:for example|for instance|e\.g\.|such (?:\w+ )?as|examples?|like so|(?:looks?|written|formed|spelled"
    r"|called|read) (?:like|as|with|so|thus)|(?:format|form|syntax) (?:is|of)|(?:this|the|following) (?:form|format"
    r"|syntax)|(?:could|might|may|would (?:normally|usually|otherwise))\s+(?:\w+\s+)?"
    rf"(?:{_verbs}|say|look|be)|would (?:look|be|read)),?{_pointing}"
)
_aside = re.compile(
    r"(?i)[\s,;:-]*(?:it |this |that |which )?(?:is|was|are|would be|would have been|could be|might be)\s+(?:just "
    r"|only )?(?:an? |one |the |how |what )?(?:possible |other )?(?:example|way|form|format|syntax|call|I |others|one )"
)
_answer = re.compile(
    rf"(?im){BOX}\s*\{{"
    r"|^[ \t*#>]{0,8}(?:final )?answer[* \t]{0,4}:\**+[ \t]*(?P<value>\S[^\n]*)"
)
_doubted = re.compile(r"(?i)\}[\s$.,]*(?:\?|(?<=,) but\b|(?:but |hm+,? |oh,? )?(?:wait|hold on|actually|oops|no,))")
_plan = re.compile(
    r"(?i):\s*\Z|```|\b(?:I|we|let|use|using|code|program|python|compute|calculate|run|following|below|here)\b"
)
_empty = re.compile(
    r"\s*(?:\.{3}|…|<[a-z][\w '’-]{0,40}>"  # noqa: RUF001
    r"|#?\s*(?:your|the) (?:python )?(?:code|program|command|text)(?: (?:goes )?here)?)\s*",
    re.IGNORECASE,
)


def is_mentioned(text: str, start: int, end: int, calls: Sequence[ToolCall] = ()) -> bool:
    """Whether the ``calls`` that ``text`` writes from ``start`` to ``end`` are only talked about."""
    if _quoting.match(text, text.rfind("\n", 0, start) + 1):
        return True
    if calls and all(_is_form(call) for call in calls):
        return True
    lead = text[max(0, start - LONGEST_LEAD) : start]
    if _warned.search(lead) or _warned_below.match(text, end) or _warned_within.match(text, start):
        return True
    is_example = _example.search(lead) or _aside.match(text, end)
    return bool(is_example) and _last_answer(text) >= end


@lru_cache(4)
def _last_answer(text: str) -> int:
    """Where the last answer of ``text`` begins; -1 where there is none."""
    return max((match.start() for match in _answer.finditer(text)), default=-1)


def is_answered(text: str) -> bool:
    """Whether ``text`` gives an answer that it does not take back."""
    box = None if box_taken_back(text) or _doubted.search(text) else boxed(text)
    if box is not None and box.strip() and not is_placeholder(box):
        return True
    values = [match["value"] for match in _answer.finditer(text) if match["value"]]
    return bool(values) and not _plan.search(values[-1]) and not is_placeholder(values[-1])


def _is_form(call: ToolCall) -> bool:
    """Whether a call shows only where its arguments stand: ``{"code": "..."}``."""
    values = call.arguments.values()
    return bool(values) and all(isinstance(value, str) and _empty.fullmatch(value) for value in values)
