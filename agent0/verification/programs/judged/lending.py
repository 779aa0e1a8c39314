"""Lists, dictionaries, sets and objects that cross by value and are known at both ends: messages report what became of
them."""

import json
import sys
from collections import Counter, OrderedDict, deque
from typing import Any

from . import values

LENT = (list, dict, set, deque, bytearray, Counter, OrderedDict)
KINDS = frozenset({"list", "dict", "set", "deque", "bytearray", "counter", "ordered"})
"""What ``LENT`` is called where it crosses."""
Message = dict[str, Any]


class Lender(values.Encoder, values.Decoder):
    """What is lent to the other end, and by it. ``shared``: classes that both ends have, by name; ``side`` marks what
    this end lends."""

    def __init__(self, side: str) -> None:
        self._side = side
        self.shared: dict[str, type] = {}
        self._lent: dict[str, object] = {}
        self._keys: dict[int, str] = {}
        self._texts: dict[str, str] = {}
        self._count = 0

    def lend(self, value: Any) -> Any:
        key = self._keys.get(id(value))
        if key is not None:
            return ["lent", key]
        self._count += 1
        key = f"{self._side}{self._count}"
        self._lent[key], self._keys[id(value)] = value, key
        try:
            content = self._content(value)
        except values.OpaqueError:
            self.forget(key)
            raise
        self._texts[key] = json.dumps(content)
        return ["lent", key, content]

    def forget(self, key: str) -> None:
        if key in self._lent:
            self._keys.pop(id(self._lent.pop(key)), None)
            self._texts.pop(key, None)

    def _content(self, value: Any) -> Any:
        name = type(value).__name__
        if self.shared.get(name) is type(value):
            return ["object", name, [[attribute, self.encode(value, 0)] for attribute, value in _state(value).items()]]
        return super()._collection(value, 0)

    def changed(self) -> list[Any]:
        """What is lent and has changed since the last message."""
        out = []
        for key, value in list(self._lent.items()):
            try:
                content = self._content(value)
            except values.OpaqueError:
                continue
            text = json.dumps(content)
            if text != self._texts.get(key):
                self._texts[key] = text
                out.append([key, content])
        return out

    def refresh(self, message: Message) -> None:
        for key, content in message.get("lent", ()):
            if key in self._lent:
                become(self._lent[key], self._content_of(self._lent[key], content))
                self._texts[key] = json.dumps(content)

    def _content_of(self, before: Any, content: list[Any]) -> Any:
        """Decode what ``before`` has become: a collection of its own kind, or the attributes of a shared object.

        Raises:
            ValueError: it is something else, or ``before`` may not change.
        """
        if content[0] == "object" and self.shared.get(content[1]) is type(before):
            return self._fields(content[2])
        after = self._built(content)
        if type(after) is not type(before):
            raise ValueError("a forged change")
        return after

    def _fields(self, pairs: list[Any]) -> dict[str, object]:
        if any(str(name).startswith("__") for name, _ in pairs):
            raise ValueError("a forged attribute")
        return {str(name): self.decode(value) for name, value in pairs}

    def _built(self, content: list[Any]) -> Any:
        if content[0] not in KINDS:
            raise ValueError("only collections are lent")
        return super().decode(content)

    def borrowed(self, key: str, content: Any = None) -> Any:
        if content is None or key in self._lent:
            return self._lent[key]
        if content[0] == "object":
            borrowed: Any = object.__new__(self.shared[content[1]])
            self._lent[key], self._keys[id(borrowed)] = borrowed, key
            become(borrowed, self._fields(content[2]))
        else:
            borrowed = self._built(content)
            self._lent[key], self._keys[id(borrowed)] = borrowed, key
        self._texts[key] = json.dumps(content)
        return borrowed

    def with_changes(self, reply: Message, value: Any, before: set[str]) -> Message:
        """``reply`` with what became of what was lent; what nobody holds any more is left out from now on."""
        reply["lent"] = self.changed()
        value_key = self._keys.get(id(value), "")
        reply["drop"] = [key for key in self._lent.keys() - before if key != value_key and not self._referenced(key)]
        for key in reply["drop"]:
            self.forget(key)
        return reply

    def _referenced(self, key: str) -> bool:
        return sys.getrefcount(self._lent[key]) > 2


def _state(value: object) -> dict[str, object]:
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if hasattr(value, name)]
    return {**{name: getattr(value, name) for name in slots}, **getattr(value, "__dict__", {})}


def become(before: Any, after: Any) -> None:
    """Make ``before``, a list, dictionary, set or object, what ``after`` is, and keep the lists in it where they are
    still lists."""
    if isinstance(before, list):
        kept = [_kept(*pair) for pair in zip(before, after, strict=False)]
        before[:] = [*kept, *after[len(kept) :]]
    elif isinstance(before, dict):
        merged = {key: _kept(before[key], item) if key in before else item for key, item in after.items()}
        before.clear()
        before.update(merged)
    elif isinstance(before, set):
        before.clear()
        before.update(after)
    elif isinstance(before, deque):
        before.clear()
        before.extend(after)
    elif isinstance(before, bytearray):
        before[:] = after
    else:
        for name in _state(before).keys() - after.keys():
            object.__delattr__(before, name)
        for name, value in after.items():
            object.__setattr__(before, name, value)


def _kept(before: Any, after: Any) -> Any:
    if type(before) is not type(after) or type(before) not in LENT:
        return after
    become(before, after)
    return before
