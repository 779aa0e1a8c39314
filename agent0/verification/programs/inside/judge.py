"""The tests' process: runs tests against stand-ins whose results were computed elsewhere and crossed as plain data.

A call whose result is not known yet ends the tests. They are then run once more, without their assertions and with
something that agrees with everything in place of unknown results: that decides nothing, it only finds out which calls
are needed.
"""

import ast
import builtins
import contextlib
import json
import random
from pathlib import Path
from typing import Any

from . import values

MOST_CALLS = 5000
_BEGINNING = random.getstate()


class Anything:
    """Stands for an unknown result: agrees with every comparison and supports every operation."""

    def __call__(self, *_: Any, **__: Any) -> "Anything":
        return self

    def __getattr__(self, name: str) -> "Anything":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __iter__(self) -> Any:
        return iter((self, self))

    def _same(self, *_: Any) -> "Anything":
        return self

    def _true(self, *_: Any) -> bool:
        return True

    __hash__ = object.__hash__
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = _true
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _same
    __floordiv__ = __mod__ = __pow__ = __rpow__ = __neg__ = __abs__ = __round__ = __getitem__ = _same
    __len__ = __int__ = __index__ = lambda _: 1

    def __float__(self) -> float:
        return 1.0


class ResultNeeded(BaseException):
    """Raised to stop a run of the tests that needs a result which is not known yet."""


class ArgumentError(values.OpaqueError):
    """Tests pass an argument that is no plain data, perhaps an object of their own."""


class Opaque:
    """A result that is no plain data and stayed in the candidate's process: its truth value is known. Where it is only
    too large, so is its length, and that it equals nothing small."""

    def __init__(self, kind: str, true: bool, length: "int | None") -> None:
        self._kind, self._true, self._length = kind, true, length

    def __bool__(self) -> bool:
        return self._true

    def __len__(self) -> int:
        return self._unknown() if self._length is None else self._length

    def __eq__(self, other: object) -> bool:
        if self._kind in values.SIZES and not isinstance(other, Opaque):
            with contextlib.suppress(values.OpaqueError):
                values.pack(other)
                return False
        return bool(self._unknown())

    def __ne__(self, other: object) -> bool:
        return not self == other

    def _unknown(self, *_: Any) -> Any:
        raise values.OpaqueError(self._kind)

    __hash__ = object.__hash__
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _unknown
    __add__ = __radd__ = __sub__ = __rsub__ = __getitem__ = __iter__ = __call__ = __float__ = _unknown


class StandIn:
    """Stands in for one function of the candidate; with ``unknown`` None an unknown result ends the tests."""

    def __init__(
        self, name: str, known: dict[str, Any], unknown: "dict[str, None] | None", times: dict[str, int]
    ) -> None:
        self._name, self._known, self._unknown, self._times = name, known, unknown, times

    def __call__(self, *positional: Any, **named: Any) -> Any:
        try:
            asked = values.numbered([self._name, list(positional), named], self._times)
        except values.OpaqueError as error:
            if self._unknown is None:
                raise ArgumentError(str(error)) from error
            return Anything()  # it is called with a result that is not known yet
        if asked in self._known:
            return _replayed(self._known[asked], positional)
        if self._unknown is None or len(self._unknown) > MOST_CALLS:
            raise ResultNeeded
        self._unknown[asked] = None
        return Anything()


def _replayed(known: dict[str, Any], positional: tuple[Any, ...]) -> Any:
    if "raised" in known:
        kind = getattr(builtins, known["raised"][0], RuntimeError)
        usable = isinstance(kind, type) and issubclass(kind, Exception)
        raise (kind if usable else RuntimeError)(known["raised"][1])
    if "opaque" in known:
        return Opaque(known["opaque"], bool(known["true"]), known.get("length"))
    for before, after in zip(positional, values.unpack(known["after"]), strict=False):
        _become(before, after)
    return values.unpack(known["value"])


def _become(before: Any, after: Any) -> None:
    """A call may change lists, dictionaries and sets that it was given."""
    if type(before) is not type(after) or before == after:
        return
    if isinstance(before, list):
        before[:] = after
    elif isinstance(before, (dict, set)):
        before.clear()
        before.update(after)


class _Unasserted(ast.NodeTransformer):
    """Assertions become expressions."""

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return ast.copy_location(ast.Expr(node.test), node)


def main() -> None:
    """Run ``request.json``'s tests; write ``verdict.json``: a failure (empty: none), what is opaque, or calls needed
    first."""
    request = json.loads(Path("request.json").read_text())
    verdict: dict[str, Any]
    try:
        _run_tests(request, None)
        verdict = {"failure": ""}
    except ResultNeeded:
        verdict = {"needs": _needs(request)}
    except values.OpaqueError as error:
        verdict = {"opaque": str(error), "argument": isinstance(error, ArgumentError)}
    except BaseException as error:
        verdict = {"failure": f"{type(error).__name__}: {error}"[:300]}
    Path("verdict.json").write_text(json.dumps(verdict))


def _needs(request: dict[str, Any]) -> list[str]:
    unknown: dict[str, None] = {}
    with contextlib.suppress(BaseException):  # what was learnt until there is what there is
        _run_tests(request, unknown)
    return list(unknown)


def _run_tests(request: dict[str, Any], unknown: "dict[str, None] | None") -> None:
    names: dict[str, Any] = {"__name__": "tests"}
    random.setstate(_BEGINNING)  # what is told twice draws the same numbers
    exec(compile(request["setup"], "setup.py", "exec"), names)  # noqa: S102 (the purpose of this room)
    times: dict[str, int] = {}
    for name in request["names"]:
        names[name] = StandIn(name, request["known"], unknown, times)
    tests = ast.parse(request["test"])
    if unknown is not None:
        tests = ast.fix_missing_locations(_Unasserted().visit(tests))
    exec(compile(tests, "tests.py", "exec"), names)  # noqa: S102
    if request["entry"]:
        names["check"](names[request["entry"]])


main()
