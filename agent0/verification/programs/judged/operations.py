"""What one end does for the other with an object of its own."""

import copy
import dataclasses
import inspect
import pickle
import types
from collections.abc import Callable, Mapping
from typing import Any

from . import values
from .proxies import SPECIAL, Description

POLL_S = 0.001


def _derived(name: str, bases: list[Any], members: Mapping[str, object]) -> type:
    return types.new_class(name, tuple(bases), {}, lambda namespace: namespace.update(members))


def special(target: Any, name: str, positional: list[Any]) -> Any:
    """Call the special method ``name`` of ``target``, as the language would."""
    if name == "__getitem__":
        return target[positional[0]]
    if name == "__bool__":
        return bool(target)
    if name == "__format__":
        return format(target, positional[0])
    if name in ("__exit__", "__aexit__"):
        error = positional[0]
        positional = [type(error) if error is not None else None, error, None]
    return getattr(type(target), name)(target, *positional)


def _poll(task: Any) -> bool:
    """Let tasks run for a moment, whatever loop is running; whether ``task`` is done."""
    import asyncio

    running = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        task.get_loop().run_until_complete(asyncio.wait([task], timeout=POLL_S))
    finally:
        asyncio._set_running_loop(running)
    return bool(task.done())


def _set(link: Any, target: Any, positional: list[Any], named: Mapping[str, object]) -> None:
    setattr(target, *positional)


OPERATIONS: dict[str, Callable[[Any, Any, list[Any], Mapping[str, object]], Any]] = {
    "call": lambda link, target, positional, named: target(*positional, **named),
    "make": lambda link, target, positional, named: link.exported(positional[0])(*positional[1:], **named),
    "derive": lambda link, target, positional, named: _derived(*positional),
    "get": lambda link, target, positional, named: getattr(target, *positional),
    "set": _set,
    "del": lambda link, target, positional, named: delattr(target, *positional),
    "dir": lambda link, target, positional, named: dir(target),
    "isinstance": lambda link, target, positional, named: isinstance(target, positional[0]),
    "issubclass": lambda link, target, positional, named: issubclass(target, positional[0]),
    "copy": lambda link, target, positional, named: copy.deepcopy(target) if positional[0] else copy.copy(target),
    "pickle": lambda link, target, positional, named: pickle.dumps(target),
    "unpickle": lambda link, target, positional, named: pickle.loads(positional[0]),  # noqa: S301 (the program's own)
    "start": lambda link, target, positional, named: link.start(target),
    "poll": lambda link, target, positional, named: _poll(target),
    "result": lambda link, target, positional, named: target.result(),
}


def described(value: Any, export: Callable[[Any], int]) -> Description:
    """Describe ``value`` for what stands for it at the other end; ``export`` numbers what that may refer to."""
    kind = type(value)
    about: Description = {
        "name": kind.__name__,
        "class": values.named_class(kind),
        "specials": _specials(kind),
        "size": "",
    }
    if about["class"] is None:
        about["type"] = export(kind)
        about["fields"] = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    if isinstance(value, type):
        about["specials"] = [*about["specials"], *(["__getitem__"] if hasattr(value, "__class_getitem__") else [])]
    if isinstance(value, types.CoroutineType):
        about["kind"] = "coroutine"
    if isinstance(value, types.FunctionType | types.MethodType):
        about |= {"kind": "function", "async": inspect.iscoroutinefunction(value)}
        about |= {"title": value.__name__, "doc": inspect.getdoc(value), "signature": _signature(value)}
    return about


def _specials(kind: type) -> list[str]:
    """The special methods that objects of ``kind`` have beyond those of every object."""
    plain = object if not issubclass(kind, type) else type
    specials = [name for name in SPECIAL if getattr(kind, name, None) not in (None, getattr(plain, name, None))]
    return [*specials, "__call__"] if issubclass(kind, type) else specials


def _signature(function: Any) -> list[list[Any]]:
    """Name, kind and whether there is a default, of each parameter."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return []
    return [[parameter.name, int(parameter.kind), parameter.default is not parameter.empty] for parameter in parameters]
