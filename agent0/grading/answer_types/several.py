"""Several things at once: lists in their order, sets in any, values by name.

Round and square brackets mean the same here, or may be missing, as people leave them out of what a program prints;
intervals of mathematics are values. Each item is compared as the kind that its partner is: ``12-0-0`` is no date where
``12`` is wanted.
"""

import re
from collections.abc import Callable

from agent0.grading import Grade
from agent0.grading.answer_types import MOST, VALUE, compare_as, kind, left_undone, plain, words
from agent0.grading.math.undone import UNDONE

UNREADABLE = "what is expected cannot be read"
Pairs = list[tuple[str, str]]
"""Expected items, each with the one of the answer that says the same."""
_sign = re.compile(r"(?<!\w)(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|[\[\](){},;\n]")
_and = re.compile(r",?\s+and\s+(?=[^,;:=]+?(?:\s*[:=]|\s+(?:is|has)\s))")
_pair = re.compile(r"\s*(.+?)\s*(?::|=>|->|→|=|\bis\b|\bhas\b)\s*(.+?)\s*", re.S)


def _cut(text: str, at: str) -> list[str] | None:
    """Pieces of ``text`` between signs of ``at`` that are in no brackets or quotes; None where these do not match."""
    pieces, start, depth = [], 0, 0
    for sign in _sign.finditer(text):
        depth += (sign[0] in "([{") - (sign[0] in ")]}")
        if depth < 0:
            return None
        if sign[0] in at and not depth:
            pieces.append(text[start : sign.start()])
            start = sign.end()
    return None if depth else [*pieces, text[start:]]


def _items(text: str) -> list[str] | None:
    """The items of a list or set; None where there are too many or one is empty."""
    bare = plain(text).strip().replace(r"\{", "{").replace(r"\}", "}").strip("$").strip().removeprefix("set")
    is_enclosed = bare[:1] + bare[-1:] in ("()", "[]", "{}") and _cut(bare[1:-1], "") is not None
    if (pieces := _cut(bare[1:-1] if is_enclosed else bare, ",;")) is None:
        return None
    items = [re.sub(r"^and\s+", "", piece.strip()) for piece in pieces]
    if not items[-1]:
        items.pop()  # (1,)
    return items if len(items) <= MOST and all(items) else None


def _kind(expected: str, item: str) -> str:
    """The kind that an item is compared as, empty: as it reads. What is its own only item (``[a]+[a]``) is a value."""
    return VALUE if item == expected else ""


def _of_list(expected: str, answer: str) -> Pairs | str:
    """Each item with the next one, or with any of a set; why not, where one has none that says the same."""
    items, others = _items(expected), _items(answer)
    if items is None or others is None:
        return UNREADABLE if items is None else "no list"
    if len(items) != len(others):
        return f"{len(others)} items for {len(items)}"
    is_set, pairs = expected.strip().strip("$").startswith(("{", r"\{", "set")), []
    for item in items:
        able = others if is_set else others[:1]
        same = (other for other in able if compare_as(_kind(expected, item), item, other).correct is True)
        if (other := next(same, None)) is None:
            return "item by item"
        others.remove(other)
        pairs.append((item, other))
    return pairs


def _by_name(text: str) -> dict[str, str]:
    """Values by their names; none where a part of ``text`` is no pair, or a name comes twice."""
    bare = plain(text).strip().rstrip(".")
    bare = bare[1:-1] if bare.startswith("{") and bare.endswith("}") else bare
    parts = [_pair.fullmatch(part) for part in _cut(_and.sub(", ", bare), ",;\n") or ()]
    values = {words(part[1]): part[2] for part in parts if part}
    return values if len(values) == len(parts) else {}


def _of_names(expected: str, answer: str) -> Pairs | str:
    """Each value with that of the same name; why not, where one differs or a name is left over."""
    values, others = _by_name(expected), _by_name(answer)
    if not values or not others:
        return "no pairs of a name and a value" if values else UNREADABLE
    if values.keys() != others.keys():
        return "other names"
    pairs = [(values[name], others[name]) for name in values]
    return pairs if all(compare_as("", *pair).correct is True for pair in pairs) else "pairs"


def _register(name: str, rank: int, form: str, pairs_of: Callable[[str, str], Pairs | str]) -> None:
    @kind(name, rank, re.compile(form, re.S).fullmatch)
    def compared(expected: str, answer: str) -> Grade:
        pairs = pairs_of(expected, answer)
        reason = pairs if isinstance(pairs, str) else "item by item"
        if not isinstance(pairs, str) and any(left_undone(_kind(expected, pair[0]), *pair) for pair in pairs):
            pairs = reason = UNDONE
        correct = None if reason == UNREADABLE else not isinstance(pairs, str)
        return Grade(correct, reason, expected[:200], answer[:200])


_register("listing", 6, r"\[.*\]|\(.*,.*\)|\{[^:]*\}|set\(\)", _of_list)
_register("assignment", 5, r"\{\s*[^{}:]+:.*\}", _of_names)
