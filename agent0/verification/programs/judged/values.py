"""Plain data as JSON that keeps Python's types apart. Values that are no plain data do not cross processes: they stay
where they are, and a reference to them crosses."""

import datetime
import enum
import json
import sys
import types
import uuid
from collections import Counter, OrderedDict, deque, namedtuple
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Any

DEEPEST, LONGEST, MOST = 60, 2_000_000, 100_000
SIZES = LARGE, DEEP = "too large", "nested too deeply"
"""What is said of plain data that is too much."""
_SHORT = 10**1000
"""Longer numbers are written in hexadecimal: Python refuses thousands of decimal digits, which take it long."""
_TEXTS: dict[type, str] = {
    float: "float", complex: "complex", Fraction: "fraction", Decimal: "decimal", uuid.UUID: "uuid",
    type(Path()): "path",
}  # fmt: skip
_ISO: dict[type, str] = {datetime.date: "date", datetime.time: "time", datetime.datetime: "datetime"}
_LISTS: dict[str, type] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "deque": deque}
_DICTS: dict[type, str] = {dict: "dict", Counter: "counter", OrderedDict: "ordered"}
_VIEWS: dict[type, str] = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}
_UNNAMED = {kind: name for name, kind in vars(types).items() if isinstance(kind, type) and name != "GenericAlias"}
"""Classes of the interpreter that have no name where they say that they are defined."""
_CONSTANTS: dict[str, object] = {"Ellipsis": ..., "NotImplemented": NotImplemented}
_NAMED = frozenset({
    "builtins", "collections", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools", "itertools",
    "numbers", "operator", "pathlib", "random", "re", "string", "time", "types", "typing", "uuid", "zoneinfo",
})  # fmt: skip
"""Modules whose classes cross by name, as those of all errors do: to call one opens, starts and steers nothing."""
_HIDDEN = ("unittest", "pytest", "_pytest", "doctest", "judged")
"""Modules whose errors steer tests: none of theirs crosses."""


class OpaqueError(Exception):
    """A value is no plain data; the message is its type, or what is too large."""


class UndecidedError(Exception):
    """Raised by tests that cannot decide; the message says why."""


def pack(value: Any) -> str:
    """Write ``value`` as canonical text that ``unpack`` reads back.

    Raises:
        OpaqueError: it holds what is no plain data, or too much.
    """
    return written(Encoder().encode(value, 0))


def written(data: Any) -> str:
    """``data`` as JSON text.

    Raises:
        OpaqueError: it is too much.
    """
    try:
        text = json.dumps(data, sort_keys=True)
    except RecursionError as error:
        raise OpaqueError(DEEP) from error
    if len(text) > LONGEST:
        raise OpaqueError(LARGE)
    return text


def unpack(text: str) -> Any:
    """Read back the value that ``pack`` was given."""
    return Decoder().decode(json.loads(text))


class Encoder:
    """Encodes values as JSON data: text, booleans and None stand for themselves, all else is [kind, content, …]."""

    def refer(self, value: Any) -> Any:
        """Encode what is no plain data.

        Raises:
            OpaqueError: that cannot be done.
        """
        raise OpaqueError(type(value).__name__)

    def keeps(self, value: Any) -> bool:
        """Whether ``value`` crosses as a reference although it could be taken for plain data."""
        return False

    def encode(self, value: Any, depth: int) -> Any:
        """Encode ``value``, which lies ``depth`` collections deep. Values of a subclass become those of their plain
        class.

        Raises:
            OpaqueError: it holds what is no plain data, or too much.
        """
        if value is None or type(value) in (bool, str):
            return value
        if depth > DEEPEST:
            raise OpaqueError(DEEP)
        if type(value) is int:
            return ["int", str(value) if -_SHORT < value < _SHORT else hex(value)]
        if type(value) in _TEXTS:
            return [_TEXTS[type(value)], str(value)]
        if self.keeps(value) or isinstance(value, enum.Enum):
            return self.refer(value)
        plain = self._timed(value) or self._collection(value, depth) or self._array(value, depth)
        return plain or self._scalar(value, depth)

    def _timed(self, value: Any) -> Any:
        kind = type(value)
        if kind in _ISO and (getattr(value, "tzinfo", None) is None or type(value.tzinfo) is datetime.timezone):
            return [_ISO[kind], value.isoformat()]
        if kind is datetime.timedelta:
            return ["timedelta", [value.days, value.seconds, value.microseconds]]
        if kind is datetime.timezone:
            return ["timezone", self._timed(value.utcoffset(None))[1]]
        return None

    def _collection(self, value: Any, depth: int) -> Any:
        if isinstance(value, (bytes, bytearray)):
            return ["bytearray" if isinstance(value, bytearray) else "bytes", bytes(value).hex()]
        if isinstance(value, range):
            return ["range", [value.start, value.stop, value.step]]
        if isinstance(value, dict):
            pairs = [[self.encode(k, depth + 1), self.encode(v, depth + 1)] for k, v in _some(dict.items(value))]
            return [next((name for kind, name in _DICTS.items() if type(value) is kind), "dict"), pairs]
        if type(value) in _VIEWS:
            return [_VIEWS[type(value)], [self.encode(item, depth + 1) for item in _some(value)]]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            items = [self.encode(item, depth + 1) for item in _some(tuple.__iter__(value))]
            return ["named", [type(value).__name__, [str(name) for name in value._fields], items]]
        for name, kind in _LISTS.items():
            if isinstance(value, kind):
                items = [self.encode(item, depth + 1) for item in _some(kind.__iter__(value))]  # type: ignore[attr-defined]
                return [name, sorted(items, key=json.dumps) if name in ("set", "frozenset") else items]
        return None

    def _array(self, value: Any, depth: int) -> Any:
        """An array of numpy, of numbers or texts."""
        if type(value).__name__ != "ndarray" or type(value).__module__ != "numpy" or value.dtype.kind not in "biufcUS":
            return None
        return ["array", value.dtype.str, list(value.shape), self.encode(value.ravel().tolist(), depth + 1)]

    def _scalar(self, value: Any, depth: int) -> Any:
        if hasattr(value, "item") and type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
            return self.encode(value.item(), depth + 1)
        kinds: tuple[Any, ...] = (str, int, float)
        for kind in kinds:
            if isinstance(value, kind):
                return self.encode(kind.__add__(kind(), value), depth + 1)  # without its own methods
        for name, constant in _CONSTANTS.items():
            if value is constant:
                return ["constant", name]
        return named_class(value) or self.refer(value)


def named_class(value: Any) -> Any:
    """A class of the standard library, by its name; None for anything else."""
    if not isinstance(value, type):
        return None
    if value in _UNNAMED:
        return ["class", "types", _UNNAMED[value]]
    module, name = value.__module__, value.__qualname__
    importable = _crosses(value, module) and getattr(sys.modules.get(module), name, None) is value
    return ["class", module, name] if importable else None


def _crosses(kind: type, module: str) -> bool:
    """Whether a class of the standard library crosses by its name."""
    head = module.partition(".")[0]
    is_error = issubclass(kind, BaseException) and head in sys.stdlib_module_names and head not in _HIDDEN
    return head in _NAMED or is_error


class Decoder:
    """Reads the values back that an ``Encoder`` wrote as JSON."""

    def resolve(self, kind: str, content: list[Any]) -> Any:
        """The object that a reference stands for.

        Raises:
            ValueError: there are none here.
        """
        raise ValueError(f"an unknown kind of value: {kind}")

    def decode(self, value: Any) -> Any:
        """Read back one value.

        Raises:
            ValueError, TypeError, LookupError, AttributeError, ArithmeticError: it was forged.
        """
        if not isinstance(value, list):
            return value
        kind, *rest = value
        content: Any = rest[0] if rest else None
        if kind in _READERS:
            return _READERS[kind](content)
        if kind in _LISTS:
            return _LISTS[kind](map(self.decode, content))
        if kind in _MAPPINGS:
            return _MAPPINGS[kind]({self.decode(key): self.decode(item) for key, item in content})
        if kind in _VIEWED:
            return _VIEWED[kind](map(self.decode, content))
        if kind == "array":
            return sys.modules["numpy"].array(self.decode(rest[2]), dtype=rest[0]).reshape(rest[1])
        if kind == "named":
            name, fields, items = rest[0]
            return namedtuple(name, fields, rename=True)(*map(self.decode, items))
        return self.resolve(kind, rest)


def class_of(module: str, name: str) -> type:
    """The class of the standard library that ``named_class`` named, where this process has imported it.

    Raises:
        ValueError, LookupError, AttributeError: it is none.
    """
    kind = vars(sys.modules[module])[name]
    if not isinstance(kind, type) or not _crosses(kind, module):
        raise ValueError(f"{module}.{name} is no class that crosses")
    return kind


_READERS: dict[str, Callable[[Any], Any]] = {
    **{name: kind for kind, name in _TEXTS.items()},
    **{name: kind.fromisoformat for kind, name in _ISO.items()},  # type: ignore[attr-defined]
    "int": lambda content: int(content, 0),
    "path": PurePath if sys.platform == "win32" else Path,
    "timedelta": lambda content: datetime.timedelta(*content),
    "timezone": lambda content: datetime.timezone(datetime.timedelta(*content)),
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "range": lambda content: range(*content),
    "constant": _CONSTANTS.__getitem__,
}
_MAPPINGS: dict[str, Callable[[Any], Any]] = {name: kind for kind, name in _DICTS.items()}
_VIEWED: dict[str, Callable[[Any], Any]] = {
    "keys": lambda items: dict.fromkeys(items).keys(),
    "values": lambda items: dict(enumerate(items)).values(),
    "items": lambda items: dict(items).items(),
}


def _some(items: Any) -> Iterator[Any]:
    for count, item in enumerate(items):
        if count >= MOST:
            raise OpaqueError(LARGE)
        yield item
