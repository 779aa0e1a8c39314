"""What is measured of Python files: branches, repeated statements, public names and which of them are documented."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.IfExp, ast.ExceptHandler, ast.comprehension, ast.match_case)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DOCUMENTED = (*_FUNCTIONS, ast.ClassDef, ast.Module)
LEAST_NODES = 8
"""Nodes of a statement that counts as repeated: shorter ones are alike by chance."""


def parsed(data: bytes) -> ast.Module | None:
    """The syntax tree of a file; None where it is no Python."""
    try:
        return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def complexity(tree: ast.Module) -> int:
    """Count decisions: a function is one, and each branch, loop, handler, case, condition and operator of logic."""
    nodes = list(ast.walk(tree))
    operators = sum(len(node.values) - 1 for node in nodes if isinstance(node, ast.BoolOp))
    return operators + sum(isinstance(node, (*_BRANCHES, *_FUNCTIONS)) for node in nodes)


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


def public_names(tree: ast.Module, module: str) -> Iterator[tuple[str, bool]]:
    """(dotted name, whether it has a docstring) of a module and its public classes, functions and methods."""
    yield module, ast.get_docstring(tree) is not None
    yield from _names_in(tree, "")


def _names_in(node: ast.AST, prefix: str) -> Iterator[tuple[str, bool]]:
    for child in getattr(node, "body", ()):
        if isinstance(child, (*_FUNCTIONS, ast.ClassDef)) and not child.name.startswith("_"):
            yield prefix + child.name, ast.get_docstring(child) is not None
            if isinstance(child, ast.ClassDef):
                yield from _names_in(child, f"{prefix}{child.name}.")


def without_docstrings(tree: ast.Module) -> str:
    """A text that two files share where they differ in nothing but docstrings, comments and blanks."""
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


def trees(files: Mapping[str, bytes], paths: Sequence[str]) -> list[ast.Module]:
    """Syntax trees of those of ``paths`` that are there and are Python."""
    return [tree for path in paths if path in files and (tree := parsed(files[path])) is not None]
