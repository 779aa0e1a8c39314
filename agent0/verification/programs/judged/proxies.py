"""What stands for an object of the other process. All that is done with it is asked for there."""

import dataclasses
from typing import Any, NotRequired, TypedDict

COMPARED = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul", "and", "or", "xor", "lshift",
    "rshift",
)  # fmt: skip
ARITHMETIC = tuple(
    f"__{name}__" for name in (*_BINARY, *(f"r{value}" for value in _BINARY), "neg", "pos", "invert", "abs", "round")
)
CONVERTED = ("__int__", "__float__", "__complex__", "__index__")
_USED = (
    "__call__", "__iter__", "__next__", "__reversed__", "__len__", "__getitem__", "__setitem__", "__delitem__",
    "__contains__", "__enter__", "__exit__", "__aenter__", "__aexit__", "__aiter__", "__anext__",
)  # fmt: skip
_OF_ALL = ("__bool__", "__hash__", "__repr__", "__str__", "__format__")
SPECIAL = (*COMPARED, *ARITHMETIC, *CONVERTED, *_USED, "__await__", *_OF_ALL)
"""Names of special methods that are asked for."""
_OF_CLASSES = ("__module__", "__qualname__", "__classcell__")
_ALWAYS = ("__eq__", "__ne__", *_OF_ALL)


Description = TypedDict(
    "Description",
    {
        "name": str,
        "class": Any,
        "specials": list[str],
        "size": str,
        "type": NotRequired[int],
        "fields": NotRequired[list[str]],
        "kind": NotRequired[str],
        "async": NotRequired[bool],
        "title": NotRequired[str],
        "doc": NotRequired[str | None],
        "signature": NotRequired[list[list[Any]]],
    },
)
"""An object as ``operations.described`` describes it to the other end."""


class Proxy:
    """An object of the other process, number ``_number_`` of those that ``_link_`` knows; ``_about_`` describes
    it."""

    __slots__ = ("__weakref__", "_about_", "_link_", "_number_")

    def __new__(cls, *positional: Any, **named: Any) -> Any:
        """Make another object of the class there; a class where a class statement derives from what stands for one."""
        if len(positional) == 3 and isinstance(positional[2], dict) and "__qualname__" in positional[2]:
            name, bases, members = positional
            kept = {key: value for key, value in members.items() if key not in _OF_CLASSES}
            return cls._home_.ask("derive", None, name, list(bases), kept)  # type: ignore[attr-defined]
        return cls._home_.ask("make", None, cls._type_, *positional, **named)  # type: ignore[attr-defined]

    def __init__(self, *_: Any, **__: Any) -> None:
        """All is done."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self._about_.get("class") or type(self)

    def __getattr__(self, name: str) -> Any:
        return self._link_.attribute(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._link_.ask("set", self, name, value)

    def __delattr__(self, name: str) -> None:
        self._link_.ask("del", self, name)

    def __dir__(self) -> Any:
        return self._link_.ask("dir", self)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, Proxy) and bool(self._link_.ask("isinstance", value, self))

    def __subclasscheck__(self, value: Any) -> bool:
        return isinstance(value, Proxy) and bool(self._link_.ask("issubclass", value, self))

    def __copy__(self) -> Any:
        return self._link_.ask("copy", self, False)

    def __deepcopy__(self, _: Any) -> Any:
        return self._link_.ask("copy", self, True)

    def __reduce_ex__(self, _: Any) -> Any:
        return _revived, (_Pickled(self._link_), self._link_.ask("pickle", self))


class _Pickled:
    """Finds its link again: there is one in a process."""

    link: Any = None

    def __init__(self, link: Any) -> None:
        type(self).link = link

    def __reduce__(self) -> Any:
        return _same, ()


def _same() -> Any:
    return _Pickled(_Pickled.link)


def _revived(pickled: _Pickled, data: bytes) -> Any:
    return pickled.link.ask("unpickle", None, data)


def _forwarder(name: str) -> Any:
    def forward(self: Any, /, *positional: Any, **named: Any) -> Any:
        return self._link_.special(self, name, positional, named)

    return forward


def _getter(name: str) -> Any:
    return lambda self: self._link_.ask("get", self, name)


_forwarders = {name: _forwarder(name) for name in SPECIAL}
_forwarders["__await__"] = lambda self: self._link_.later(self).__await__()
_classes: dict[Any, type] = {}


def proxy(link: Any, number: int, about: Description) -> Any:
    """Make what stands for object ``number``, with the special methods that its class has there."""
    key = (about.get("type"), about["name"], *about["specials"])
    kind = _classes.get(key)
    if kind is None:
        names = {*about["specials"], *_ALWAYS} & _forwarders.keys()
        members: dict[str, object] = {name: _forwarders[name] for name in names}
        if fields := about.get("fields"):
            members["__dataclass_fields__"] = vars(dataclasses.make_dataclass("Fields", fields))["__dataclass_fields__"]
        members |= {name: property(_getter(name)) for name in ("__doc__", "__module__")}
        members |= {"__slots__": (), "_type_": about.get("type"), "_home_": link}
        kind = _classes[key] = type(about["name"], (Proxy,), members)
    stand_in: Any = object.__new__(kind)
    for name, value in (("_link_", link), ("_number_", number), ("_about_", about)):
        object.__setattr__(stand_in, name, value)
    return stand_in
