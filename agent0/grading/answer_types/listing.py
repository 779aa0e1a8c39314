"""Several things at once: lists in their order, sets in any. Round and square brackets mean the same here, or may be
missing, as people leave them out of what a program prints; intervals of mathematics are values."""

import re

from agent0.grading import Grade
from agent0.grading.answer_types import VALUE, compare_as, kind, left_undone, plain

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


def _undone(expected: str, given: str) -> bool:
    """Item by item, each as the kind that its partner is: ``12-0-0`` is no date where ``12`` is wanted."""
    wanted, answer = _items(expected), _items(given)
    if wanted is None or answer is None:
        return False
    pairs = _partners(expected, *wanted, answer[0]) or ()
    return any(left_undone(_kind(expected, one), one, other) for one, other in pairs)


@kind("listing", applies=lambda expected: bool(_LISTED.fullmatch(expected)), rank=6, undone=_undone)
def listing(expected: str, given: str) -> Grade:
    """Item by item, each compared as its own kind."""
    wanted, answer = _items(expected), _items(given)
    shown = expected[:200], given[:200]
    if wanted is None:
        return Grade(None, "the expected list cannot be read", *shown)
    if answer is None:
        return Grade(False, "no list", *shown)
    if len(wanted[0]) != len(answer[0]):
        return Grade(False, f"{len(answer[0])} items for {len(wanted[0])}", *shown)
    return Grade(_partners(expected, *wanted, answer[0]) is not None, "item by item", *shown)


def _kind(expected: str, item: str) -> str:
    """The kind that an item is compared as, empty: as it reads. What is its own only item (``[a]+[a]``) is a value."""
    return VALUE if item == expected else ""


def _partners(expected: str, items: list[str], ordered: bool, answer: list[str]) -> list[tuple[str, str]] | None:
    """Each wanted item with the one that says the same: the next, or any where there is no order. None where one has
    none, or one is left over."""
    if len(items) != len(answer):
        return None
    left, out = list(answer), []
    for one in items:
        name, able = _kind(expected, one), left[:1] if ordered else left
        place = next((n for n, other in enumerate(able) if compare_as(name, one, other).correct is True), -1)
        if place < 0:
            return None
        out.append((one, left.pop(place)))
    return out
