"""Where in a reply its answer stands: a box, a tag, a JSON field, a GSM8K mark, a heading or a sentence that says so.

Nowhere else is looked, and never inside of thoughts or behind the end of the reply's own turn.
"""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import html
import re
from typing import NamedTuple

from agent0.chat_format import boxed, boxes, unbraced_boxes
from agent0.grading.extraction.claims import REFUTED
from agent0.grading.extraction.conclusions import concluded
from agent0.grading.extraction.layout import laid_out
from agent0.grading.extraction.marks import trimmed, unquoted, without_aside
from agent0.grading.extraction.objects import answer_of_object
from agent0.grading.extraction.several_boxes import boxes_of_one_answer
from agent0.grading.extraction.turns import own_question
from agent0.grading.extraction.values_in_words import written_out
from agent0.grading.rules import without_entities
from agent0.turns.marks import own_turn
from agent0.turns.retractions import box_taken_back, taken_back
from agent0.turns.thoughts import split_thoughts

LONGEST, LAST = 200_000, 4_000
"""Characters from the end in which a box is looked for, and everything else."""
_struck = re.compile(
    r"~~[^~\n]{1,200}~~|(?<=\S)\s*<(s|del|strike)>(?:(?!</\1>).){0,200}</\1>", re.IGNORECASE | re.DOTALL
)
_tagged = re.compile(r"<(final_?answer|answer)>(.*?)(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL)
_square = re.compile(r"\[(/?)(?:final[_ ]?)?answer\]", re.IGNORECASE)
_escaped_tag = re.compile(r"&lt;/(?:final_?)?answer&gt;", re.IGNORECASE)
_gaps = re.compile(r"\s{9,}")
"""Runs that take patterns long and mean no more than one blank line."""
_one_option = re.compile(
    r"\(?([A-J])[).:]?|([A-J])[).:] +(?!is |was |can)[A-Za-z\d$\\(-](?:(?!\bnot?\b|\bwrong|\bfalse)[^\n]){0,160}"
)
"""A reply that is one option and nothing else."""
_field = re.compile(
    r'["\'](?:final[_ ]?)?answer["\']\s*:\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'|(-?\d[\d.eE+-]*)|)',
    re.IGNORECASE,
)
_hashes = re.compile(r"####[ \t]*([^\n]+)")
_says = r"(?:is|are|should\s+be|must\s+be|would\s+be|will\s+be|[=-]+>|[=:→⇒⟹]|[-–—]+(?=\s))"
_head = re.compile(
    rf"(?<![A-Za-z])(?:answer|ans\.?|(?:correct|right|best)\s+(?:option"
    rf"|choice))(?![A-Za-z])[*_]*\s*(?:{_says}[*_]*\s*)+"
    r"|(?<![A-Za-z])ans\.\s+(?=[-\d$\\(])|^(?:[^\w\n]|[\d_]){0,16}(?:the[ \t]+)?(?:final[ \t]+)?answer[*_]*[ \t]*"
    r"(?:\n[-=]{3,}[ \t]*)?\n\s*(?:>[ \t]+(?=[\w$\\]))?",
    re.IGNORECASE | re.MULTILINE,
)
_taken = re.compile(
    r"(?:(?:so|thus|hence|therefore),?\s+)?(?:it(?: is|'s)\s+\(([A-J])\)|(?:option|choice"
    r"|answer)\s+\(?([A-J])\)?\s+is\s+(?:the\s+)?(?:correct|right|best)(?:\s+(?:one|answer|option|choice))?)\.?",
    re.IGNORECASE,
)
"""The one sentence that takes a choice without a word for it."""
_heading = re.compile(r"[*_]*(?:the\s+)?(?:final\s+)?answer[*_:. ]*", re.IGNORECASE)
_adverb = re.compile(r"(?:therefore|thus|indeed|then|simply|just|exactly|clearly|hence|so)[, ]+", re.IGNORECASE)
_comment = re.compile(r"(?:correct|right|wrong|incorrect|verified|as follows|below|above)\b", re.IGNORECASE)
_display = re.compile(r"\s*(\$\$(.+?)\$\$|\\\[(.+?)\\\])", re.DOTALL)
_clause = re.compile(
    r",?\s+(?:which|because|since|as|so|where|whereas|while|whose|that is|i\.e\.|meaning|rather than|instead of"
    r"|and (?:we|this|that|it|thus|hence|so|therefore)|(?:and )?not)\b|,\s+(?:given|provided|assuming|obtained|found"
    r"|confirming|giving|making|using|based|namely|after|thus|hence|therefore|in other words)\b|\s+if\s+(?:we|you"
    r"|they|one|rounded)\b|;\s|\s[-–—]+\s+(?=[A-Za-z]{2})|\s+\((?:see|which|since|because|as|i\.e\.|not|that is"
    r"|in other words|given|approx\w*|about|roughly|or about|rounded|exactly|[a-z]+(?:-[a-z]+)? [a-z]+\))"
    r"|,?\s+(?:with|up to)\s(?=[^.\n\d]*(?:[.\n]|\Z))|,?\s+(?:even )?(?:though|although)\s|\s+\((?=[a-z]+:\s)"
    r"|,\s+(?:i\.e\.|or (?:about|roughly|approximately)|leaving)\s",
    re.IGNORECASE,
)
_doubted = re.compile(
    r"(?:whether|not (?:yet )?(?:clear|sure|certain|true|obvious|known|the case)(?: (?:if|that))?"
    r"|doubt(?:ful)?(?: that| if)?|n['\u2019]t (?:think|believe|know|say|tell|mean)(?: that| if)?|cannot (?:say"
    r"|tell)(?: that| if)?|(?:false|wrong|incorrect|untrue) (?:that|to say)|(?:suppose|assume|pretend|if)(?: that)?)"
    r"[,:]?\s+(?:(?:the|my|our|this|that|its?|your|first|final|correct|right|best)\s+){0,3}\Z",
    re.IGNORECASE,
)
"""What stands before "the answer is" in a sentence that does not say so."""
_either_way = re.compile(
    r"[*$]*(?:option |choice )?\(?[A-J]\)?[*$]* (?:if|when|unless|or else)\b[^.\n]*(?:\botherwise\b|\([A-J]\)"
    r"|\belse\b)",
    re.IGNORECASE,
)
MOST_DOUBT = 80
_supposed = re.compile(
    r"(?:^|[.!?\n]\s*)(?:if|had|were|suppose|without|unless)\b[^.!?\n]*\bwould\b[^.!?\n]*\Z", re.IGNORECASE
)
_other_answer = re.compile(
    r"\b(?:wrong|incorrect|common|naive|tempting|initial|previous|earlier|mistaken|false|tentative)\s+(?:first\s+)?\Z",
    re.IGNORECASE,
)
LONGEST_CONDITION = 200
_colon = re.compile(r"[^\n$:]{1,80}:[ \t*]*(?=\n)")
_sentence_like = re.compile(r"[A-Z][a-z]* [a-z]+ |(?:there|it|we|he|she|they|the) [a-z]+ ")
_marked = re.compile(r"\*\*[^*]+\*\*|\$[^$]+\$")
"""What a sentence below a heading sets off; one such piece is its answer."""
_bold_stop = re.compile(r"\.(\*\*|__)(?=\s|\Z)")
_stop = re.compile(r"\.(?=\s|\Z)|\n|[。！]")


class Extract(NamedTuple):
    """An answer, None where there is none, and the place in the reply where it stands."""

    answer: str | None
    place: str


def _unboxed(text: str) -> Extract:
    """The answer that ``text``, which has no boxes, marks as its answer; no sentence that doubts what it states
    counts."""
    if tags := _tagged.findall(text):
        return Extract(_bare(tags[-1][1]), "the last tag")
    if fields := _field.findall(text):
        quoted = (fields[-1][0] or fields[-1][1]).replace("\\\\", "\\").replace('\\"', '"')
        return Extract(_bare(quoted or fields[-1][2]), "a JSON field")
    text = without_entities(text)
    marked = [line for line in _hashes.findall(text) if not _heading.fullmatch(line.strip())]
    if marked:
        return Extract(_bare(marked[-1]), "the mark ####")
    return Extract(_stated(text), "a heading or sentence that states it")


def reply_of(text: str) -> str:
    """Return what of ``text`` is the reply: its own turn, without thoughts and without answers that are struck out."""
    text = split_thoughts(own_turn(_struck.sub(" ", text) if "</" in text or "~~" in text else text)).visible
    if "&lt;" in text[-LAST:] and _escaped_tag.search(text, max(0, len(text) - LAST)):
        text = html.unescape(text[-LONGEST:])
    text = _gaps.sub(lambda gap: "\n\n" if "\n" in gap[0] else " ", text[-LONGEST:])
    return own_question(_bold_stop.sub(r"\1.", _square.sub(r"<\1answer>", unquoted(text))))


def answer_in(text: str) -> str | None:
    r"""Return the last balanced ``\boxed{...}`` of the reply that ``text`` is; else a box without braces, the answer of
    a JSON object that ends the reply, the last ``<answer>``, JSON field ``answer``, ``####`` (GSM8K's form), heading or
    sentence that states the answer, or what the last statement says, looked for in this order. Several boxes of one
    sentence are one answer, and so is a statement below that repeats them all. None where there is none of these, or
    where a last box is not closed."""
    return answer_of_reply(reply_of(text))


def answer_of_reply(reply: str) -> str | None:
    """Return the answer in what ``reply_of`` returned: see ``answer_in``."""
    return extracted(reply).answer


def extracted(reply: str) -> Extract:
    """Return the answer in what ``reply_of`` returned, and where it stands there: see ``answer_in``."""
    rejected = box_taken_back(reply)
    if not rejected and (several := boxes_of_one_answer(reply[-LAST:])):
        return Extract(several, "boxes of one answer")
    if not rejected and boxes(reply):
        inside = boxed(reply)
        return Extract(
            unquoted((inside or "").strip()) or None, "a box that is not closed" if inside is None else "the last box"
        )
    text = reply[rejected:]
    if bare := unbraced_boxes(text[-LAST:]):
        return Extract(bare[-1], "a box without braces")
    is_object, answer = answer_of_object(text[-LAST:])
    if is_object:
        return Extract(answer, "a JSON object")
    text = in_sentences(text)
    answer, place = _unboxed(text)
    if answer is not None and _sentence_like.match(answer) and (stated := concluded(answer)):
        return Extract(stated, place)
    if answer is None and (only := _one_option.fullmatch(text.strip())):
        return Extract(only[1] or only[2], "an option alone")
    if answer is None:
        answer, place = concluded(text), "the last statement"
    return Extract(without_aside(trimmed(answer)) if answer else None, place if answer else "")


def in_sentences(reply: str) -> str:
    """Return the end of ``reply`` with its layout and its values in words as a sentence would write them."""
    return written_out(laid_out(reply[-LAST:]))


def is_marked(reply: str) -> bool:
    """Whether ``reply`` marks its answer: by a box, a tag, a field, a heading or a sentence that says so."""
    return bool(boxes(reply)) or _unboxed(reply[-LAST:]).answer is not None


def _stated(text: str) -> str | None:
    """What the last sentence or heading states that is no remark on the answer."""
    for head in reversed(list(_head.finditer(text))):
        if _doubted.search(text, max(0, head.start() - MOST_DOUBT), head.start()):
            return None
        if _is_doubtful(text, head):
            continue
        rest = _adverb.sub("", text[head.end() :], count=1) if _adverb.match(text, head.end()) else text[head.end() :]
        if (shown := _display.match(rest)) is not None:
            return _bare(shown[2] or shown[3])
        if (match := _colon.match(rest)) and (shown := _display.match(rest, match.end())):
            return _bare(shown[2] or shown[3])
        if (answer := _bare(sentence := _sentence(rest))) and not _comment.match(answer):
            if _either_way.match(rest):
                return None
            return _corrected(text, len(text) - len(rest) + len(sentence), answer) or _set_off(sentence, answer)
    last = _taken.fullmatch(text.strip().rpartition("\n")[2].strip(" *"))
    return last[1] or last[2] if last else None


def _corrected(text: str, end: int, answer: str) -> str | None:
    """What ``text`` concludes in place of ``answer``, which ends at ``end``; None where it is not taken back."""
    goes_on = taken_back(text, end, answer)
    return concluded(text[goes_on:]) if goes_on else None


def _set_off(sentence: str, answer: str) -> str | None:
    """The one piece that ``sentence`` sets off where its answer is a sentence itself, else ``answer``."""
    marked = _marked.findall(sentence) if _sentence_like.match(answer) else []
    return _bare(marked[0]) if len(marked) == 1 else answer


def _is_doubtful(text: str, head: re.Match[str]) -> bool:
    """Whether the sentence of ``head`` only supposes what it states, or the next one takes it back."""
    if _other_answer.search(text, max(0, head.start() - MOST_DOUBT), head.start()):
        return True
    supposed = _supposed.search(text[max(0, head.start() - LONGEST_CONDITION) : head.end()])
    return bool(supposed or REFUTED.search(text[head.end() :].partition("\n")[0].partition(". ")[0]))


def _sentence(text: str) -> str:
    """``text`` up to its first stop, line end or clause that only explains, outside of brackets and formulas."""
    ends = sorted({*(m.start() for m in _stop.finditer(text)), *(m.start() for m in _clause.finditer(text))})
    depth = place = 0
    money = text.partition("\n")[0].count("$") % 2  # a sign of its own begins no formula
    for end in [*ends, len(text)]:
        for letter in text[place:end]:
            depth += (letter in "([{") - (letter in ")]}")
        place = end
        if end == len(text) or text[end] == "\n" or (depth <= 0 and (money or not text.count("$", 0, end) % 2)):
            return text[:end]
    return text


def _bare(text: str) -> str | None:
    """``text`` without emphasis and formula signs around it; None where nothing is left."""
    text = trimmed(text)
    if len(text) > 2 and text[0] == text[-1] == "$" and "$" not in text[1:-1].strip("$"):
        text = text.strip("$").strip()
    return without_aside(trimmed(text)) or None
