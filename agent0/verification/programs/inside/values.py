"""Plain data as JSON that keeps Python's types apart. Values that are no plain data do not cross processes."""

import json
from collections import deque
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

DEEPEST, LONGEST, MOST = 60, 2_000_000, 100_000
SIZES = LARGE, DEEP = "too large", "nested too deeply"
"""What is said of plain data that is too much."""
_SHORT = 10**1000
"""Longer numbers are written in hexadecimal: Python refuses thousands of decimal digits, which take it long."""
TEXTS: dict[str, Any] = {"float": float, "complex": complex, "fraction": Fraction, "decimal": Decimal}
LISTS: dict[str, Any] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "deque": deque, "iter": iter}


class OpaqueError(Exception):
    """A value is no plain data; the message is its type, or what is too large."""


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


def call_of(numbered_call: str) -> Any:
    """The call that ``numbered`` was given, as [name, positional, named]."""
    return unpack(numbered_call.partition("\n")[0])


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
    if isinstance(value, dict):
        pairs = [[encode(k, depth + 1), encode(v, depth + 1)] for k, v in _some(dict.items(value))]
        return ["dict", pairs]
    for name, kind in LISTS.items():
        if name != "iter" and isinstance(value, kind):
            items = [encode(item, depth + 1) for item in _some(value)]
            return [name, sorted(items, key=json.dumps) if name in ("set", "frozenset") else items]
    if isinstance(value, Iterator):
        return ["iter", [encode(item, depth + 1) for item in _some(value)]]
    if hasattr(value, "item") and type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        return encode(value.item(), depth + 1)
    for kind in (str, int, float):
        if isinstance(value, kind):
            return encode(kind(value), depth + 1)
    raise OpaqueError(type(value).__name__)


def _some(items: Any) -> Iterator[Any]:
    for count, item in enumerate(items):
        if count >= MOST:
            raise OpaqueError(LARGE)
        yield item


def decode(value: Any) -> Any:
    """Read back what ``encode`` wrote; iterators start at their beginning."""
    if not isinstance(value, list):
        return value
    kind, content = value
    if kind == "int":
        return int(content, 0)
    if kind in TEXTS:
        return TEXTS[kind](content)
    if kind == "bytes":
        return bytes.fromhex(content)
    if kind == "range":
        return range(*content)
    if kind == "dict":
        return {decode(key): decode(item) for key, item in content}
    return LISTS[kind]([decode(item) for item in content])
