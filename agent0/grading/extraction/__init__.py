"""Where in a reply its answer stands: a box, a tag, a JSON field, a GSM8K mark, a heading or a sentence that says so.

Nowhere else is looked, and never inside of thoughts or behind the end of the reply's own turn.
"""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re
from typing import NamedTuple

from agent0.chat_format import BOX, boxed, boxes, is_placeholder, respelled_boxes, unbraced_boxes
from agent0.grading.extraction.choices import choice_of
from agent0.grading.extraction.conclusions import concluded, other_end
from agent0.grading.extraction.layout import in_sentences
from agent0.grading.extraction.marked import answer_of_object, boxes_of_one_answer, marked_in
from agent0.grading.extraction.phrases import CLAUSE, OPINION, REFUTED, trimmed, unquoted, without_aside
from agent0.grading.rules import rewrite, rules, without_entities
from agent0.turns.marks import own_turn
from agent0.turns.retractions import box_taken_back, taken_back
from agent0.turns.thoughts import split_thoughts

LONGEST, LAST = 200_000, 4_000
"""Characters from the end in which a box is looked for, and everything else."""
LONGEST_CONDITION = 200
STATED, CONCLUDED = "a heading or sentence that states it", "the last statement"
"""Places where an answer is said in words."""
_struck = re.compile(r"(?is)~~[^~\n]{1,200}~~|(?<=\S)\s*<(s|del|strike)>(?:(?!</\1>).){0,200}</\1>")
_SPELLINGS = rules(
    (r"\s{9,}", lambda gap: "\n\n" if "\n" in gap[0] else " "),
    (r"(?i)\[(/?)(?:final[_ ]?)?answer\]", r"<\1answer>"),
    (r"\.(\*\*|__)(?=\s|\Z)", r"\1."),
)
"""Runs of blanks that take patterns long, tags in square brackets, stops within bold."""
_another_question = re.compile(
    r"(?i)\n[ \t*#>_]*(?:(?:next|new|another) )?(?:question|problem|human|user|exercise|<\|(?:im_start"
    r"|user)\|>)[ \t]*\d*[*_]*[ \t]*[:.]"
)
_marks_answer = re.compile(rf"(?i){BOX}|####|\banswer\b[*_]*\s*(?:is|:|=)")
_says = r"(?:is|are|should\s+be|must\s+be|would\s+be|will\s+be|[=-]+>|[=:→⇒⟹]|[-–—]+(?=\s))"
_head = re.compile(
    rf"(?im)(?<![A-Za-z])(?:answer|ans\.?|(?:correct|right|best)\s+(?:option"
    rf"|choice))(?![A-Za-z])[*_]*\s*(?:{_says}[*_]*\s*)+"
    r"|(?<![A-Za-z])ans\.\s+(?=[-\d$\\(])|^(?:[^\w\n]|[\d_]){0,16}(?:the[ \t]+)?(?:final[ \t]+)?answer[*_]*[ \t]*"
    r"(?:\n[-=]{3,}[ \t]*)?\n\s*(?:>[ \t]+(?=[\w$\\]))?"
)
_adverb = re.compile(r"(?i)(?:therefore|thus|indeed|then|simply|just|exactly|clearly|hence|so)[, ]+")
_comment = re.compile(r"(?i)(?:correct|right|wrong|incorrect|verified|as follows|below|above)\b")
_display = re.compile(r"(?s)(?:[^\n$:]{1,80}:[ \t*]*(?=\n))?\s*(?:\$\$(.+?)\$\$|\\\[(.+?)\\\])")
_end = re.compile(
    rf"(?i)\.(?=\s|\Z)|\n|[。।！]|{CLAUSE.pattern}|,?\s+(?:as|so|that is|and (?:we|this|that|it|thus|hence|so"
    r"|therefore)|(?:and )?not(?! (?:really|quite))|(?:und nicht|(?:et )?pas|et non|y no|e non|а не)(?= \d)|(?:even )?"
    r"(?:al)?though)\b|,\s+(?:thus|hence|therefore)\b|\s+if\s+(?:we|you|they|one|rounded)\b"
    r"|,?\s+up to\s(?=[^.\n\d]*(?:[.\n]|\Z))"
)
"""Where an answer ends in the sentence that states it."""
_doubted = re.compile(
    rf"(?i)(?:{OPINION}|whether|not (?:yet )?(?:clear|sure|certain|true|obvious|known|the case)"
    r"(?: (?:if|that))?|doubt(?:ful)?(?: that| if)?|n['’]t (?:think|believe|know|say|tell|mean)(?: that| if)?"
    r"|cannot (?:say|tell)(?: that| if)?|(?:false|wrong|incorrect|untrue) (?:that|to say)|(?:suppose|assume|pretend"
    r"|if)(?: that)?)[,:]?\s+(?:(?:the|my|our|this|that|its?|your|first|final|correct|right|best)\s+){0,3}\Z"
)
"""What stands before "the answer is" in a sentence that does not say so."""
_supposed = re.compile(
    r"(?i)(?:^|[.!?\n]\s*)(?:if|had|were|suppose|without|unless)\b[^.!?\n]*\bwould\b[^.!?\n]*\Z|\b(?:wrong|incorrect"
    r"|common|naive|tempting|initial|previous|earlier|mistaken|false|tentative|(?!(?:problem|question|exercise|today|let"
    r"|it|that|here)['’])[a-z]+['’]s)\s+(?:first\s+)?answer\W+(?:is|are|was|would be)\W+\Z"
)
_sentence_like = re.compile(r"[A-Z][a-z]* [a-z]+ |(?:there|it|we|he|she|they|the) [a-z]+ ")
_set_off = re.compile(r"\*\*[^*]+\*\*|\$[^$]+\$")
"""What a sentence below a heading sets off; one such piece is its answer."""


class Extract(NamedTuple):
    """An answer, None where there is none, and the place in the reply where it stands, or should stand."""

    answer: str | None
    place: str


def reply_of(text: str) -> str:
    """Return what of ``text`` is the reply: its own turn up to another question, without thoughts and without answers
    that are struck out; boxes and tags in one spelling."""
    text = split_thoughts(own_turn(_struck.sub(" ", text) if "</" in text or "~~" in text else text)).visible
    text = rewrite(unquoted(without_entities(text[-LONGEST:])), _SPELLINGS)
    marked = _marks_answer.search(text)
    another = _another_question.search(text, marked.end()) if marked else None
    return respelled_boxes(text[: another.start()] if another else text)


def answer_in(text: str) -> str | None:
    r"""Return the last balanced ``\boxed{...}`` of the reply that ``text`` is; else a box without braces, the answer of
    a JSON object that ends the reply, the last ``<answer>``, JSON field ``answer``, ``####`` (GSM8K's form), heading or
    sentence that states the answer, or what the last statement says, looked for in this order. Several boxes of one
    sentence are one answer, and so is a statement below that repeats them all. None where there is none of these, or
    where a last box is not closed."""
    return extracted(reply_of(text)).answer


def extracted(reply: str) -> Extract:
    """Return the answer in what ``reply_of`` returned, and where it stands there: see ``answer_in``."""
    answer, place = _extracted(reply)
    return Extract(None if answer is None or is_placeholder(answer) else answer, place)


def _extracted(reply: str) -> Extract:
    retraction = box_taken_back(reply)
    if not retraction and boxes(reply):
        if several := boxes_of_one_answer(reply[-LAST:]):
            return Extract(several, "boxes of one answer")
        inside = boxed(reply)
        place = "a box that is not closed" if inside is None else "the last box"
        return Extract(unquoted((inside or "").strip()) or None, place)
    text = reply[retraction.end if retraction else 0 :][-LAST:]
    if bare := unbraced_boxes(text):
        return Extract(bare[-1], "a box without braces")
    is_object, answer = answer_of_object(text)
    if is_object:
        return Extract(answer, "a JSON object")
    extract = _unboxed(in_sentences(text))
    return Extract(retraction.value, CONCLUDED) if retraction and retraction.value and not extract.answer else extract


def _unboxed(text: str) -> Extract:
    """The answer of a reply without boxes; no sentence that doubts what it states counts."""
    if marked := marked_in(text):
        answer, place = _bare(marked[0]), marked[1]
    else:
        answer, place = _stated(text), STATED
    if answer is not None and _sentence_like.match(answer):
        answer = concluded(answer) or answer
    elif answer is None and "tag" not in place:
        answer, place = concluded(text), CONCLUDED
    return Extract(without_aside(trimmed(answer)) if answer else None, place)


def _stated(text: str) -> str | None:
    """What the last sentence or heading states that is no remark on the answer; empty where it is taken back."""
    for head in reversed(list(_head.finditer(text))):
        before = text[max(0, head.start() - LONGEST_CONDITION) : head.start()]
        if _doubted.search(before):
            return None
        adverb = _adverb.match(text, head.end())
        rest = text[adverb.end() if adverb else head.end() :]
        if _supposed.search(before + head[0]) or REFUTED.search(rest.partition("\n")[0].partition(". ")[0]):
            continue
        if shown := _display.match(rest):
            return _bare(shown[1] or shown[2])
        if (answer := _bare(sentence := _sentence(rest))) and not _comment.match(answer):
            retraction = taken_back(text, len(text) - len(rest) + len(sentence), answer)
            if retraction:
                return concluded(text[retraction.end :]) or retraction.value
            behind = re.split(r"\n|[.!](?=\s|\Z)", rest[len(sentence) :], maxsplit=1)[0]
            if end := other_end(answer, behind):
                return concluded(f"It is {end}.") or end
            pieces = _set_off.findall(sentence) if _sentence_like.match(answer) else []
            return _bare(pieces[0]) if len(pieces) == 1 else answer
    return choice_of(text.strip().rpartition("\n")[2].strip(" *"))


def _sentence(text: str) -> str:
    """``text`` up to its first stop, line end or clause that only explains, outside of brackets and formulas."""
    depth = place = 0
    money = text.partition("\n")[0].count("$") % 2  # a sign of its own begins no formula
    for end in (match.start() for match in _end.finditer(text)):
        depth += sum((letter in "([{") - (letter in ")]}") for letter in text[place:end])
        place = end
        if text[end] == "\n" or (depth <= 0 and (money or not text.count("$", 0, end) % 2)):
            return text[:end]
    return text


def _bare(text: str) -> str | None:
    """``text`` without emphasis and formula signs around it; None where nothing is left."""
    text = trimmed(text)
    if len(text) > 2 and text[0] == text[-1] == "$" and "$" not in text[1:-1].strip("$"):
        text = text.strip("$").strip()
    return without_aside(trimmed(text)) or None
