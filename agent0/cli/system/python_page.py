"""The page of the Python API: every name that ``agent0`` offers, with what its source says of it."""

import ast
import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import agent0

CALLS = ("open", "Folder", "Run", "Trajectory", "Rows", "Study")
"""What is described whole; the others are named with their first line."""


@dataclass(frozen=True)
class Entry:
    """One function, class or member: its name with its parameters, and its docstring as paragraphs."""

    title: str
    text: str


def entries(name: str) -> tuple[Entry, list[Entry]]:
    """A name of ``agent0`` and, of a class, its public methods and properties."""
    node, text = _definition(name)
    if isinstance(node, ast.ClassDef):
        members = [_entry(statement, f"{name.lower()}.") for statement in node.body if _is_public(statement)]
        return Entry(name, text), members
    return _entry(node, "agent0."), []


def others() -> Iterator[tuple[str, str, str]]:
    """(name, where it is defined, first line of its docstring) of everything else that is offered."""
    for name in sorted(set(agent0.__all__) - {*CALLS}):
        value: Any = getattr(agent0, name)
        documentation = inspect.getdoc(value) if isinstance(value, type) or inspect.isfunction(value) else ""
        yield name, agent0._HOMES[name], " ".join((documentation or "").split("\n\n")[0].split())


def _definition(name: str) -> tuple[ast.AST, str]:
    module = importlib.import_module(agent0._HOMES[name])
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    node = next(statement for statement in tree.body if getattr(statement, "name", "") == name)
    return node, _text(node)


def _is_public(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and not node.name.startswith("_")


def _entry(node: ast.AST, before: str) -> Entry:
    assert isinstance(node, ast.FunctionDef)  # noqa: S101 - only functions come here
    if any(isinstance(decorator, ast.Name) and decorator.id == "property" for decorator in node.decorator_list):
        return Entry(f"{before}{node.name}", _text(node))
    node.args.args = [argument for argument in node.args.args if argument.arg != "self"]
    gives = ast.unparse(node.returns).replace("'", "") if node.returns else "None"
    parameters = ast.unparse(node.args).replace("'Run | str'", "Run | str")
    return Entry(f"{before}{node.name}({parameters}) -> {gives}", _text(node))


def _text(node: ast.AST) -> str:
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)  # noqa: S101 - what has a docstring
    return (ast.get_docstring(node) or "").replace("``", "`")
