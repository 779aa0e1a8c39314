"""Compares the public functions of a repository before and after a change, by calls with drawn arguments: those that
its files make, with a part changed, and others by annotation or of any kind. What the old code cannot take is left out.

The draw depends on the changed files, so that nobody knows it before; values are compared outside of the sandbox.
"""

import ast
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent0.events.values import Vote
from agent0.ports.sandbox import Sandbox
from agent0.tools.snapshots import Files, fingerprint
from agent0.verification.repositories.hidden_values import ModuleCalls, is_same
from agent0.verification.solutions.code_measures import parsed
from agent0.verification.solutions.module_values import module_of, module_values
from agent0.verification.solutions.repository_job import RepositoryJob

RAISES = "raises "
FUNCTIONS, DRAWN, SEEN = 12, 60, 40
"""Functions that are compared, those first whose text changed; calls drawn of each; calls of one that are varied."""
_SHOWN = """
def agent0_shown(function, *arguments, **named):
    value = function(*arguments, **named)
    if hasattr(value, '__next__'):
        import itertools
        value = list(itertools.islice(value, 50))
    return value, arguments, named
"""
"""Shows what a call gives, of an iterator its first values, and what it does to its arguments."""
_UNSUITABLE = re.compile(
    r"raises (?:(?:Type|Attribute|Import|ModuleNotFound|Name|Recursion|Memory)Error)|.* at 0x[0-9a-f]+", re.DOTALL
)
"""What shows nothing about a function: arguments of a wrong kind, and texts that name an address."""


@dataclass(frozen=True)
class _PublicFunction:
    path: str
    node: ast.FunctionDef

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def parameters(self) -> list[ast.arg]:
        """Those that must be there."""
        arguments = self.node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        return positional[: len(positional) - len(arguments.defaults)]


@dataclass(frozen=True)
class _DrawnCalls:
    """Calls of a function; ``typed``: with arguments of kinds that it is for, so that what it raises counts, too."""

    calls: ModuleCalls
    typed: bool

    def shows(self, value: str) -> bool:
        """Whether a value of the code before says how the function should behave."""
        return not _UNSUITABLE.match(value) and (self.typed or not value.startswith(RAISES))


async def behaviour_vote(
    job: RepositoryJob, before: Files, after: Files, paths: Sequence[str], sandbox: Sandbox
) -> Vote:
    """Vote on whether the public functions in ``paths`` give what they gave; the reason counts what was compared.

    Raises:
        SandboxFailedError: the sandbox failed. SandboxUnavailableError: there is none.
    """
    functions = _functions(before, after, paths)
    rng = random.Random(fingerprint({path: after.get(path, b"") for path in paths}))
    drawn = [_drawn_calls(function, before, rng) for function in functions[:FUNCTIONS]]
    first = await _each(job, [each.calls for each in drawn], before, sandbox)
    rows = [(each, values) for each, values in zip(drawn, first, strict=True) if values is not None]
    calls = [each.calls for each, _ in rows]
    again, problem = await module_values(job, calls, before, sandbox)
    last, problem = ([], problem) if problem else await module_values(job, calls, after, sandbox)
    name, count, compared = "drawn calls", 0, 0
    if problem:
        return Vote(check=name, correct=False, reason=f"on the changed code, not on that before, {problem}")
    for (each, values), *sides in zip(rows, again, last, strict=True):
        expected = [
            value if value == twice and each.shows(value) else "" for value, twice in zip(values, sides[0], strict=True)
        ]
        for (expression, _), old, new in zip(each.calls.calls, expected, sides[1], strict=True):
            if old and not is_same(old, new):
                why = f"{expression.removeprefix('agent0_shown(')[:80]} gives {new[:60]}, and gave {old[:60]}"
                return Vote(check=name, correct=False, reason=why)
        compared += any(old and not old.startswith(RAISES) for old in expected)
        count += sum(map(bool, expected))
    why = f"{count} calls of {compared} of {len(functions)} public functions in changed files give what they gave"
    return Vote(check=name, correct=True, reason=why)


async def _each(
    job: RepositoryJob, calls: Sequence[ModuleCalls], files: Files, sandbox: Sandbox
) -> list[list[str] | None]:
    """The values of each function's calls; None of one whose calls hang or end their process."""
    values, problem = await module_values(job, calls, files, sandbox)
    if not problem or len(calls) == 1:
        return [None] if problem else list(values)
    half = len(calls) // 2
    return [part for side in (calls[:half], calls[half:]) for part in await _each(job, side, files, sandbox)]


def _functions(before: Files, after: Files, paths: Sequence[str]) -> list[_PublicFunction]:
    """Public functions that both versions have, those first whose text changed."""
    changed, same = list[_PublicFunction](), list[_PublicFunction]()
    for path in paths:
        old, new = (_public(files.get(path, b"")) for files in (before, after))
        for name in sorted({*old} & {*new}):
            (same if ast.dump(old[name]) == ast.dump(new[name]) else changed).append(_PublicFunction(path, old[name]))
    return [*changed, *same]


def _public(data: bytes) -> dict[str, ast.FunctionDef]:
    tree = parsed(data) or ast.Module([], [])
    return {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")}


def _drawn_calls(function: _PublicFunction, files: Files, rng: random.Random) -> _DrawnCalls:
    """Draw calls of a function: such as the files make, with parts changed, where these are of literals; else by
    annotation, else of any kind."""
    repository_calls = list(_literal_calls(function.name, files))
    kinds = [_kinds(parameter) for parameter in function.parameters]
    if repository_calls:
        drawn = [_varied(rng.choice(repository_calls), rng) for _ in range(DRAWN)]
    else:
        drawn = [", ".join(_KINDS[rng.choice(names)](rng) for names in kinds) for _ in range(DRAWN)]
    texts = dict.fromkeys(
        f"agent0_shown({', '.join(filter(None, (function.name, text)))})" for text in (*repository_calls, *drawn)
    )
    module = module_of(function.path, files)
    calls = ModuleCalls(module=module, prelude=_SHOWN, calls=tuple((text, "") for text in texts))
    return _DrawnCalls(calls, bool(repository_calls) or all(len(names) == 1 for names in kinds))


def _literal_calls(name: str, files: Files) -> Iterator[str]:
    """Arguments, all literals, of calls of a function in the files of a repository."""
    left = SEEN
    for path, data in files.items():
        if not path.endswith(".py") or name.encode() not in data or (tree := parsed(data)) is None:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and name in (getattr(node.func, "id", ""), getattr(node.func, "attr", "")):
                values = [*node.args, *(each.value for each in node.keywords)]
                if left and all(map(_is_literal, values)) and all(each.arg for each in node.keywords):
                    left -= 1
                    yield ", ".join(map(ast.unparse, (*node.args, *node.keywords)))


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False
    return True


def _varied(text: str, rng: random.Random) -> str:
    """The arguments ``text`` with up to three of their numbers, texts and lists changed."""
    tree = ast.parse(f"f({text})", mode="eval")
    for _ in range(rng.randint(1, 3)):
        leaves = [node for node in ast.walk(tree) if isinstance(node, ast.List | ast.Constant)]
        leaf = rng.choice(leaves) if leaves else None
        if isinstance(leaf, ast.List):
            leaf.elts = rng.choice(([], leaf.elts[:-1], leaf.elts[::-1], [*leaf.elts, *leaf.elts[:1]]))
        elif leaf is not None and (draw := _KINDS.get(type(leaf.value).__name__)):
            leaf.value = ast.literal_eval(draw(rng))
    return ast.unparse(tree)[2:-1]


def _kinds(parameter: ast.arg) -> list[str]:
    """How a parameter may be drawn: as annotated, where that is known."""
    named = ast.unparse(parameter.annotation) if parameter.annotation else ""
    return [named] if named in _KINDS else list(_KINDS)


def _number(rng: random.Random) -> str:
    return str(rng.choice((0, 1, 2, rng.randint(-5, 12), rng.randint(0, 25))))


def _text(rng: random.Random) -> str:
    samples = ("", "a", "A b", "x-y_z", "Ab1", "2024-02-29", "a,b,,c", "  pad ", "é\n")
    return repr(rng.choice(samples) + "".join(rng.choices("abc XYZ019._-", k=rng.randint(0, 6))))


def _many(draw: Callable[[random.Random], str]) -> Callable[[random.Random], str]:
    return lambda rng: f"[{', '.join(draw(rng) for _ in range(rng.randint(0, 6)))}]"


_KINDS: Mapping[str, Callable[[random.Random], str]] = {
    "int": _number,
    "str": _text,
    "list[int]": _many(_number),
    "list[str]": _many(_text),
    "float": lambda rng: repr(round(rng.uniform(-10, 10), 2)),
    "bool": lambda rng: rng.choice(("True", "False")),
    "list[list[int]]": _many(_many(_number)),
    "dict[str, int]": lambda rng: repr({"abcd"[n]: rng.randint(-5, 9) for n in range(rng.randint(0, 4))}),
}
"""How an argument is drawn, by its annotation."""
