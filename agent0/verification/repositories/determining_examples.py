"""Verifies the docstring of a function of a published package by its examples: they must be true of it, and together
reject wrong versions that nobody sees. So far they determine the function, and no farther.

Prose must name every parameter and hold no code. What else it says only a model can judge: where one reads docstrings
it must write from signature and prose alone what gives the same; without one prose is not judged.
"""

import ast
import doctest
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent0.events.base import Value
from agent0.ports.sandbox import Sandbox
from agent0.verification.panel import Reader
from agent0.verification.repositories.hidden_values import ModuleCalls, is_readable, is_same, values_of
from agent0.verification.repositories.round_trip import bare
from agent0.verification.repositories.source_tree import SourceTree
from agent0.verification.repositories.wrong_versions import FormError, called

MOST_EXAMPLES, LONGEST = 20, 6_000
"""Examples and characters of a docstring."""
_CODE = (
    *(ast.Assign, ast.AugAssign, ast.Call, ast.FunctionDef, ast.For, ast.If, ast.Import, ast.ImportFrom, ast.Lambda),
    *(ast.Return, ast.While, ast.With, ast.Yield),
)


class HiddenDocstring(Value):
    """The function ``name`` of ``module`` in the file ``path``, calls with their values, and ``versions`` of the file
    that are wrong."""

    path: str
    module: str
    name: str
    calls: tuple[tuple[str, str], ...]
    versions: tuple[str, ...]


@dataclass(frozen=True)
class DeterminingExamples:
    """The docstring that is asked for; ``files`` are those of the package without it."""

    hidden: HiddenDocstring
    files: Mapping[str, bytes]
    seconds: float

    @property
    def tests(self) -> list[str]:
        """The wrong versions."""
        return [f"{self.hidden.name} {number}" for number in range(len(self.hidden.versions))]

    async def accept(self, code: Mapping[str, bytes], sandbox: Sandbox) -> tuple[bool | None, str]:
        """Whether the examples in ``code`` determine the function; the rest as for ``grade``."""
        return (await self.grade(code, sandbox))[:2]

    async def grade(
        self, code: Mapping[str, bytes], sandbox: Sandbox, reader: Reader | None = None
    ) -> tuple[bool | None, str, float | None]:
        """Whether the examples are true and reject every wrong version, why not, and the share that they reject: 0
        where anything else is wrong. ``reader`` is a model that must understand the prose as well, None for none. None
        where the sandbox itself failed, or it wrote no function.

        Raises:
            SandboxUnavailableError: there is no sandbox.
        """
        try:
            signature, prose, examples = self._read(code.get(self.hidden.path, b""))
        except FormError as error:
            return False, str(error), 0.0
        sources = [self.files[self.hidden.path], *(text.encode() for text in self.hidden.versions)]
        modules, files = self._versions(sources, [call for call, _ in examples])
        values, problem, sandbox_failed = await values_of(modules, files, sandbox, self.seconds)
        if problem:
            return (None, problem, None) if sandbox_failed else (False, problem, 0.0)
        right, *wrong = values
        for (call, expected), text in zip(examples, right, strict=True):
            if not is_same(expected, text):
                return False, f"its example {call} gives {text}"[:160], 0.0
        if reader is not None:
            why, problem = await self._understood(reader, signature, prose, sandbox)
            if why or problem:
                return (None, problem, None) if problem else (False, why, 0.0)
        wants = [want for _, want in examples]
        rejected = sum(not all(map(is_same, wants, texts)) for texts in wrong)
        why = f"its examples reject {rejected} of {len(wrong)} wrong versions"
        return rejected == len(wrong), why, round(rejected / len(wrong), 4)

    def _read(self, data: bytes) -> tuple[str, str, list[tuple[str, str]]]:
        """Signature, prose and examples of the function in ``data``.

        Raises:
            FormError: there is no docstring in the form that is asked for, or something else was changed.
        """
        name = self.hidden.name
        try:
            tree = ast.parse(data)
            if bare(tree) != bare(ast.parse(self.files[self.hidden.path])):
                raise FormError("something else than docstrings was changed")
            node = next(each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == name)
            parts = doctest.DocTestParser().parse(ast.get_docstring(node) or "")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise FormError(f"it cannot be read: {type(error).__name__}") from error
        prose = " ".join(part for part in parts if isinstance(part, str)).strip()
        examples = [part for part in parts if isinstance(part, doctest.Example)]
        if not 0 < len(examples) <= MOST_EXAMPLES or len(prose) > LONGEST:
            raise FormError(f"it has {len(examples)} examples and {len(prose)} characters of prose")
        calls = [(called(each.source.strip(), 1, {name})[1], each.want.strip()) for each in examples]
        if wrong := [want for _, want in calls if not is_readable(want)]:
            raise FormError(f"{wrong[0][:40]!r} is no literal")
        if missing := sorted(parameters(node) - set(_identifiers(prose))):
            raise FormError(f"its prose does not name {missing[0]}")
        if line := next((line for line in prose.splitlines() if _is_code(line)), ""):
            raise FormError(f"its prose has code: {line.strip()[:40]!r}")
        return f"def {name}({ast.unparse(node.args)}):", prose, calls

    def _versions(self, sources: Sequence[bytes], calls: Sequence[str]) -> tuple[list[ModuleCalls], dict[str, bytes]]:
        """``calls`` on each of ``sources`` as the file, in a folder of its own."""
        modules, files = list[ModuleCalls](), dict[str, bytes]()
        for number, data in enumerate(sources):
            importable = SourceTree({**self.files, self.hidden.path: data}).importable
            files |= {f"version_{number}/{path}": each for path, each in importable.items()}
            pairs = tuple((call, "") for call in calls)
            modules.append(ModuleCalls(module=self.hidden.module, prelude="", calls=pairs, folder=f"version_{number}"))
        return modules, files

    async def _understood(self, reader: Reader, signature: str, prose: str, sandbox: Sandbox) -> tuple[str, str]:
        """Why what a model writes from the prose is wrong, and why that cannot be told."""
        program = await reader(signature, prose)
        if not program:
            return "", "the model that reads docstrings wrote no function"
        calls = ModuleCalls(module="written", prelude="", calls=self.hidden.calls)
        values, problem, sandbox_failed = await values_of(
            [calls], {"written.py": program.encode()}, sandbox, self.seconds
        )
        if problem:
            return ("", problem) if sandbox_failed else (f"as a model reads it {problem}", "")
        wrong = sum(not is_same(text, value) for (_, text), value in zip(self.hidden.calls, values[0], strict=True))
        return f"as a model reads it {wrong} of {len(values[0])} calls give another value" if wrong else "", ""


def parameters(node: ast.FunctionDef) -> set[str]:
    """Return the names of all parameters of a function."""
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    return {each.arg for each in every if each is not None}


def _identifiers(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() or letter == "_" else " " for letter in text).split()


def _is_code(line: str) -> bool:
    """Whether a line of prose could stand in a program and do something there."""
    for text in (line.strip(), f"{line.strip()} pass"):
        try:
            nodes = ast.walk(ast.parse(text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        if any(isinstance(node, _CODE) for node in nodes):
            return True
    return False
