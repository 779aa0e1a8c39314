"""Extracts the program from a reply, and from tests the names that they use. Parsed, never run."""

import ast
import builtins
import functools
import itertools
import json
import re
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from agent0.settings import PolicyConfig
from agent0.turns.thoughts import split_thoughts

LONGEST, MOST_LINES, MOST_FENCES, MOST_BLOCKS = 200_000, 100, 200, 4
LONGEST_KEPT = 20_000
MOST_PARSED, MOST_PROSE = 400_000, 100_000
"""Characters that are parsed to find the ends of fenced blocks, and the lines of one text that are prose."""
_fence = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)[^\n`]*$", re.MULTILINE)
_loose_fence = re.compile(r"`{3,}[ \t]*(?:(?:python3?|py)\b)?[ \t]*\n?(.*?)(?:`{3,}|\Z)", re.DOTALL | re.IGNORECASE)
_indented = re.compile(r"(?:(?<=\n\n)|\A)(?:(?: {4}|\t)[^\n]*\n?|[ \t]*\n)+")
_PYTHON = ("", "python", "py", "python3")
_tag = re.compile(
    r"^(?:[ \t]*</?[|\w]{1,20}>)+|(?:</?[|\w]{1,20}>[ \t]*)+$|^[ \t]*\[/?[A-Z]{1,20}\][ \t]*$", re.MULTILINE
)
_code_like = re.compile(r"[ \t]|(?:def|class|import|from|return|for|while|if|try|with|async|@)(?!\w)(?!.*[.:!?]\s*\Z)")
"""Begins lines that are no prose, whatever is wrong with them."""
SOLUTION = "Solution"
"""The class of which some write the function that is asked for."""
_BUILTINS = {*dir(builtins), "__file__"}
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)
_KNOWN_MODULES = {*sys.stdlib_module_names, *PolicyConfig().modules, "pytest", "judged"}
"""Modules that are not the candidate; ``judged`` is what runs the tests."""


def program_of(reply: str, setup: str, entry: str) -> str:
    """Extract the program from ``reply``, with what the prompt (``setup``) defines before it.

    The first reading that is a program and defines ``entry``: fenced blocks (the last that defines it, after those that
    define what it uses), the reply itself, blocks within lines or by their indent, the reply without the tags, the
    sentences or the marks of an interpreter around its code, a text within JSON. A body without its ``def`` is appended
    to the prompt that it completes. Thoughts hold none.
    """
    text = split_thoughts(_plain(reply[:LONGEST])).visible
    readings = _readings(text, entry)
    first = next(readings)
    answering = next((reading for reading in itertools.chain([first], readings) if _answers(reading, entry)), None)
    code = (first if answering is None else answering).lstrip("\n")
    if entry and answering is None and defines(f"{setup}\n    pass\n", entry):
        body = setup + code if code[:1] in (" ", "\t") else f"{setup.rstrip()}\n{textwrap.indent(code, '    ')}"
        return body
    return f"{prefix(setup, entry)}\n{code}"


def holds_program(reply: str, entry: str) -> bool:
    """Return whether ``reply`` has a program that defines ``entry``, or where that is empty any name."""
    text = split_thoughts(_plain(reply[:LONGEST])).visible
    return any(_answers(reading, entry) for reading in _readings(text, entry))


def written_program(turns: Sequence[str], entry: str) -> str:
    """Return the last of ``turns`` that has a program that defines ``entry``, empty where none has: a block of code may
    be a call, and the turn after it speak of it only."""
    return next((text for text in reversed(turns) if holds_program(text, entry)), "")


def _plain(reply: str) -> str:
    """``reply`` with the spaces and ends of lines that Python knows."""
    return reply.replace("\r\n", "\n").replace("\r", "\n").replace("\u00a0", " ").removeprefix("\ufeff")


def _answers(code: str, entry: str) -> bool:
    """Whether ``code`` is a program that defines ``entry``, perhaps as a method of a class for solutions."""
    tree = _tree(code) if entry in code else None
    if tree is None:
        return False
    names = _bound(tree)
    methods = [
        node for kind in tree.body if isinstance(kind, ast.ClassDef) and kind.name == SOLUTION for node in kind.body
    ]
    return bool(names) if not entry else entry in names or entry in _bound(ast.Module(methods, []))


def _readings(text: str, entry: str) -> Iterator[str]:
    blocks = [textwrap.dedent(block) for block in _blocks(text)]
    yield _chosen(blocks, entry) if blocks else text
    yield text
    yield _chosen([textwrap.dedent(match[1]) for match in _loose_fence.finditer(text)][:MOST_FENCES], entry)
    yield textwrap.dedent(text)
    yield _chosen([textwrap.dedent(match[0]) for match in _indented.finditer(text)][:MOST_FENCES], entry)
    yield from (_without_prose(code) for code in (*blocks[-MOST_BLOCKS:], text) if entry in code)
    yield "\n".join(line[4:] for line in text.split("\n") if line[:4] in (">>> ", "... "))
    yield from _texts(text)


def _texts(text: str) -> Iterator[str]:
    """The texts of a JSON object."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(parsed, dict):
        yield from (value for value in parsed.values() if isinstance(value, str))


def _blocks(reply: str) -> list[str]:
    """The fenced blocks of Python in ``reply``. A block ends at the first closing fence with which it is a program, for
    docstrings hold fences, too; one that is never closed goes on to the end."""
    fences = list(_fence.finditer(reply))[:MOST_FENCES]
    blocks, index, room = [], 0, MOST_PARSED
    while index < len(fences):
        opening = fences[index]
        ends = [n for n in range(index + 1, len(fences)) if fences[n][1] == opening[1] and not fences[n][2]]
        texts = [reply[opening.end() + 1 : fences[n].start()] for n in ends]
        best = 0
        if opening[2].lower() in _PYTHON:
            sizes = itertools.accumulate(map(len, texts))
            tried = [text for text, size in zip(texts, sizes, strict=True) if size <= room]
            best = next((n for n, text in enumerate(tried) if _tree(textwrap.dedent(text))), 0)
            room -= sum(map(len, tried[: best + 1] if best else tried))
            blocks.append(texts[best] if texts else reply[opening.end() + 1 :])
        index = ends[best] + 1 if ends else len(fences)
    return blocks


def _without_prose(reply: str) -> str:
    """``reply`` without tags, and without the lines at its margin for which it is no program; as it is where that does
    not make it one."""
    lines = _tag.sub("", reply).split("\n")
    for _ in range(min(MOST_LINES, MOST_PROSE // (len(reply) + 1))):
        error = _error("\n".join(lines))
        if error is None:
            return "\n".join(lines)
        if not 0 < error <= len(lines) or _code_like.match(lines[error - 1]):
            return reply
        lines[error - 1] = ""
    return reply


def _error(code: str) -> int | None:
    """The line at which ``code`` is no program; None where it is one. Time goes with its length."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except SyntaxError as error:
        return error.lineno or 0
    except (ValueError, RecursionError, MemoryError):
        return 0
    return None


def _chosen(blocks: list[str], entry: str) -> str:
    """The last of ``blocks`` that defines ``entry``, after those that define names which it uses and does not."""
    index = max((n for n, block in enumerate(blocks) if entry and defines(block, entry)), default=-1)
    if index < 0:
        return "\n".join(blocks)
    main = blocks[index]
    needed = _used(main) - top_level(main) - _BUILTINS
    helpers = [block for n, block in enumerate(blocks) if n != index and needed & top_level(block)]
    return "\n".join([*(block for block in helpers if not defines(block, entry)), main])


def _used(code: str) -> set[str]:
    tree = _tree(code)
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if tree else set()


def defines(code: str, name: str) -> bool:
    """Whether ``code`` is a program that binds ``name`` at its top level."""
    return name in top_level(code)


def top_level(code: str) -> set[str]:
    """Names that ``code`` binds at its top level; none where it does not parse."""
    tree = _tree(code)
    return _bound(tree) if tree else set()


def _bound(tree: ast.Module) -> set[str]:
    bound: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        else:
            bound |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return bound


def prefix(setup: str, entry: str) -> str:
    """The prompt's code before the function it asks for: imports and other functions."""
    tree = _tree(f"{setup}\n    pass\n") or _tree(setup)
    if tree is None:
        return ""
    kept = [node for node in tree.body if getattr(node, "name", "") != entry]
    return ast.unparse(ast.Module(kept, []))


def stands(test: str, setup: str, entry: str) -> list[str]:
    """Names that tests use and only the candidate can define."""
    names = _names(test)
    if names is None:
        return [entry] if entry else []
    available = _BUILTINS | names.bound | top_level(prefix(setup, entry)) | set(modules(test))
    return sorted({*(names.loaded - available), *_taken(names.imports), *([entry] if entry else [])})


def _taken(imports: Iterable[ast.Import | ast.ImportFrom]) -> set[str]:
    """Names that tests import from the program as a module."""
    return {
        alias.name
        for node in imports
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] not in _KNOWN_MODULES
        for alias in node.names
        if alias.name != "*"
    }


def modules(test: str) -> list[str]:
    """Modules of the standard library whose names tests use without importing them, as programs usually do."""
    names = _names(test)
    return sorted(names.owners & sys.stdlib_module_names - top_level(test)) if names else []


def own_modules(test: str) -> list[str]:
    """Modules that tests import and that only the candidate can be: ``from solution import f``."""
    modules_of_candidate: set[str] = set()
    for name in _imported(test):
        if name.partition(".")[0] not in _KNOWN_MODULES:
            parts = name.split(".")
            modules_of_candidate |= {".".join(parts[: n + 1]) for n in range(len(parts))}
    return sorted(modules_of_candidate)


def _imported(test: str) -> Iterator[str]:
    names = _names(test)
    for node in names.imports if names else ():
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.module and not node.level:
            yield node.module


def classes(code: str) -> set[str]:
    """Names of the classes that ``code`` defines at its top level."""
    tree = _tree(code)
    return {node.name for node in (tree.body if tree else ()) if isinstance(node, ast.ClassDef)}


def _tree(code: str) -> ast.Module | None:
    return _parsed(code) if len(code) > LONGEST_KEPT else _recent(code)


def _parsed(code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of strangers' escapes and comparisons
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


_recent = functools.lru_cache(maxsize=8)(_parsed)
"""Trees of texts of at most ``LONGEST_KEPT`` characters: the same text is looked at several times in a row."""


@dataclass(frozen=True)
class _Names:
    """Names in a text: those whose values it uses, those that it binds anywhere, those whose attributes it takes."""

    loaded: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    owners: set[str] = field(default_factory=set)
    imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)

    def add(self, node: ast.AST) -> None:
        """Add the names that ``node`` itself holds."""
        if isinstance(node, ast.Name):
            (self.loaded if isinstance(node.ctx, ast.Load) else self.bound).add(node.id)
        elif isinstance(node, ast.Attribute):
            self.owners.update([node.value.id] if isinstance(node.value, ast.Name) else [])
        elif isinstance(node, ast.arg):
            self.bound.add(node.arg)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self.imports.append(node)
            self.bound.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, _NAMED) and node.name:
            self.bound.add(node.name)


def _names(code: str) -> _Names | None:
    """Names in ``code``, of whose tree each node is looked at once; None where it does not parse."""
    return _names_of(code) if len(code) > LONGEST_KEPT else _recent_names(code)


def _names_of(code: str) -> _Names | None:
    tree = _tree(code)
    if tree is None:
        return None
    names = _Names()
    for node in ast.walk(tree):
        names.add(node)
    return names


_recent_names = functools.lru_cache(maxsize=8)(_names_of)
