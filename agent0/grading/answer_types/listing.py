"""Several things at once: lists in their order, sets in any. Round and square brackets mean the same here, or may be
missing, as people leave them out of what a program prints; intervals of mathematics are values."""

import re

from agent0.grading import Grade
from agent0.grading.answer_types import VALUE, grade_as, kind, kind_of, named, plain

MOST = 200
_OPEN, _CLOSE = "([{", ")]}"
_LISTED = re.compile(r"\[.*\]|\(.*,.*\)|\{[^:]*\}|set\(\)", re.S)


def cut(text: str, at: str) -> list[str] | None:
    """Pieces of ``text`` between characters of ``at`` that are in no brackets or quotes; None where these do not
    match."""
    pieces, start, depth, quote = [], 0, 0, ""
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote and text[place - 1] != "\\" else quote
        elif letter in "'\"" and not text[:place].rstrip()[-1:].isalnum():
            quote = letter
        elif letter in _OPEN:
            depth += 1
        elif letter in _CLOSE:
            depth -= 1
            if depth < 0:
                return None
        elif letter in at and not depth:
            pieces.append(text[start:place])
            start = place + 1
    return None if depth or quote else [*pieces, text[start:]]


def _items(text: str) -> tuple[list[str], bool] | None:
    """(items, whether they have an order)."""
    bare = plain(text).strip().replace(r"\{", "{").replace(r"\}", "}").strip("$").strip()
    ordered = not bare.startswith("{") and bare != "set()"
    if bare[:1] and bare[0] in _OPEN and bare[-1:] == _CLOSE[_OPEN.index(bare[0])] and cut(bare[1:-1], "") is not None:
        bare = bare[1:-1]
    elif bare == "set()":
        bare = ""
    pieces = cut(bare, ",;")
    if pieces is None:
        return None
    items = [re.sub(r"^and\s+", "", piece.strip()) for piece in pieces]
    if items and not items[-1]:
        items.pop()  # (1,)
    return (items, ordered) if len(items) <= MOST and all(items) else None


def _unevaluated(text: str) -> int:
    items, _ = _items(text) or ((), True)
    return sum(named(kind_of(item) if item != text else VALUE).unevaluated(item) for item in items)


@kind("listing", applies=lambda expected: bool(_LISTED.fullmatch(expected)), rank=6, unevaluated=_unevaluated)
def listing(expected: str, given: str) -> Grade:
    """Item by item, each compared as its own kind."""
    wanted, said = _items(expected), _items(given)
    shown = expected[:200], given[:200]
    if wanted is None:
        return Grade(None, "the expected list cannot be read", *shown)
    if said is None:
        return Grade(False, "no list", *shown)
    if len(wanted[0]) != len(said[0]):
        return Grade(False, f"{len(said[0])} items for {len(wanted[0])}", *shown)
    same = _in_order if wanted[1] else _in_any_order
    return Grade(same(wanted[0], said[0]), "item by item", *shown)


def _in_order(wanted: list[str], said: list[str]) -> bool:
    return all(grade_as("", one, other).correct is True for one, other in zip(wanted, said, strict=True))


def _in_any_order(wanted: list[str], said: list[str]) -> bool:
    """Each has a partner of its own."""
    left = list(said)
    for one in wanted:
        place = next((n for n, other in enumerate(left) if grade_as("", one, other).correct is True), -1)
        if place < 0:
            return False
        del left[place]
    return True
