"""Part of the rim: functions of a release that its own tests call with literals, and what these calls give. From them
come the calls that decide where no test of the package is asked."""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent0.assembly.mining.baseline import TRIALS, Baseline, Release, UnusableError
from agent0.assembly.mining.candidates import Code, with_mutations
from agent0.errors import DependencyError
from agent0.ports.sandbox import Sandbox
from agent0.tasks.mining.mutations import Mutation
from agent0.verification.repositories.hidden_tests import Call, TestRun
from agent0.verification.repositories.hidden_values import RAISES, ModuleCalls, is_readable, is_same, values_of
from agent0.verification.repositories.source_tree import SourceTree

CALLS, LONGEST, BATCH_S = 30, 400, 20.0
"""Calls of a function, characters of one with its value, seconds for those of a file."""
_PATH = re.compile(r"[A-Za-z0-9_/]{1,200}\.py")
_READ = "_as_a_list_is"
_PRELUDE = f"""
def {_READ}(value):
    import itertools
    if not hasattr(value, '__next__'):
        return '', value
    items = list(itertools.islice(value, 100))
    if len(items) == 100:
        raise OverflowError
    return 'list', items
"""
"""An iterator is read as a list, where it ends."""
Calls = tuple[tuple[str, str], ...]
"""Expressions with the texts of their values, which are literals."""


@dataclass(frozen=True)
class CalledFunction:
    """The function ``name`` of ``module`` in the file ``path``; ``others`` are calls of others in that file."""

    path: str
    module: str
    name: str
    calls: Calls
    others: Mapping[str, Calls]

    @property
    def functions(self) -> tuple[str, ...]:
        """Names in its file that have calls."""
        return tuple(sorted({self.name, *self.others}))

    @property
    def all_calls(self) -> Calls:
        """Its calls, then those of the others."""
        return (*self.calls, *(call for calls in self.others.values() for call in calls))


@dataclass(frozen=True)
class MinedRelease:
    """A release whose tests were run, and watched: ``callers`` are the tests that reach a function, ``mutations`` those
    that some test reaches."""

    release: Release
    start: Baseline
    callers: Mapping[Call, frozenset[str]]
    mutations: Sequence[Mutation]
    functions: Sequence[CalledFunction]
    sandbox: Sandbox

    @property
    def untested(self) -> dict[str, bytes]:
        """All files but the tests."""
        tree = self.release.tree
        return {path: data for path, data in tree.files.items() if path not in tree.tests}

    def mutations_in(self, function: CalledFunction) -> list[Mutation]:
        """Those of its body, and of functions inside it."""
        return [
            each
            for each in self.mutations
            if each.path == function.path and each.function.partition(".")[0] == function.name
        ]

    def tests_of(self, function: CalledFunction) -> frozenset[str]:
        """The tests that call it, flaky ones out."""
        for node in ast.parse(self.release.code[function.path]).body:
            if isinstance(node, ast.FunctionDef) and node.name == function.name:
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                return self.callers.get((function.path, first), frozenset()) & self.start.stable
        return frozenset()

    def changed(self, mutation: Mutation) -> Code:
        """All code with ``mutation``.

        Raises:
            UnusableError: it is no Python.
        """
        code = with_mutations(self.release.code, [mutation])
        if code is None:
            raise UnusableError("the changed file is no Python")
        return code

    def importable(self, code: Code) -> dict[str, bytes]:
        """``code`` with the data of its packages, by paths from where they are imported."""
        return SourceTree({**self.release.tree.files, **code}).importable

    async def wrong_calls(self, function: CalledFunction, code: Code) -> Calls:
        """The calls of ``function`` and its file that give another value on ``code`` than they should.

        Raises:
            UnusableError: they hang, or end their process.
        """
        calls = function.all_calls
        texts = await _texts(function.module, "", [call for call, _ in calls], self.importable(code), self.sandbox)
        if texts is None:
            raise UnusableError("its calls hang or end their process")
        pairs = zip(calls, texts, strict=True)
        return tuple(call for call, text in pairs if _is_value(text) and not is_same(call[1], text))


def _is_value(text: str) -> bool:
    return text.startswith(RAISES) or is_readable(text)


async def called_functions(release: Release, run: TestRun, sandbox: Sandbox) -> list[CalledFunction]:
    """Public functions of modules that ``run`` saw called with literals, with the calls that give a literal, the same
    three times.

    Raises:
        SandboxUnavailableError: there is no sandbox.
    """
    by_path: dict[str, dict[str, list[str]]] = {}
    for (path, name), texts in sorted(run.inputs.items()):
        if not name.startswith("_") and _PATH.fullmatch(path):
            expressions = [text for text in (f"{name}({text})" for text in texts) if _is_call(text, name)]
            by_path.setdefault(path, {})[name] = expressions[:CALLS]
    functions = []
    for path, by_name in by_path.items():
        module = _module(release.tree, path)
        calls = await _of_file(module, by_name, release.tree.importable, sandbox)
        for name in calls:
            others = {other: calls[other] for other in calls if other != name}
            functions.append(CalledFunction(path, module, name, calls[name], others))
    return functions


def _is_call(text: str, name: str) -> bool:
    """Whether a text from inside the sandbox is what it should be: a call of ``name`` with literals."""
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != name:
            return False
        for argument in call.args:
            ast.literal_eval(argument)
        return not call.keywords and "\n" not in text
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False


def _module(tree: SourceTree, path: str) -> str:
    """The dotted name that a file is imported by."""
    return tree.import_path(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


async def _of_file(
    module: str, expressions: Mapping[str, Sequence[str]], files: Code, sandbox: Sandbox
) -> dict[str, Calls]:
    """By function the calls that give the same literal three times; where those of the file hang, each function
    alone."""
    every = [(name, call) for name, calls in expressions.items() for call in calls]
    wrapped = [f"{_READ}({call})" for _, call in every]
    runs = [await _texts(module, _PRELUDE, wrapped, files, sandbox) for _ in range(TRIALS if every else 0)]
    if None in runs and len(expressions) > 1:
        alone = [await _of_file(module, {name: calls}, files, sandbox) for name, calls in expressions.items()]
        return {name: calls for part in alone for name, calls in part.items()}
    stable: dict[str, Calls] = {}
    for (name, call), *texts in zip(every, *(run or [] for run in runs), strict=False):
        if len(set(texts)) == 1 and is_readable(texts[0]):
            wrapper, value = ast.literal_eval(texts[0])
            text = repr(value)
            if is_readable(text) and len(call) + len(text) <= LONGEST:
                stable[name] = (*stable.get(name, ()), (f"{wrapper}({call})" if wrapper else call, text))
    return stable


async def _texts(
    module: str, prelude: str, expressions: Sequence[str], files: Code, sandbox: Sandbox
) -> list[str] | None:
    """The texts of values; None where the calls do not come to their end."""
    calls = ModuleCalls(module=module, prelude=prelude, calls=tuple((call, "") for call in expressions))
    values, problem, sandbox_failed = await values_of([calls], files, sandbox, BATCH_S)
    if sandbox_failed:
        raise DependencyError("The sandbox", problem, "Try again.")
    return None if problem else values[0]
