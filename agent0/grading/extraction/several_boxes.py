"""Boxes that are one answer: those that only joints part, or whose values the statement below them repeats."""

import re
from itertools import pairwise

from agent0.chat_format import Box, boxes
from agent0.grading.extraction.sentences import sentences

_repeats = re.compile(
    r"(?:solutions?|roots?|values?|answers?|zeros?)\b[^.=]{0,40}?\b(?:are|is)(?: given by)?:?\s+(.+)", re.IGNORECASE
)
_between = re.compile(
    r"[\s$,;]*(?:\\[,;:! ()\[\]]|\\q?quad|[\s$,;])*(?:\\text\s*\{\s*)?(?:and|or|,|;|&)?(?:\s*\})?(?:\\[,;:! ()\[\]]"
    r"|\\q?quad|[\s$,;])*"
)


def boxes_of_one_answer(text: str) -> str | None:
    """The contents of the last boxes where only joints part them, or the values that the sentence below repeats; None
    where there are not two of them."""
    found: list[Box] = []
    for box in boxes(text):
        found += [box] if box.closed and not (found and box.start < found[-1].end) else []
    if len(found) < 2:
        return None
    inside = [text[box.inside : box.end].strip() for box in found]
    last = sentences(_plain(text[found[-1].end + 1 :]))
    values = [one.rpartition("=")[2].strip() for one in inside]
    if last and (repeated := _repeats.search(last[-1])) and _named_all(repeated[1], values):
        return ", ".join(inside)
    gaps = [text[one.end + 1 : other.start] for one, other in pairwise(found)]
    joined = next((n for n, gap in enumerate(gaps[::-1]) if not _between.fullmatch(gap)), len(gaps))
    if not joined:
        return None
    words = ["or" if "or" in gap else "," for gap in gaps[len(gaps) - joined :]]
    kept = inside[len(inside) - joined - 1 :]
    return kept[0] + "".join(f" {word} {one}" for word, one in zip(words, kept[1:], strict=True))


def _plain(text: str) -> str:
    return re.sub(r"[$*]", "", text)


def _named_all(text: str, values: list[str]) -> bool:
    """Whether ``text`` is a list of ``values``, each once, in any order."""
    answer = [
        part.rpartition("=")[2].strip() for part in re.split(r",\s*(?:and|or)\s|,|\band\b|\bor\b", text.strip(" ."))
    ]
    return sorted(answer) == sorted(values) and len(set(values)) == len(values)
