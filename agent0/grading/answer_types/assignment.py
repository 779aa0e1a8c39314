"""Who has what: pairs of a name and a value, in any order, each name once."""

import re

from agent0.grading import Grade
from agent0.grading.answer_types import compare_as, kind, left_undone, plain, words
from agent0.grading.answer_types.listing import cut

_PAIR = re.compile(r"\s*(.+?)\s*(?::|=>|->|→|=|\bis\b|\bhas\b)\s*(.+?)\s*", re.S)
_AND = re.compile(r",?\s+and\s+(?=[^,;:=]+?(?:\s*[:=]|\s+(?:is|has)\s))")
_DICT = re.compile(r"\{\s*[^{}:]+:.*\}", re.S)


def _pairs(text: str) -> dict[str, str] | None:
    bare = plain(text).strip().rstrip(".")
    if bare.startswith("{") and bare.endswith("}"):
        bare = bare[1:-1]
    found = [_PAIR.fullmatch(part) for part in cut(_AND.sub(", ", bare), ",;\n") or ()]
    out = {words(one[1]): one[2] for one in found if one}
    return out if out and len(out) == len(found) else None


def _undone(expected: str, given: str) -> bool:
    """Value by value, each as the kind of the one that is wanted."""
    wanted, answer = _pairs(expected) or {}, _pairs(given) or {}
    return any(left_undone("", wanted[name], answer[name]) for name in wanted.keys() & answer.keys())


@kind("assignment", applies=lambda expected: bool(_DICT.fullmatch(expected)), rank=5, undone=_undone)
def assignment(expected: str, given: str) -> Grade:
    """Every name has its value, and no name is left over."""
    wanted, answer = _pairs(expected), _pairs(given)
    shown = expected[:200], given[:200]
    if wanted is None:
        return Grade(None, "the expected pairs cannot be read", *shown)
    if answer is None:
        return Grade(False, "no pairs of a name and a value", *shown)
    if wanted.keys() != answer.keys():
        return Grade(False, "other names", *shown)
    return Grade(all(compare_as("", wanted[name], answer[name]).correct is True for name in wanted), "pairs", *shown)
