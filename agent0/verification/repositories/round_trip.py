"""Verifies docstrings by a round trip: whoever has signature and docstring alone writes a function from them, and it
must give what the documented one gives.

One reader understands statements of a closed grammar and nothing else, so code, examples and praise are not read; a
model may be the other. A statement that could be left out or changed unnoticed is refused, and examples are run.
"""

import ast
import doctest
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

from agent0.events.base import Value
from agent0.ports.sandbox import Sandbox
from agent0.tasks.mining.docstring_grammar import (
    UnreadableStatementError,
    argument,
    inexact,
    read_statements,
    values_by,
)
from agent0.verification.panel import Reader
from agent0.verification.repositories.hidden_values import ModuleCalls, is_same, values_of
from agent0.verification.repositories.wrong_versions import FormError, called

MOST_EXAMPLES = 5


class DocumentedFunction(Value):
    """A function of ``module``, with calls and the texts of their values."""

    module: str
    name: str
    calls: tuple[tuple[str, str], ...]


class HiddenDocumentation(Value):
    """All public functions of a package, with calls that decide about their docstrings."""

    package: str
    functions: tuple[DocumentedFunction, ...]


@dataclass(frozen=True)
class _Docstring:
    """A docstring without its examples, and these: calls with the texts of what they are to give."""

    function: DocumentedFunction
    signature: str
    text: str
    examples: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RoundTrip:
    """The functions that are to be documented; ``before`` are the files of the package, which may change in nothing
    else."""

    hidden: HiddenDocumentation
    before: Mapping[str, bytes]
    seconds: float

    @property
    def tests(self) -> list[str]:
        """The functions, each with its module."""
        return [f"{function.module}.{function.name}" for function in self.hidden.functions]

    async def accept(self, code: Mapping[str, bytes], sandbox: Sandbox) -> tuple[bool | None, str]:
        """Whether the docstrings in ``code`` are exact; the rest as for ``grade``."""
        return (await self.grade(code, sandbox))[:2]

    async def grade(
        self, code: Mapping[str, bytes], sandbox: Sandbox, reader: Reader | None = None
    ) -> tuple[bool | None, str, float | None]:
        """Whether every public function in ``code`` has an exact docstring, why not, and the share of those that have:
        0 where anything else was changed. ``reader`` is a model that must understand them as well, None for none. None
        where the sandbox itself failed, or it wrote no function.

        Raises:
            SandboxUnavailableError: there is no sandbox.
        """
        trees, changed = self._trees(code)
        if changed:
            return False, changed, 0.0
        faults, docstrings = list[str](), list[_Docstring]()
        for function in self.hidden.functions:
            try:
                docstrings.append(_docstring(function, trees[self._path(function)]))
            except (UnreadableStatementError, FormError) as error:
                faults.append(f"{function.name}: {error}")
        wrong, problem = await self._examples(docstrings, sandbox)
        for docstring in docstrings if reader else ():
            if reader and not problem and docstring.function.name not in wrong:
                why, problem = await self._read(docstring, reader, sandbox)
                wrong |= {docstring.function.name: why} if why else {}
        if problem:
            return None, problem, None
        faults += [f"{name}: {why}" for name, why in wrong.items()]
        count = len(self.hidden.functions)
        return not faults, faults[0] if faults else "", round((count - len(faults)) / count, 4)

    def _path(self, function: DocumentedFunction) -> str:
        return f"{self.hidden.package}/{function.module}.py"

    def _trees(self, code: Mapping[str, bytes]) -> tuple[dict[str, ast.Module], str]:
        """The files of the package as they are in ``code``, and what is another in them than docstrings."""
        trees = {}
        for path, data in self.before.items():
            try:
                trees[path] = ast.parse(code.get(path, b""))
                if bare(trees[path]) != bare(ast.parse(data)):
                    return {}, f"{path} was changed in something else than docstrings"
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                return {}, f"{path} is no Python: {type(error).__name__}"
        return trees, ""

    async def _examples(self, docstrings: Sequence[_Docstring], sandbox: Sandbox) -> tuple[dict[str, str], str]:
        """What is wrong about the examples of each function that has wrong ones, and what the sandbox failed with."""
        if not docstrings:
            return {}, ""
        modules = [
            ModuleCalls(module=f"{self.hidden.package}.{each.function.module}", prelude="", calls=each.examples)
            for each in docstrings
        ]
        values, problem, _ = await values_of(modules, self.before, sandbox, self.seconds)
        if problem:
            return {}, problem
        wrong = {}
        for docstring, texts in zip(docstrings, values, strict=True):
            for (call, expected), text in zip(docstring.examples, texts, strict=True):
                if not is_same(expected, text):
                    wrong[docstring.function.name] = f"its example {call} gives {text}"[:120]
        return wrong, ""

    async def _read(self, docstring: _Docstring, reader: Reader, sandbox: Sandbox) -> tuple[str, str]:
        """Why what a model writes is wrong, and why that cannot be told."""
        program = await reader(docstring.signature, docstring.text)
        if not program:
            return "", "the model that reads docstrings wrote no function"
        calls = ModuleCalls(module="written.function", prelude="", calls=docstring.function.calls)
        files = {"written/__init__.py": b"", "written/function.py": program.encode()}
        values, problem, sandbox_failed = await values_of([calls], files, sandbox, self.seconds)
        if problem:
            return ("", problem) if sandbox_failed else (f"as a model reads it {problem}", "")
        pairs = zip(docstring.function.calls, values[0], strict=True)
        wrong = sum(not is_same(expected, text) for (_, expected), text in pairs)
        return f"as a model reads it {wrong} of {len(values[0])} calls give another value" if wrong else "", ""


def bare(tree: ast.Module) -> str:
    """Return the tree of a file without docstrings, as one text."""
    tree = deepcopy(tree)
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if documented and ast.get_docstring(node, clean=False) is not None:  # type: ignore[arg-type]  # as asked above
            node.body = node.body[1:] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _docstring(function: DocumentedFunction, tree: ast.Module) -> _Docstring:
    """The docstring of ``function``, once the reader of the grammar has written from it what gives the same.

    Raises:
        UnreadableStatementError: there is none, he cannot read it, or what he writes gives something else.
        FormError: an example is no call of the function with literals.
    """
    node = next(each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == function.name)
    try:
        parts = doctest.DocTestParser().parse(ast.get_docstring(node) or "")
    except ValueError as error:
        raise UnreadableStatementError(f"its examples cannot be read: {error}"[:120]) from error
    text = " ".join(part for part in parts if isinstance(part, str))
    statements = read_statements(text)
    inputs, expected = [argument(call) for call, _ in function.calls], [value for _, value in function.calls]
    values = values_by(statements, inputs)
    wrong = sum(not is_same(*pair) for pair in zip(expected, map(repr, values), strict=True))
    if wrong:
        raise UnreadableStatementError(f"by its docstring {wrong} of {len(expected)} calls give another value")
    if why := inexact(statements, inputs, values):
        raise UnreadableStatementError(why)
    examples = [part for part in parts if isinstance(part, doctest.Example)]
    if not 0 < len(examples) <= MOST_EXAMPLES:
        raise UnreadableStatementError(f"it has {len(examples)} examples; 1 to {MOST_EXAMPLES} are run")
    calls = [(called(each.source.strip(), 1, {function.name})[1], each.want.strip()) for each in examples]
    return _Docstring(function, f"def {function.name}({ast.unparse(node.args)}):", text.strip(), tuple(calls))
