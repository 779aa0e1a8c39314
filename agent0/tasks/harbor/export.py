"""Tasks of families as task folders of Harbor: instruction, image, tests with the family's own code, and a solution."""

import ast
import importlib
import inspect
import json
import shlex
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from agent0.errors import ConfigError
from agent0.tasks.families import Family
from agent0.tasks.harbor import judge

PACKAGE = "agent0"
IMAGE = "python:3.11-slim"
"""What a task runs on. Nothing is built or installed, and no network is needed."""
_INSTRUCTION = """{question}

Write the answer alone into the file `/app/answer.txt`.
"""
_CONFIG = """schema_version = "1.1"

[task]
name = {name}
description = {description}
keywords = [{domain}, {family}]

[metadata]
difficulty = {difficulty}
category = {domain}

[verifier]
timeout_sec = 120.0

[agent]
timeout_sec = 600.0

[environment]
build_timeout_sec = 600.0
cpus = 1
memory_mb = 1024
storage_mb = 1024
"""
_DOCKERFILE = f"FROM {IMAGE}\nWORKDIR /app\n"
_TEST = "#!/bin/bash\npython3 -Es /tests/check.py /tests/task.json /app/answer.txt /logs/verifier/reward.txt\n"
_SOLUTION = "#!/bin/bash\nprintf '%s\\n' {answer} > /app/answer.txt\n"


def harbor_task(family: Family, question: str, name: str) -> dict[str, bytes]:
    """Write the task that ``question`` asks of ``family`` as the files of a folder, by path in it. Its answer is in
    ``solution`` alone: the tests compute or check it again.

    Raises:
        ConfigError: the family does not read the question, or its code needs a package that the image lacks.
    """
    params = family.parse(question)
    if params is None:
        raise ConfigError(f"The family {family.name} does not read {question[:80]!r}.")
    level, module = family.level(params), family.solve.__module__
    values = {
        "name": json.dumps(f"agent0/{name}"),
        "description": json.dumps(f"{family.name}, level {level}"),
        "domain": json.dumps(family.domain),
        "family": json.dumps(family.name),
        "difficulty": json.dumps(("easy", "medium")[level > 1] if level < family.levels else "hard"),
    }
    task = {"family": family.name, "module": module, "question": question}
    texts = {
        "task.toml": _CONFIG.format(**values),
        "instruction.md": _INSTRUCTION.format(question=question),
        "environment/Dockerfile": _DOCKERFILE,
        "solution/solve.sh": _SOLUTION.format(answer=shlex.quote(family.solve(params))),
        "tests/test.sh": _TEST,
        "tests/task.json": json.dumps(task),
        "tests/check.py": inspect.getsource(judge),
        **{f"tests/{path}": text for path, text in _code(family.name, module).items()},
    }
    return {path: text.encode() for path, text in texts.items()}


def _code(family: str, module: str) -> dict[str, str]:
    """The modules of Agent0 and of a user's file that ``module`` and the judge need, by path."""
    sources: dict[str, str] = {}
    waiting = [module, *_imports(inspect.getsource(judge), "", family)]
    while waiting:
        name = waiting.pop()
        if name not in sources:
            sources[name] = inspect.getsource(importlib.import_module(name))
            waiting += _imports(sources[name], name, family)
    packages = {name.rpartition(".")[0] for name in sources if "." in name}
    packages |= {package.rpartition(".")[0] for package in packages if "." in package}
    paths = {f"{package.replace('.', '/')}/__init__.py": "" for package in packages}
    return paths | {_path(name): source for name, source in sources.items()}


def _path(name: str) -> str:
    is_package = hasattr(sys.modules[name], "__path__")
    return f"{name.replace('.', '/')}{'/__init__.py' if is_package else '.py'}"


def _imports(source: str, module: str, family: str) -> Iterator[str]:
    """The modules of Agent0 that ``source`` imports.

    Raises:
        ConfigError: it imports a package that is not of the standard library, or all of Agent0.
    """
    for name in (name for node in ast.walk(ast.parse(source)) for name in _named(node)):
        if name.partition(".")[0] == PACKAGE and name != PACKAGE:
            yield name
        elif name.partition(".")[0] not in sys.stdlib_module_names:
            why = f"{module or 'Its code'} imports {name}, which the image {IMAGE} lacks."
            raise ConfigError(f"The family {family} cannot be exported.", why, "Name a family that needs no package.")


def _named(node: ast.AST) -> list[str]:
    """The modules that an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom) or not node.module:
        return []
    if not node.module.startswith(f"{PACKAGE}.") or not hasattr(importlib.import_module(node.module), "__path__"):
        return [node.module]
    inside = [f"{node.module}.{alias.name}" for alias in node.names]
    return [node.module, *(name for name in inside if find_spec(name))]
