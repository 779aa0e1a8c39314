"""The candidate's process: runs its source, then each requested call, and writes down the results.

It shares a process with untrusted code, which may forge whatever is written here. It sees arguments only, so all it
could forge is a value that is right.
"""

import json
import sys
from collections.abc import Sized
from pathlib import Path
from typing import Any

from . import values


def main() -> None:
    """Run ``request.json``'s source and calls; write ``results.jsonl`` line by line as results come."""
    sys.setrecursionlimit(5000)
    request = json.loads(Path("request.json").read_text())
    names: dict[str, Any] = {"__name__": "candidate"}
    with Path("results.jsonl").open("w", encoding="utf-8") as out:

        def write(answer: dict[str, Any]) -> None:
            out.write(json.dumps(answer) + "\n")
            out.flush()

        try:
            exec(compile(request["source"], "candidate.py", "exec"), names)  # noqa: S102 (the purpose of this room)
        except BaseException as error:
            write({"broken": f"{type(error).__name__}: {error}"[:300]})
            return
        write({"loaded": True})
        for asked in request["calls"]:
            write(answer(names, asked))


def answer(names: dict[str, Any], asked: str) -> dict[str, Any]:
    """Carry out one call: returns its value and its arguments afterwards, what it raised, or that the value
    is opaque."""
    name, positional, named = values.call_of(asked)
    try:
        function = names[name]
    except KeyError:
        return {"raised": ["NameError", f"name {name!r} is not defined"]}
    try:
        value = function(*positional, **named) if callable(function) else function
    except BaseException as error:
        return {"raised": [_builtin(error), str(error)[:300]]}
    try:
        return {"value": values.pack(value), "after": values.pack(list(positional))}
    except values.OpaqueError as error:
        sized = str(error) in values.SIZES and isinstance(value, Sized)
        return {"opaque": str(error)[:100], "true": bool(value), "length": len(value) if sized else None}


def _builtin(error: BaseException) -> str:
    """The class that tests can know: a program's own ones stay here."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")


main()
