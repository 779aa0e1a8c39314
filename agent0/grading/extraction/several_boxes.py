"""Boxes that are one answer: those that only joints part, or whose values the statement below them repeats."""

import re
from itertools import pairwise

from agent0.chat_format import Box, boxes
from agent0.grading.extraction.sentences import sentences

_repeats = re.compile(
    r"(?:solutions?|roots?|values?|answers?|zeros?)\b[^.=]{0,40}?\b(?:are|is)(?: given by)?:?\s+(.+)", re.IGNORECASE
)
_space = r"(?:\\[,;:! ()\[\]]|\\q?quad|[\s$,;])*"
_between = re.compile(rf"{_space}(?:\\text\s*\{{\s*)?(?:and|or|,|;|&)?(?:\s*\}})?{_space}")
_joint = re.compile(r",\s*(?:and|or)\s|,|\band\b|\bor\b")


def boxes_of_one_answer(text: str) -> str | None:
    """Return the contents of the last boxes where only joints part them, or the values that the sentence below repeats;
    None where there are not two of them."""
    outer: list[Box] = []
    for box in boxes(text):
        outer += [box] if box.closed and not (outer and box.start < outer[-1].end) else []
    if len(outer) < 2:
        return None
    inside = [text[box.inside : box.end].strip() for box in outer]
    last = sentences(re.sub(r"[$*]", "", text[outer[-1].end + 1 :]))
    repeated = _repeats.search(last[-1]) if last else None
    if repeated and _values(_joint.split(repeated[1].strip(" ."))) == _values(inside) == sorted(set(_values(inside))):
        return ", ".join(inside)
    gaps = [text[box.end + 1 : other.start] for box, other in pairwise(outer)]
    apart = max((n for n, gap in enumerate(gaps, 1) if not _between.fullmatch(gap)), default=0)
    joints = ["or" if "or" in gap else "," for gap in gaps[apart:]]
    joined = zip(joints, inside[apart + 1 :], strict=True)
    return inside[apart] + "".join(f" {joint} {value}" for joint, value in joined) if joints else None


def _values(parts: list[str]) -> list[str]:
    """The values of equations, in one order."""
    return sorted(part.rpartition("=")[2].strip() for part in parts)
