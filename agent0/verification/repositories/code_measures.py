"""Measures of Python code that is not run: how complex it is, how long, and what of it would make both meaningless."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

LONGEST_TEXT, LONGEST_NAME = 40, 40
"""Characters of a literal and of a name: longer ones could hold code."""
MODULES = frozenset({"bisect", "collections", "functools", "heapq", "itertools", "math", "operator"})
"""What code may import beside its own package."""
_HIDING = frozenset({"attrgetter", "breakpoint", "compile", "delattr", "dir", "eval", "exec", "getattr", "globals"})
_HIDING |= {"help", "input", "locals", "memoryview", "methodcaller", "open", "print", "setattr", "type", "vars"}
_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.comprehension, ast.ExceptHandler, ast.Assert)
_OWN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.match_case)
_COUNTED = (ast.stmt, ast.expr, ast.comprehension, ast.arg, ast.keyword, ast.excepthandler, ast.match_case, ast.pattern)


class UnmeasurableError(Exception):
    """Code has something that no measure sees; the message says where."""


@dataclass(frozen=True)
class CodeMeasures:
    """``complexity`` is cyclomatic, summed over all functions (McCabe, 1976), where a comparison whose value is used as
    one counts as a branch; ``size`` counts nodes of the syntax tree, of a literal one for each 8 characters, without
    docstrings."""

    complexity: int
    size: int


def measured(files: Mapping[str, bytes], package: str) -> CodeMeasures:
    """Measure the Python files ``files`` of ``package`` together.

    Raises:
        UnmeasurableError: one of them is no Python, or has what could hide code: names that run or reflect, long
            literals, imports from elsewhere.
    """
    trees = list[ast.AST]()
    for path, data in files.items():
        try:
            tree = ast.parse(data)
            faults = [(node, _fault(node, package)) for node in _without_docstrings(tree)]
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise UnmeasurableError(f"{path} is no Python: {type(error).__name__}") from error
        for node, fault in faults:
            if fault:
                raise UnmeasurableError(f"{path}:{getattr(node, 'lineno', 0)}: {fault}")
        trees.append(tree)
    return measures_of(trees)


def measures_of(trees: Iterable[ast.AST]) -> CodeMeasures:
    """Measure syntax trees of files together, whatever they hold."""
    complexity = size = 0
    for tree in trees:
        nodes = list(_without_docstrings(tree))
        tests = {id(node.test) for node in nodes if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert)}
        tests |= {id(test) for node in nodes if isinstance(node, ast.comprehension) for test in node.ifs}
        for node in nodes:
            tests |= {id(part) for part in _parts(node)} if id(node) in tests else set()
            complexity += _branches(node, id(node) in tests)
            size += isinstance(node, _COUNTED)
            size += len(repr(node.value)) // 8 if isinstance(node, ast.Constant) else 0
    return CodeMeasures(complexity, size)


def hiding(nodes: Iterable[ast.AST], package: str) -> frozenset[str]:
    """Say what in ``nodes`` could hide code, of literals and imports which."""
    faults = ((each, _fault(each, package)) for node in nodes for each in _without_docstrings(node))
    literals = (ast.Constant, ast.Import, ast.ImportFrom)
    return frozenset(
        f"{why}: {ast.unparse(each)}" if isinstance(each, literals) else why for each, why in faults if why
    )


def _without_docstrings(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node, outer ones first."""
    left = [tree]
    for node in left:
        yield node
        children = list(ast.iter_child_nodes(node))
        documented = isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if documented and ast.get_docstring(node, clean=False) is not None:  # type: ignore[arg-type]  # as asked above
            children.remove(node.body[0])  # type: ignore[attr-defined]
        left += children


def _parts(test: ast.AST) -> list[ast.expr]:
    """What a condition consists of."""
    if isinstance(test, ast.BoolOp):
        return test.values
    return [test.operand] if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else []


def _branches(node: ast.AST, is_test: bool) -> int:
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.Compare):
        return len(node.ops) - is_test
    return isinstance(node, (*_BRANCHES, *_OWN))


def _fault(node: ast.AST, package: str) -> str:
    """What about a node could hide code; empty for nothing."""
    own = {*MODULES, package}
    if isinstance(node, ast.Import):
        outside = [name.name for name in node.names if name.name.partition(".")[0] not in own]
        return f"it imports {outside[0][:40]}" if outside else ""
    if isinstance(node, ast.ImportFrom) and not node.level and str(node.module).partition(".")[0] not in own:
        return f"it imports {str(node.module)[:40]}"
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and len(node.value) > LONGEST_TEXT:
        return f"a literal has more than {LONGEST_TEXT} characters"
    for name in _names(node):
        if name in _HIDING or (name.startswith("__") and name != "__init__"):
            return f"it uses {name[:40]}"
        if len(name) > LONGEST_NAME:
            return f"a name has more than {LONGEST_NAME} characters"
    return ""


def _names(node: ast.AST) -> Iterator[str]:
    for field in ("id", "attr", "name", "arg", "asname", "rest"):
        name = getattr(node, field, None)
        if isinstance(name, str):
            yield name
    yield from (name for name in getattr(node, "names", ()) if isinstance(name, str))
