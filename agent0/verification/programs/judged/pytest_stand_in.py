"""What tests use of pytest, which is not in the sandbox: ``raises``, ``approx``, ``fixture``, ``mark`` and the like."""

import contextlib
import inspect
import io
import math
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any


class Raises:
    """``with raises(Kind, match="…") as info``: expects an error; ``info.value`` is it."""

    def __init__(self, kinds: Any, match: str | None) -> None:
        self._kinds, self._match = kinds, match
        self.value: Any = None
        self.type: Any = None

    def __enter__(self) -> "Raises":
        return self

    def __exit__(self, kind: Any, error: Any, _: Any) -> bool:
        if error is None:
            raise AssertionError(f"DID NOT RAISE {self._kinds}")
        if not isinstance(error, self._kinds):
            return False
        if self._match is not None and not re.search(self._match, str(error)):
            raise AssertionError(f"{str(error)[:200]!r} does not match {self._match!r}")
        self.value, self.type = error, kind
        return True


def raises(kinds: Any, *call: Any, match: str | None = None, **named: Any) -> Any:
    """Expect an error of ``kinds``, as the function of pytest does."""
    expected = Raises(kinds, match)
    if not call:
        return expected
    with expected:
        call[0](*call[1:], **named)
    return expected


class Approximate:
    """``approx(expected)``: equals numbers near it, also in lists and dictionaries."""

    def __init__(self, expected: Any, rel: float | None = None, abs: float | None = None, nan_ok: bool = False) -> None:
        self._expected, self._nan = expected, nan_ok
        self._abs = 1e-12 if abs is None else abs
        self._rel = (1e-6 if abs is None else 0.0) if rel is None else rel

    def __eq__(self, other: object) -> bool:
        return self._near(other, self._expected)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def _near(self, left: Any, right: Any) -> bool:
        if isinstance(right, dict):
            same = isinstance(left, dict) and left.keys() == right.keys()
            return same and all(self._near(left[key], item) for key, item in right.items())
        if isinstance(right, list | tuple):
            same = isinstance(left, list | tuple) and len(left) == len(right)
            return same and all(self._near(*pair) for pair in zip(left, right, strict=True))
        if isinstance(right, bool) or not isinstance(right, int | float | complex):
            return bool(left == right)
        if right != right:
            return self._nan and left != left
        if isinstance(right, float | int) and math.isinf(right):
            return bool(left == right)
        return isinstance(left, int | float | complex) and abs(left - right) <= max(self._rel * abs(right), self._abs)


def parametrize(names: Any, rows: Any, **_: Any) -> Callable[[Any], Any]:
    """As ``pytest.mark.parametrize``; kept with the function for whoever runs it."""
    listed = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

    def mark(function: Any) -> Any:
        cells = [getattr(row, "cells", row) for row in rows]
        function.parametrized = [
            *getattr(function, "parametrized", ()),
            (listed, [row if len(listed) > 1 or isinstance(row, _Cells) else (row,) for row in cells]),
        ]
        return function

    return mark


class _Cells(tuple[Any, ...]):
    """A row made by ``pytest.param``."""

    __slots__ = ()


class _Marks:
    parametrize = staticmethod(parametrize)

    def __getattr__(self, name: str) -> Any:
        def mark(*positional: Any, **_: Any) -> Any:
            if len(positional) == 1 and inspect.isfunction(positional[0]):
                return _skipped(positional[0]) if name == "skip" else positional[0]
            skips = name == "skip" or (name == "skipif" and positional and positional[0])
            return _skipped if skips else lambda function: function

        return mark


def _skipped(function: Any) -> Any:
    function.skipped = True
    return function


def fixture(function: Any = None, **_: Any) -> Any:
    """As pytest's, of any scope: made anew for each test."""
    if function is None:
        return fixture
    function.is_fixture = True
    return function


class Fixtures:
    """The fixtures that ``names`` define, and some of pytest's own."""

    def __init__(self, names: Mapping[str, object]) -> None:
        self._names = names

    @contextlib.contextmanager
    def of(self, function: Any, values: Mapping[str, object]) -> Iterator[dict[str, object]]:
        """Yield the arguments of a test; what was set up for it is taken down afterwards."""
        with contextlib.ExitStack() as stack:
            fixtures = dict(values)
            parameters = [
                item.name
                for item in inspect.signature(function).parameters.values()
                if item.default is item.empty and item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)
            ]
            yield {name: self._value(name, fixtures, stack) for name in parameters}

    def _value(self, name: str, fixtures: dict[str, object], stack: contextlib.ExitStack) -> object:
        if name not in fixtures:
            maker = self._names.get(name)
            if type(maker) is types.FunctionType and getattr(maker, "is_fixture", False):
                needed = {item: self._value(item, fixtures, stack) for item in inspect.signature(maker).parameters}
                value = maker(**needed)
                fixtures[name] = stack.enter_context(_yielded(value)) if inspect.isgenerator(value) else value
            else:
                fixtures[name] = stack.enter_context(_OWN[name]())
        return fixtures[name]


@contextlib.contextmanager
def _yielded(steps: Any) -> Iterator[Any]:
    yield next(steps)
    next(steps, None)


class _Captured:
    """``capsys``."""

    def __init__(self) -> None:
        self._out, self._err = io.StringIO(), io.StringIO()

    def readouterr(self) -> Any:
        """What was printed since it was last asked."""
        captured = types.SimpleNamespace(out=self._out.getvalue(), err=self._err.getvalue())
        for item in (self._out, self._err):
            item.seek(0)
            item.truncate()
        return captured


@contextlib.contextmanager
def _captured() -> Iterator[Any]:
    captured = _Captured()
    with contextlib.redirect_stdout(captured._out), contextlib.redirect_stderr(captured._err):
        yield captured


def _mock() -> Any:
    import unittest.mock  # takes long, and is seldom needed

    return unittest.mock


class _Patching:
    """``monkeypatch``."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack

    def setattr(self, target: Any, name: Any, value: Any = None) -> None:
        """Set an attribute until the test ends; ``target`` may be text with dots."""
        patch = _mock().patch
        self._stack.enter_context(patch(target, name) if isinstance(target, str) else patch.object(target, name, value))

    def setitem(self, target: Any, name: Any, value: Any) -> None:
        """Set an item until the test ends."""
        self._stack.enter_context(_mock().patch.dict(target, {name: value}))


@contextlib.contextmanager
def _patching() -> Iterator[Any]:
    with contextlib.ExitStack() as stack:
        yield _Patching(stack)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    import tempfile  # seldom needed, and what it brings along would be copied by every fork

    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


_OWN: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
    "capsys": _captured,
    "monkeypatch": _patching,
    "tmp_path": _folder,
}


def _fail(reason: str = "", **_: Any) -> None:
    raise AssertionError(reason)


def module(main: Callable[[], int]) -> types.ModuleType:
    """The stand-in as a module; ``main`` is what ``pytest.main`` does."""
    fixtures = types.ModuleType("pytest")
    vars(fixtures).update(raises=raises, approx=Approximate, fixture=fixture, mark=_Marks(), fail=_fail)
    vars(fixtures).update(
        param=lambda *cells, **_: types.SimpleNamespace(cells=_Cells(cells)), main=lambda *_, **__: main()
    )
    sys.modules["pytest"] = fixtures
    return fixtures
