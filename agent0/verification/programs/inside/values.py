"""Plain data as JSON that keeps Python's types apart. Values that are no plain data do not cross processes."""

import hashlib
import json
import time
from collections import deque, namedtuple
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

DEEPEST, LONGEST, MOST = 60, 2_000_000, 100_000
AT_FIRST_S, AT_FIRST = 0.5, 500_000
"""Seconds and characters of an iterator that is read at first; it may be endless."""
SIZES = LARGE, DEEP = "too large", "nested too deeply"
"""What is said of plain data that is too much."""
_SHORT = 10**1000
"""Longer numbers are written in hexadecimal: Python refuses thousands of decimal digits, which take it long."""
TEXTS: dict[str, Any] = {"float": float, "complex": complex, "fraction": Fraction, "decimal": Decimal}
LISTS: dict[str, Any] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "deque": deque, "iter": iter}


_READERS: dict[str, Any] = {
    **TEXTS,
    "int": lambda content: int(content, 0),
    "bytes": bytes.fromhex,
    "range": lambda content: range(*content),
}


class OpaqueError(Exception):
    """A value is no plain data; the message is its type, or what is too large."""


class Reference:
    """Stands for an object that stays in the candidate's process: the result of a call, by the call's digest, or what
    the program calls by a name."""

    def __init__(self, kind: str, what: str) -> None:
        self._reference = [kind, what]


class Unread(Iterator[Any]):
    """The first items of an iterator; to ask for more than these is ``OpaqueError``."""

    def __init__(self, items: list[Any]) -> None:
        self._items = iter(items)

    def __next__(self) -> Any:
        for item in self._items:
            return item
        raise OpaqueError(LARGE)


def digest(call: str) -> str:
    """Return the short name by which a call's result is referred to."""
    return hashlib.sha256(call.encode()).hexdigest()[:16]


def pack(value: Any) -> str:
    """Write ``value`` as canonical text that ``unpack`` reads back.

    Raises:
        OpaqueError: it holds what is no plain data, or too much.
    """
    try:
        text = json.dumps(encode(value, 0), sort_keys=True)
    except RecursionError as error:
        raise OpaqueError(DEEP) from error
    if len(text) > LONGEST:
        raise OpaqueError(LARGE)
    return text


def numbered(call: list[Any], times: dict[str, int]) -> str:
    """``pack`` a call; a repeated call gets its number appended, since a program may answer otherwise the second time.

    ``times`` counts the calls so far.
    """
    text = pack(call)
    times[text] = times.get(text, 0) + 1
    return text if times[text] == 1 else f"{text}\n{times[text]}"


def call_of(numbered_call: str, objects: dict[str, dict[str, Any]]) -> Any:
    """The call that ``numbered`` was given, as [name, positional, named]; ``objects`` by kind of reference."""
    return decode(json.loads(numbered_call.partition("\n")[0]), objects)


def unpack(text: str) -> Any:
    """Read back the value that ``pack`` was given."""
    return decode(json.loads(text))


def encode(value: Any, depth: int) -> Any:
    """Encode ``value`` as JSON data: text, booleans and None stand for themselves, all else is [kind, content].

    Values of a subclass become those of their plain class.
    """
    if depth > DEEPEST:
        raise OpaqueError(DEEP)
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int:
        return ["int", str(value) if -_SHORT < value < _SHORT else hex(value)]
    for name, kind in TEXTS.items():
        if type(value) is kind:
            return [name, str(value)]
    if isinstance(value, (bytes, bytearray)):
        return ["bytes", bytes(value).hex()]
    if isinstance(value, range):
        return ["range", [value.start, value.stop, value.step]]
    return _collection(value, depth)


def _collection(value: Any, depth: int) -> Any:
    if isinstance(value, Reference):
        return value._reference
    if isinstance(value, dict):
        pairs = [[encode(k, depth + 1), encode(v, depth + 1)] for k, v in _some(dict.items(value))]
        return ["dict", pairs]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        items = [encode(item, depth + 1) for item in _some(value)]
        return ["named", [type(value).__name__, list(value._fields), items]]
    for name, kind in LISTS.items():
        if name != "iter" and isinstance(value, kind):
            items = [encode(item, depth + 1) for item in _some(value)]
            return [name, sorted(items, key=json.dumps) if name in ("set", "frozenset") else items]
    return _begun(value, depth) if isinstance(value, Iterator) else _scalar(value, depth)


def _scalar(value: Any, depth: int) -> Any:
    if hasattr(value, "item") and type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        return encode(value.item(), depth + 1)
    for kind in (str, int, float):
        if isinstance(value, kind):
            return encode(kind(value), depth + 1)
    raise OpaqueError(type(value).__name__)


def _begun(value: Iterator[Any], depth: int) -> Any:
    """All items, or those that were read until there was no more time or room."""
    items: list[Any] = []
    end, room = time.monotonic() + AT_FIRST_S, AT_FIRST
    for item in value:
        items.append(encode(item, depth + 1))
        room -= len(json.dumps(items[-1]))
        if len(items) >= MOST or room < 0 or time.monotonic() > end:
            return ["begun", items]
    return ["iter", items]


def _some(items: Any) -> Iterator[Any]:
    for count, item in enumerate(items):
        if count >= MOST:
            raise OpaqueError(LARGE)
        yield item


def decode(value: Any, objects: "dict[str, dict[str, Any]] | None" = None) -> Any:
    """Read back what ``encode`` wrote; iterators start at their beginning. ``objects`` are what references stand
    for."""
    if not isinstance(value, list):
        return value
    kind, content = value
    if kind in ("result", "name"):
        return (objects or {})[kind][content]
    if kind in _READERS:
        return _READERS[kind](content)
    if kind == "named":
        return namedtuple(content[0], content[1], rename=True)(*(decode(item, objects) for item in content[2]))
    if kind == "dict":
        return {decode(key, objects): decode(item, objects) for key, item in content}
    items = [decode(item, objects) for item in content]
    return Unread(items) if kind == "begun" else LISTS[kind](items)
