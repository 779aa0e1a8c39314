"""Tests beside the candidate, in one process: runs them and writes down what they look at, but decides nothing.

For tests of classes, coroutines and functions of functions, whose objects cannot cross to another process. What an
assertion compares with a literal is written down and compared elsewhere: the literal never comes here. Other
comparisons are made here by rules that no object of the candidate can bend: plain data by its value, an object of a
class that tests name by its own methods, any other object not at all.
"""

import builtins
import collections
import datetime
import decimal
import fractions
import functools
import itertools
import json
import operator
import re
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Any

from . import values

_BUILTINS = dict(vars(builtins))
"""As they are before the candidate runs."""
_MODULES = (builtins, collections, datetime, decimal, fractions, functools, itertools, re, types)
_SAFE = {id(kind) for module in _MODULES for kind in vars(module).values() if isinstance(kind, type)}
_NAMELESS: tuple[object, ...] = ({}.keys(), {}.values(), {}.items(), iter([]), iter(()), iter({}), Path())
_SAFE |= {id(type(one)) for one in (*_NAMELESS, functools.lru_cache(len))} | {id(Path), id(PurePath)}
_ORDERED: dict[str, Callable[[Any, Any], bool]] = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge")}


class ObservedTests:
    """One run of the tests; ``names`` are theirs, which hold the classes that may take part in comparisons."""

    def __init__(self, write: Callable[[dict[str, Any]], None], names: dict[str, Any]) -> None:
        self._write, self._names = write, names

    def seen(self, place: int, value: Any) -> None:
        """Write down what an assertion compares with a literal."""
        if isinstance(value, Iterator) and not isinstance(value, tuple):
            raise values.OpaqueError(type(value).__name__)
        self._write({"place": place, "value": values.pack(value)})

    def held(self, place: int, value: Any) -> None:
        """Check an assertion without a literal."""
        if not self.plain(value):
            raise AssertionError
        self._write({"place": place})

    def plain(self, value: Any) -> Any:
        """``value`` where it is of a known class, or what plain data it is."""
        kind = type(value)
        if id(kind) in _SAFE or any(kind is one for one in self._names.values()):
            return value
        if issubclass(kind, type) and any(value is one for one in self._names.values()):
            return value
        return values.unpack(values.pack(value))

    def compare(self, signs: tuple[str, ...], *operands: Any) -> bool:
        """``a == b < c`` of operands that are all computed first."""
        known = [self.plain(one) for one in operands]
        return all(self._compared(sign, *pair) for sign, pair in zip(signs, itertools.pairwise(known), strict=True))

    def _compared(self, sign: str, left: Any, right: Any) -> bool:
        if sign in ("is", "is_not"):
            return (left is right) == (sign == "is")
        if sign in ("eq", "ne"):
            return self._same(left, right) == (sign == "eq")
        if sign in ("in", "not_in"):
            return self._within(left, right) == (sign == "in")
        if not (self._own(left) or self._own(right)):
            left, right = (values.unpack(values.pack(one)) for one in (left, right))
        return bool(_ORDERED[sign](left, right))

    def _own(self, value: Any) -> bool:
        return any(type(value) is one for one in self._names.values())

    def _within(self, left: Any, right: Any) -> bool:
        if self._own(right) or isinstance(right, (str, bytes, range)):
            return left in right
        return any(self._same(left, self.plain(one)) for one in right)

    def _same(self, left: Any, right: Any) -> bool:
        if isinstance(left, Iterator) or isinstance(right, Iterator):
            return left is right
        try:
            return bool(values.unpack(values.pack(left)) == values.unpack(values.pack(right)))
        except values.OpaqueError:
            if type(left) is not type(right):
                return self._strangers(left, right)
        if isinstance(left, (list, tuple)):
            return len(left) == len(right) and all(itertools.starmap(self._parts, zip(left, right, strict=True)))
        if isinstance(left, dict):
            return left.keys() == right.keys() and all(self._parts(left[key], right[key]) for key in left)
        return bool(left == right)

    def _parts(self, left: Any, right: Any) -> bool:
        return self._same(self.plain(left), self.plain(right))

    def _strangers(self, left: Any, right: Any) -> bool:
        """An object beside something of another class: equal to nothing plain, else by its class's own word."""
        if left is None or right is None:
            return False
        if self._own(left) and self._own(right):
            return bool(left == right)
        raise values.OpaqueError(type(left if self._own(left) else right).__name__)


def main() -> None:
    """Run ``request.json``'s source and tests; write ``results.jsonl``: what is seen line by line, then how it ends."""
    sys.setrecursionlimit(5000)
    request = json.loads(Path("request.json").read_text())
    names: dict[str, Any] = {"__name__": "tests", "__builtins__": _BUILTINS}
    with Path("results.jsonl").open("w", encoding="utf-8") as out:

        def write(answer: dict[str, Any]) -> None:
            out.write(json.dumps(answer) + "\n")
            out.flush()

        try:
            _run(request, names, ObservedTests(write, names))
            write({"done": True})
        except values.OpaqueError as error:
            write({"opaque": str(error)[:100]})
        except BaseException as error:
            write({"failed": f"{type(error).__name__}: {error}"[:300]})


def _run(request: dict[str, Any], names: dict[str, Any], observed: ObservedTests) -> None:
    sys.modules["candidate"] = module = types.ModuleType("candidate")
    exec(compile(request["setup"], "setup.py", "exec"), names)  # noqa: S102 (the purpose of this room)
    exec(compile(request["source"], "candidate.py", "exec"), vars(module))  # noqa: S102
    names |= {name: vars(module)[name] for name in request["names"] if name in vars(module)}
    names[request["observer"]] = observed
    exec(compile(request["test"], "tests.py", "exec"), names)  # noqa: S102
    if request["entry"]:
        names["check"](names[request["entry"]])


main()
