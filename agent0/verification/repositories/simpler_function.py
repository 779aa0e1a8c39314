"""Verifies that a function of a published package became simpler and gives the same: measures of it and of helpers
beside it say the first, calls and tests of the package the second.

All else in its file must be as it was, and other files do not count. Calls that the package's tests make are varied,
anew for each answer from its digest; where the code before gives a literal the answer must give the same. Values are
compared outside of the sandbox.
"""

import ast
import builtins
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

from agent0.events.base import Value
from agent0.ports.sandbox import Sandbox
from agent0.tasks.mining.varied_calls import varied
from agent0.tools.snapshots import fingerprint
from agent0.verification.repositories.code_measures import CodeMeasures, UnmeasurableError, hiding, measures_of
from agent0.verification.repositories.hidden_tests import run_hidden_tests
from agent0.verification.repositories.hidden_values import ModuleCalls, is_readable, is_same, values_of
from agent0.verification.repositories.source_tree import SourceTree

DRAWN = 40
"""Calls that are drawn for an answer."""
_FOLDER = "code"
_RUNNING = ("__builtins__", "__import__", "breakpoint", "compile", "eval", "exec", "globals", "locals", "open", "vars")
"""What leads to code that no measure sees, so that no function may have it that was there before."""


class HiddenFunction(Value):
    """The function ``name`` of ``module`` in the file ``path``, what it may measure at most with its helpers, calls
    with their values, and the ``tests`` of the package in ``modules`` that reach it, which take ``seconds``."""

    path: str
    module: str
    name: str
    complexity: int
    size: int
    calls: tuple[tuple[str, str], ...]
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class SimplerFunction:
    """Measures, calls and tests that decide; ``files`` are all of the package as they were, its tests among them."""

    hidden: HiddenFunction
    files: Mapping[str, bytes]
    seconds: float

    @property
    def tests(self) -> list[str]:
        """The calls of the task, and the tests of the package."""
        return [*(call for call, _ in self.hidden.calls), *self.hidden.tests]

    async def accept(self, code: Mapping[str, bytes], sandbox: Sandbox) -> tuple[bool | None, str]:
        """Whether the function in ``code`` measures at most what it may and gives what it did, and why not; None where
        the sandbox itself failed.

        Raises:
            SandboxUnavailableError: there is no sandbox.
        """
        hidden, data = self.hidden, code.get(self.hidden.path, b"")
        try:
            measures = function_measures(data, self.files[hidden.path], hidden.name)
        except (UnmeasurableError, RecursionError) as error:
            return False, str(error)
        for name, value, most in (
            ("complexity", measures.complexity, hidden.complexity),
            ("size", measures.size, hidden.size),
        ):
            if value > most:
                return False, f"its {name} is {value}, and {most} is the most"
        accepted, why = await self._compared(data, sandbox)
        return await self._tested(data, sandbox) if accepted else (accepted, why)

    async def grade(self, code: Mapping[str, bytes], sandbox: Sandbox) -> tuple[bool | None, str, float | None]:
        """As ``accept``, with the share that is earned: all or nothing, None where the sandbox itself failed."""
        accepted, why = await self.accept(code, sandbox)
        return accepted, why, None if accepted is None else float(accepted)

    async def _compared(self, data: bytes, sandbox: Sandbox) -> tuple[bool | None, str]:
        """Whether all calls give the same."""
        rng = random.Random(f"{self.hidden.module} {fingerprint({self.hidden.path: data})}")
        drawn = [varied(rng.choice(self.hidden.calls)[0], rng) for _ in range(DRAWN)]
        before, problem, sandbox_failed = await self._values(drawn, self.files[self.hidden.path], sandbox)
        if sandbox_failed:
            return None, problem
        pairs = [] if problem else zip(drawn, before[0], strict=True)  # else one of them takes too long as it was
        expected = [*self.hidden.calls, *((call, text) for call, text in pairs if is_readable(text))]
        values, problem, sandbox_failed = await self._values([call for call, _ in expected], data, sandbox)
        if problem:
            return None if sandbox_failed else False, problem
        wrong = [call for (call, text), value in zip(expected, values[0], strict=True) if not is_same(text, value)]
        return not wrong, f"{len(wrong)} of {len(expected)} calls give another value" if wrong else ""

    async def _values(self, calls: list[str], data: bytes, sandbox: Sandbox) -> tuple[list[list[str]], str, bool]:
        """As ``values_of``, with ``data`` as the file."""
        module = ModuleCalls(
            module=self.hidden.module, prelude="", calls=tuple((call, "") for call in calls), folder=_FOLDER
        )
        importable = SourceTree({**self.files, self.hidden.path: data}).importable
        files = {f"{_FOLDER}/{path}": each for path, each in importable.items()}
        return await values_of([module], files, sandbox, self.seconds)

    async def _tested(self, data: bytes, sandbox: Sandbox) -> tuple[bool | None, str]:
        """Whether the tests of the package pass."""
        hidden, tree = self.hidden, SourceTree({**self.files, self.hidden.path: data})
        run = await run_hidden_tests(
            tree.files, (tree.root,), hidden.modules, sandbox, hidden.seconds, hidden.tests, messages=False
        )
        if run.sandbox_failed or run.problem:
            return None if run.sandbox_failed else False, run.problem
        failed = set(hidden.tests) - run.passed
        return not failed, f"{len(failed)} of {len(hidden.tests)} tests fail, such as {min(failed)}" if failed else ""


def function_measures(data: bytes, before: bytes, name: str) -> CodeMeasures:
    """Measure the function ``name`` in the file ``data`` and the functions beside it that ``before`` does not have.

    Raises:
        UnmeasurableError: something else was changed, its signature too; or it has what could hide code and had not.
    """
    old, new = _body(before), _body(data)
    function, was = _function(new, name), _function(old, name)
    if _signature(function) != _signature(was):
        raise UnmeasurableError(f"the signature of {name} was changed")
    kept = [ast.dump(node) for node in old if node is not was]
    texts = {id(node): ast.dump(node) for node in new if node is not function}
    added = [node for node in new if id(node) in texts and texts[id(node)] not in kept]
    if [text for text in texts.values() if text in kept] != kept:
        raise UnmeasurableError(f"something beside {name} was changed")
    names = {*re.findall(r"\w+", before.decode(errors="replace")), *dir(builtins)}
    for node in added:
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        if not is_import and not (isinstance(node, ast.FunctionDef) and node.name not in names):
            raise UnmeasurableError(f"line {node.lineno}: beside {name} only functions and imports may be added")
    allowed = hiding([was], "") - {f"it uses {name}" for name in _RUNNING}
    if faults := sorted(hiding([function, *added], "") - allowed):
        raise UnmeasurableError(faults[0][:120])
    return measures_of([function, *added])


def _body(data: bytes) -> list[ast.stmt]:
    try:
        return ast.parse(data).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnmeasurableError(f"the file is no Python: {type(error).__name__}") from error


def _function(body: list[ast.stmt], name: str) -> ast.FunctionDef:
    functions = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
    if len(functions) != 1:
        raise UnmeasurableError(f"it has {len(functions)} functions {name}")
    return functions[0]


def _signature(node: ast.FunctionDef) -> str:
    return ast.dump(node.args) + "".join(map(ast.dump, node.decorator_list))
