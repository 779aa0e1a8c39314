"""What is measured of Python files: repeated statements, public names and which of them are documented."""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DOCUMENTED = (*_FUNCTIONS, ast.ClassDef, ast.Module)
_WORD = re.compile(r"[^\W_]+")
_PARAMETER = re.compile(r":param (?:[^:\n]* )?\*{0,2}(\w+):")
_SKIPPED = re.compile(r"doctest:\s*\+SKIP")
LEAST_NODES = 8
"""Nodes of a statement that counts as repeated: shorter ones are alike by chance."""


def parsed(data: bytes) -> ast.Module | None:
    """The syntax tree of a file; None where it is no Python."""
    try:
        return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def repeated(trees: Sequence[ast.Module]) -> int:
    """Count statements that stand there once more than they need to, whatever is around them."""
    texts: Counter[str] = Counter()
    for tree in trees:
        for node in ast.walk(tree):
            simple = isinstance(node, ast.stmt) and not isinstance(node, (*_FUNCTIONS, ast.ClassDef))
            if simple and not _is_import(node) and sum(1 for _ in ast.walk(node)) >= LEAST_NODES:
                texts[ast.dump(node)] += 1
    return sum(count - 1 for count in texts.values())


def _is_import(node: ast.AST) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def text_run(trees: Sequence[ast.Module]) -> set[str]:
    """Names in ``trees`` of what runs text, which no measure sees."""
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id for node in nodes} & {"__import__", "compile", "eval", "exec"}


def public_names(tree: ast.Module, module: str) -> Iterator[tuple[str, ast.AST]]:
    """(dotted name, node) of a module and its public classes, functions and methods."""
    yield module, tree
    yield from _names_in(tree, "")


def _names_in(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    for child in getattr(node, "body", ()):
        if isinstance(child, (*_FUNCTIONS, ast.ClassDef)) and not child.name.startswith("_"):
            yield prefix + child.name, child
            if isinstance(child, ast.ClassDef):
                yield from _names_in(child, f"{prefix}{child.name}.")


def docstring_fault(name: str, node: ast.AST, others: Collection[str]) -> str:
    """What is wrong with the docstring of the public ``name``, as far as it shows without a reader; empty for
    nothing. ``others`` are the docstrings of other names."""
    text = ast.get_docstring(node) or ""  # type: ignore[arg-type]  # a public name is of a kind that can have one
    tokens = set(_WORD.findall(text.lower()))
    if not tokens:
        return "has no docstring"
    if tokens <= {*_WORD.findall(name.lower()), "a", "an", "the"}:
        return "has a docstring that says no more than its name"
    if text in others:
        return "has the docstring of another name"
    if _SKIPPED.search(text):
        return "has an example that is not run"
    if isinstance(node, _FUNCTIONS):
        arguments = node.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        unknown = set(_PARAMETER.findall(text)) - {each.arg for each in named if each}
        return f"has a docstring of the parameter {min(unknown)}, which it has not" if unknown else ""
    return ""


def without_docstrings(tree: ast.Module) -> str:
    """A text that two files share where they differ in nothing but docstrings, comments and blanks."""
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


def trees(files: Mapping[str, bytes], paths: Sequence[str]) -> list[ast.Module]:
    """Syntax trees of those of ``paths`` that are there and are Python."""
    return [tree for path in paths if path in files and (tree := parsed(files[path])) is not None]
