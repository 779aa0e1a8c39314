"""Verifies tests of a repository: each must pass on it, and together they must reject wrong versions that nobody sees.

A test is a function of lines ``assert call == value`` with literals; the call may stand in ``list``. They are read,
not run: their calls are made on every version, and their values compared outside of the sandbox. So no test can look at
which version it is on, none is flaky, and one that asserts nothing of a call is none.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent0.events.base import Value
from agent0.ports.sandbox import Sandbox
from agent0.verification.repositories.hidden_values import ModuleCalls, is_same, values_of

TESTS = "tests/test_more.py"
"""The file that a student writes."""
LARGEST, MOST_LINES, REDUNDANT = 32_768, 60, 0.25
"""Bytes of it, asserts in it, and what a test costs that rejects nothing new, in wrong versions."""
FORM = "a test is a function of lines `assert call == value` with literals"


class VersionedModule(Value):
    """A module with its wrong versions; ``functions`` are those that tests may call, after ``prelude`` was run.
    ``path`` is its file, empty for that of its name in the package."""

    name: str
    prelude: str
    functions: tuple[str, ...]
    versions: tuple[str, ...]
    path: str = ""


class HiddenVersions(Value):
    """All wrong versions of a package, each of one module. ``package`` is empty where modules have their whole names,
    as those of published packages."""

    package: str
    modules: tuple[VersionedModule, ...]


class FormError(Exception):
    """What a student wrote is no test; the message says where."""


@dataclass(frozen=True)
class _Assertion:
    test: str
    function: str
    expression: str
    expected: str


@dataclass(frozen=True)
class WrongVersions:
    """The ``reference`` files of a package, and wrong versions that tests are to reject, within ``seconds``."""

    hidden: HiddenVersions
    reference: Mapping[str, bytes]
    seconds: float

    @property
    def tests(self) -> list[str]:
        """The wrong versions, by module."""
        return [f"{module.name} {number}" for module in self.hidden.modules for number in range(len(module.versions))]

    async def accept(self, code: Mapping[str, bytes], sandbox: Sandbox) -> tuple[bool | None, str]:
        """Whether the tests in ``code`` reject every wrong version; the rest as for ``grade``."""
        return (await self.grade(code, sandbox))[:2]

    async def grade(self, code: Mapping[str, bytes], sandbox: Sandbox) -> tuple[bool | None, str, float | None]:
        """Whether the tests in ``code`` reject every wrong version, why not, and the share that is earned: 0 where one
        of them is wrong of the reference. None where the sandbox itself failed.

        Raises:
            SandboxUnavailableError: there is no sandbox.
        """
        try:
            assertions = _assertions(code.get(TESTS, b""), {f for m in self.hidden.modules for f in m.functions})
        except FormError as error:
            return False, str(error), 0.0
        modules, files = self._versions(assertions)
        values, problem, sandbox_failed = await values_of(modules, files, sandbox, self.seconds)
        if problem:
            return (None, problem, None) if sandbox_failed else (False, problem, 0.0)
        texts = iter(values)
        right = self._by_assertion(assertions, texts)
        if wrong := [each for each in assertions if not is_same(each.expected, right[each])]:
            return False, f"{wrong[0].test} fails: {wrong[0].expression} gives {right[wrong[0]][:80]}", 0.0
        rejected = [self._rejecting(assertions, self._by_assertion(assertions, texts)) for _ in self.tests]
        return self._earned(list(dict.fromkeys(each.test for each in assertions)), rejected)

    def _earned(self, names: Sequence[str], rejected: Sequence[set[str]]) -> tuple[bool, str, float]:
        """What tests are worth of which each of ``rejected`` has those that reject a version."""
        firsts = {next(name for name in names if name in tests) for tests in rejected if tests}
        killed, redundant = sum(map(bool, rejected)), len(names) - len(firsts)
        share = max(0.0, killed - REDUNDANT * redundant) / len(rejected)
        why = f"{killed} of {len(rejected)} wrong versions are rejected, {redundant} of {len(names)} tests add none"
        return killed == len(rejected) and redundant <= killed, why, round(share, 4)

    def _versions(self, assertions: Sequence[_Assertion]) -> tuple[list[ModuleCalls], dict[str, bytes]]:
        """All calls on the reference and on every wrong version, each in a folder of its own."""
        package = self.hidden.package
        versions: list[dict[str, bytes]] = [{}]
        for module in self.hidden.modules:
            path = module.path or f"{package}/{module.name}.py"
            versions += [{path: text.encode()} for text in module.versions]
        modules, files = list[ModuleCalls](), dict[str, bytes]()
        for number, changed in enumerate(versions):
            folder = f"version_{number}"
            files |= {f"{folder}/{path}": data for path, data in {**self.reference, **changed}.items()}
            modules += [
                ModuleCalls(
                    module=f"{package}.{module.name}" if package else module.name,
                    prelude=module.prelude,
                    calls=tuple(calls),
                    folder=folder,
                )
                for module in self.hidden.modules
                if (calls := [(each.expression, "") for each in assertions if each.function in module.functions])
            ]
        return modules, files

    def _by_assertion(self, assertions: Sequence[_Assertion], texts: Iterator[list[str]]) -> dict[_Assertion, str]:
        """The values of one version, which come by module."""
        by_assertion: dict[_Assertion, str] = {}
        for module in self.hidden.modules:
            if in_module := [each for each in assertions if each.function in module.functions]:
                by_assertion |= zip(in_module, next(texts), strict=True)
        return by_assertion

    def _rejecting(self, assertions: Sequence[_Assertion], values: Mapping[_Assertion, str]) -> set[str]:
        return {each.test for each in assertions if not is_same(each.expected, values[each])}


def _assertions(data: bytes, functions: set[str]) -> list[_Assertion]:
    """What the tests of a file assert, in order.

    Raises:
        FormError: there is none, or something else stands in it.
    """
    if not data or len(data) > LARGEST:
        raise FormError(f"{TESTS} {'is too long' if data else 'is not there'}")
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FormError(f"{TESTS} is no Python: {type(error).__name__}") from error
    assertions = list[_Assertion]()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            if any(each.test == node.name for each in assertions):
                raise FormError(f"line {node.lineno}: two tests are named {node.name[:40]}")
            assertions += [_assertion(node.name, line, functions) for line in node.body if not _is_text(line)]
        elif not (isinstance(node, ast.Import | ast.ImportFrom) or _is_text(node) or _is_helper(node)):
            raise FormError(f"line {node.lineno}: {FORM}")
    if not assertions or len(assertions) > MOST_LINES:
        raise FormError(f"it has {len(assertions)} asserts; at most {MOST_LINES} count, and at least 1")
    return assertions


def _assertion(test: str, node: ast.stmt, functions: set[str]) -> _Assertion:
    problem = FormError(f"line {node.lineno}: {FORM}")
    if not isinstance(node, ast.Assert) or not isinstance(node.test, ast.Compare) or len(node.test.ops) != 1:
        raise problem
    call, value = node.test.left, node.test.comparators[0]
    if not isinstance(node.test.ops[0], ast.Eq):
        raise problem
    function, expression = _call(call, node.lineno, functions)
    try:
        ast.literal_eval(value)
        return _Assertion(test, function, expression, ast.unparse(value))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise problem from error


def called(text: str, line: int, functions: set[str]) -> tuple[str, str]:
    """Read a call with literals: the function, and the call as Python writes it. ``line`` is where it stands.

    Raises:
        FormError: it is none, or of another function than ``functions``.
    """
    try:
        return _call(ast.parse(text, mode="eval").body, line, functions)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FormError(f"line {line}: {text[:40]!r} is no call with literals") from error


def _call(call: ast.expr, line: int, functions: set[str]) -> tuple[str, str]:
    if _is_listed(call) and "list" not in functions:
        function, expression = _bare_call(call.args[0], line, functions)  # type: ignore[attr-defined]  # as asked above
        return function, f"list({expression})"
    return _bare_call(call, line, functions)


def _is_listed(call: ast.expr) -> bool:
    """Whether it is ``list`` of a call, as an iterator is read."""
    is_list = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "list"
    return is_list and len(call.args) == 1 and not call.keywords and isinstance(call.args[0], ast.Call)  # type: ignore[attr-defined]


def _bare_call(call: ast.expr, line: int, functions: set[str]) -> tuple[str, str]:
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise FormError(f"line {line}: {FORM}")
    if call.func.id not in functions or call.keywords:
        raise FormError(f"line {line}: {call.func.id[:40]} is no function of the package that may be called")
    try:
        for argument in call.args:
            ast.literal_eval(argument)
        return call.func.id, ast.unparse(call)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise FormError(f"line {line}: {FORM}") from error


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_helper(node: ast.stmt) -> bool:
    """The helper ``after``, which may be repeated; what counts is ours."""
    return isinstance(node, ast.FunctionDef) and node.name == "after"
