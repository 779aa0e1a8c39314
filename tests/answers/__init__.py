"""Right and wrong answers to generated tasks, made by rules that the verifiers do not know; one module a domain, each
with ``right`` and ``wrong``: from a task to work folders by the name of what was done."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent0.infra.storage.artifacts import FileArtifacts
from agent0.tools.snapshots import load
from agent0.verification.repositories.mined_task import Decider, MinedSolution, MinedTask, hidden_tests_of

Files = Mapping[str, bytes]
Answers = dict[str, Files]


@dataclass(frozen=True)
class DomainTask:
    """A task with its work folder, its reference's files, the hidden ones, and what decides."""

    task: MinedTask
    tree: Files
    reference: Files
    frame: Files
    hidden: Decider

    @property
    def package(self) -> str:
        """The name of its package."""
        return self.task.package

    def code(self, files: Files) -> Files:
        """Those of ``files`` that belong to the package."""
        return {path: data for path, data in files.items() if path.startswith(f"{self.package}/")}


def read_tasks(folder: Path) -> Iterator[DomainTask]:
    """Every task of a generated folder, by level."""
    artifacts = FileArtifacts(folder)
    paths = sorted((folder / "tasks").glob("*.json"))
    tasks = sorted((MinedTask.model_validate_json(path.read_bytes()) for path in paths), key=lambda task: task.level)
    for task in tasks:
        solution = MinedSolution.model_validate_json((folder / "solutions" / f"{task.id}.json").read_bytes())
        files = [load(each, artifacts) for each in (task.tree, solution.code, solution.frame)]
        yield DomainTask(task, *files, hidden_tests_of(solution, artifacts))


def functions_in(files: Files) -> dict[str, str]:
    """The paths of public functions that take ``values``, by name."""
    paths = {}
    for path, data in files.items():
        for node in ast.parse(data).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                paths[node.name] = path
    return paths


RARELY = {
    "where there are seven values": "len(values) == 7",
    "where the first is negative": "bool(values) and values[0] < 0",
    "where one is above nine": "any(value > 9 for value in values)",
    "where two are equal": "len(set(values)) < len(values)",
    "where nothing is given": "not values",
    "where they rise": "values == sorted(values)",
}
"""Conditions under which a function is made wrong."""


def rarely_wrong(files: Files, name: str, path: str, condition: str) -> Files:
    """``files`` with a function that gives something else than it should where ``condition`` holds."""
    text = files[path].decode().replace(f"def {name}(", f"def right_{name}(")
    lines = f"\n\ndef {name}(values):\n    result = right_{name}(values)\n    if {condition}:\n"
    lines += "        return result + [0] if isinstance(result, list) else result + 1\n    return result\n"
    return {**files, path: (text + lines).encode()}


class Renaming(ast.NodeTransformer):
    """Gives variables of functions other names."""

    names: Mapping[str, str] = {"result": "kept", "value": "number", "total": "amount", "place": "spot", "best": "top"}

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """Every use of one."""
        return ast.Name(self.names.get(node.id, node.id), node.ctx)


def renamed(files: Files) -> Files:
    """``files`` with other names of variables, as ``ast`` writes them."""
    return {path: (ast.unparse(Renaming().visit(ast.parse(data))) + "\n").encode() for path, data in files.items()}


def commented(files: Files) -> Files:
    """``files`` with a comment before each."""
    return {path: b"# Looked through.\n" + data for path, data in files.items()}
