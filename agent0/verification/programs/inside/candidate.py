"""The candidate's process: runs its source, then each requested call, and writes down the results.

It shares a process with untrusted code, which may forge whatever is written here. It sees arguments only, so all it
could forge is a value that is right.
"""

import builtins
import json
import operator
import sys
import types
from collections.abc import Callable, Iterator, Sized
from itertools import islice
from pathlib import Path
from typing import Any

from . import values
from .operators import BINARY, COMPARED, UNARY

MOST_ITEMS = 10_000
"""Of an asynchronous generator, or an object of the program's own."""


def main() -> None:
    """Run ``request.json``'s source and calls; write ``results.jsonl`` line by line as results come."""
    sys.setrecursionlimit(5000)
    request = json.loads(Path("request.json").read_text())
    sys.modules["candidate"] = module = types.ModuleType("candidate")  # as an import would: classes look it up
    objects: dict[str, dict[str, Any]] = {"name": vars(module), "result": {}}
    with Path("results.jsonl").open("w", encoding="utf-8") as out:

        def write(answer: dict[str, Any]) -> None:
            out.write(json.dumps(answer) + "\n")
            out.flush()

        try:
            exec(compile(request["source"], "candidate.py", "exec"), objects["name"])  # noqa: S102 (the purpose of this room)
        except BaseException as error:
            write({"broken": f"{type(error).__name__}: {error}"[:300]})
            return
        write({"loaded": True})
        for asked in request["calls"]:
            write(answer(objects, asked, request["names"], request.get("sent", False)))


OPERATIONS: dict[str, Callable[..., Any]] = {
    ".get": getattr, ".set": setattr, ".call": lambda function, /, *positional, **named: function(*positional, **named),
    ".len": len, ".str": str, ".repr": repr, ".bool": bool, ".next": next, ".hash": hash,
    ".list": lambda items: list(islice(items, MOST_ITEMS)),
    ".isinstance": isinstance, ".item": operator.getitem, ".setitem": operator.setitem, ".delitem": operator.delitem,
    ".in": operator.contains, ".eq": operator.eq,
    **{f".{name}": getattr(operator, name) for name in COMPARED},
    **{f".{name}": getattr(operator, function) for name, function in {**BINARY, **UNARY}.items()},
    ".enter": lambda held: type(held).__enter__(held), ".aenter": lambda held: type(held).__aenter__(held),
    ".exit": lambda held, kind, text: type(held).__exit__(held, *_raised(kind, text)),
    ".aexit": lambda held, kind, text: type(held).__aexit__(held, *_raised(kind, text)),
}  # fmt: skip
"""What tests do with an object that stays here."""


def _raised(kind: "str | None", text: str) -> tuple[Any, Any, None]:
    """An error of the tests, as a context manager is told of it."""
    made = getattr(builtins, kind or "", RuntimeError)
    return (made, made(text), None) if kind else (None, None, None)


def answer(objects: dict[str, dict[str, Any]], asked: str, own: list[str], sent: bool) -> dict[str, Any]:
    """Carry out one call: returns its value and its arguments afterwards, what it raised, or that the value is opaque
    and stays in ``objects``. What is awaitable is awaited. Values of a class among ``own`` are opaque;
    generators too where tests send them something (``sent``), or where they raise."""
    kind = ""
    try:
        name, positional, named = values.call_of(asked, objects)
        function = OPERATIONS[name] if name in OPERATIONS else objects["name"][name]
    except KeyError as error:
        return {"raised": ["NameError", f"name {error} is not defined", []]}
    try:
        value = function(*positional, **named) if callable(function) else function
        kind = _AWAITED.get(type(value), "")
        value = _awaited(value) if kind else value
    except BaseException as error:
        return {"raised": [_builtin(error), str(error)[:300], _lineage(error)], "kind": kind}
    objects["result"][values.digest(asked)] = value
    read: list[Any] = []
    try:
        if _stays(value, own) or (sent and isinstance(value, types.GeneratorType)):
            raise values.OpaqueError(type(value).__name__)
        packed = values.pack(_reading(value, read) if isinstance(value, Iterator) else value)
        return {"value": packed, "after": _after(name, positional), "kind": kind}
    except values.OpaqueError as error:
        if read:
            objects["result"][values.digest(asked)] = _again(read, value)
        sized = (str(error) in values.SIZES or name == ".list") and isinstance(value, Sized)
        length = len(value) if sized else None
        return {"opaque": str(error)[:100], "true": _truth(value), "length": length, "kind": kind}


def _stays(value: Any, own: list[str]) -> bool:
    """Whether ``value`` is an object of a class that tests name; what is only iterated over is read."""
    kind = type(value)
    iterated = isinstance(value, Iterator) and not kind.__name__[:1].isupper()
    return kind.__module__ == "candidate" and kind.__name__ in own and not iterated


def _reading(items: Iterator[Any], read: list[Any]) -> Iterator[Any]:
    """``items``, each kept in ``read``; an error that came instead of one, too."""
    try:
        for item in items:
            read.append(item)
            yield item
    except GeneratorExit:
        raise  # nobody asks for more
    except BaseException as error:
        read.append(_Instead(error))
        raise values.OpaqueError(type(items).__name__) from error


class _Instead:
    """The error that came instead of an item."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _again(read: list[Any], rest: Iterator[Any]) -> Iterator[Any]:
    """What was read, then the rest, or the error that came instead of an item."""
    for item in read:
        if isinstance(item, _Instead):
            raise item.error
        yield item
    yield from rest


_AWAITED = {types.CoroutineType: "coroutine", types.AsyncGeneratorType: "asyncgen"}


def _awaited(value: Any) -> Any:
    """The result of a coroutine, or what an asynchronous generator yields, as far as it is read at first."""
    import asyncio  # takes long, and is seldom needed

    async def read() -> Any:
        if isinstance(value, types.CoroutineType):
            return await value
        items = []
        async for item in value:
            items.append(item)
            if len(items) >= MOST_ITEMS:
                break
        return items

    return asyncio.run(read())


def _after(name: str, positional: list[Any]) -> str:
    """Arguments as a call left them; none where one stays here, and changes here."""
    try:
        return values.pack([] if name in OPERATIONS else positional)
    except values.OpaqueError:
        return values.pack([])


def _truth(value: Any) -> bool:
    try:
        return bool(value)
    except BaseException:
        return True


def _lineage(error: BaseException) -> list[str]:
    return [kind.__name__ for kind in type(error).__mro__ if kind.__module__ != "builtins"]


def _builtin(error: BaseException) -> str:
    """The class that tests can know: a program's own ones stay here."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")


main()
