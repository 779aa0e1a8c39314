"""Runs tests as pytest and unittest would: what they do themselves, then what they only define."""

import ast
import functools
import inspect
import sys
import types
import unittest
from collections.abc import Iterator, Mapping
from typing import Any

from . import pytest_stand_in

REACHED = "__reached__"
"""What tests call, once they are rewritten, with the number of an assertion that has held."""


class _Assertions(ast.NodeTransformer):
    """Puts a call of ``REACHED`` behind each assertion that does not fail in any case."""

    def __init__(self) -> None:
        self.number = 0

    def visit_Assert(self, node: ast.Assert) -> Any:
        if isinstance(node.test, ast.Constant) and not node.test.value:
            return node
        return self._counted(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        function = node.value.func if isinstance(node.value, ast.Call) else None
        name = getattr(function, "attr", getattr(function, "id", ""))
        return self._counted(node) if name.lower().startswith("assert") else self.generic_visit(node)

    def _counted(self, node: ast.stmt) -> list[ast.stmt]:
        self.number += 1
        call = ast.Call(ast.Name(REACHED, ast.Load()), [ast.Constant(self.number)], [])
        return [node, ast.copy_location(ast.Expr(call), node)]


class Tests:
    """The tests of one problem. ``reached`` has the assertions that were come to, ``assertions`` counts all."""

    def __init__(self, source: str) -> None:
        """Compile ``source``; nothing of it runs yet."""
        writer = _Assertions()
        self._tree = ast.fix_missing_locations(writer.visit(ast.parse(source)))
        self._code = compile(self._tree, "tests.py", "exec")
        self.assertions, self.reached = writer.number, set[int]()
        self._names: dict[str, Any] = {}
        self._ran = False

    def run(self, module: types.ModuleType, entry: str) -> None:
        """Run all of them in ``module``; ``entry`` is what ``check`` is given, empty for nothing.

        Raises:
            BaseException: one failed.
        """
        self._names = vars(module)
        self._names[REACHED] = self.reached.add
        before = dict(self._names)
        unittest.main = self._main  # type: ignore[assignment]
        unittest.TextTestRunner = self._runner  # type: ignore[assignment, misc]
        unittest.TestCase.assertSetEqual = unittest.TestCase._baseAssertEqual  # type: ignore[attr-defined, method-assign]
        sys.modules.setdefault("pytest", pytest_stand_in.module(lambda: self._collect(before)))
        exec(self._code, self._names)  # noqa: S102 (the purpose of this room)
        if entry:
            self._names["check"](self._names[entry])
        self._collect(before)

    @functools.cached_property
    def _used(self) -> set[str]:
        """Names whose values the tests themselves use."""
        nodes = ast.walk(self._tree)
        return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}

    def _main(self, *_: Any, **__: Any) -> Any:
        self._unittests(self._cases({}))
        return types.SimpleNamespace(result=unittest.TestResult())

    def _runner(self, *_: Any, **__: Any) -> Any:
        return types.SimpleNamespace(run=self._unittests)

    def _collect(self, before: Mapping[str, object]) -> int:
        """Run test cases, test functions and test classes that nobody ran."""
        if not self._ran:
            self._unittests(self._cases(before))
        fixtures = pytest_stand_in.Fixtures(self._names)
        for name, value in list(self._names.items()):
            if before.get(name) is value or not name.lower().startswith("test") or name in self._used:
                continue
            if type(value) is types.FunctionType:
                _called(fixtures, value)
            elif _is_class(value) and not issubclass(value, unittest.TestCase) and "__init__" not in vars(value):
                _methods_called(fixtures, value)
        return 0

    def _cases(self, before: Mapping[str, object]) -> unittest.TestSuite:
        kinds = [
            value
            for name, value in self._names.items()
            if before.get(name) is not value and _is_class(value) and issubclass(value, unittest.TestCase)
        ]
        return unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromTestCase, kinds))

    def _unittests(self, suite: Any) -> unittest.TestResult:
        self._ran = True
        result = _Result()
        suite.run(result)
        if result.unexpectedSuccesses:
            raise AssertionError("an unexpected success")
        return result


def _is_class(value: Any) -> bool:
    """Whether ``value`` is a class of the tests: what stands for one of the candidate only says so."""
    return issubclass(type(value), type)


class _Result(unittest.TestResult):
    """Raises the first failure."""

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802 (unittest's name)
        raise err[1]

    addFailure = addError  # noqa: N815

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        if err is not None:
            raise err[1]


def _methods_called(fixtures: "pytest_stand_in.Fixtures", kind: type) -> None:
    for name in [name for name in dir(kind) if name.startswith("test") and callable(getattr(kind, name))]:
        instance = kind()
        _around(instance, "setup", name)
        _called(fixtures, getattr(instance, name))
        _around(instance, "teardown", name)
    for inner in [value for name, value in vars(kind).items() if name.startswith("Test") and _is_class(value)]:
        _methods_called(fixtures, inner)


def _around(instance: Any, when: str, name: str) -> None:
    for method in (
        getattr(instance, method, None)
        for method in (f"{when}_class", f"{when}_method", "setUp" if when == "setup" else "tearDown")
    ):
        if method is not None:
            method(*([getattr(instance, name)] if inspect.signature(method).parameters else []))


def _called(fixtures: "pytest_stand_in.Fixtures", function: Any) -> None:
    for named in _cases_of(function):
        with fixtures.of(function, named) as arguments:
            value = function(**arguments)
            if inspect.iscoroutine(value):
                import asyncio  # takes long, and is seldom needed

                asyncio.run(value)


def _cases_of(function: Any) -> Iterator[dict[str, object]]:
    if getattr(function, "skipped", False):
        return
    cases: list[dict[str, object]] = [{}]
    for names, rows in getattr(function, "parametrized", ()):
        cases = [{**case, **dict(zip(names, row, strict=True))} for case in cases for row in rows]
    yield from cases
