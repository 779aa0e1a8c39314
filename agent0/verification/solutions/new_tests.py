"""Runs new tests of a repository: they must not pass by chance, nor on code that does nothing."""

import ast
import re
from collections.abc import Iterator
from typing import Literal

from agent0.events.values import Vote
from agent0.ports.sandbox import Sandbox
from agent0.tools.snapshots import Files
from agent0.verification.repositories.source_tree import is_test
from agent0.verification.solutions.check_runs import CheckRun, RepositoryCheck, SandboxFailedError, quoted
from agent0.verification.solutions.code_measures import parsed
from agent0.verification.solutions.patches import changed_paths
from agent0.verification.solutions.repository_job import RepositoryJob

AGAIN, NAMED = 2, 60
"""How often the check is run again; new tests that are run one by one on code that does nothing."""
_PASSED = re.compile(r"^PASSED (.*)$", re.MULTILINE)
_EMPTY = {"return": "return None", "raise": "raise RuntimeError"}


async def new_test_votes(
    job: RepositoryJob, before: Files, after: Files, last: CheckRun, sandbox: Sandbox
) -> list[Vote]:
    """Vote on tests of ``after`` that ``before`` lacks, where the check ended as ``last`` says.

    Raises:
        SandboxFailedError: the sandbox failed. SandboxUnavailableError: there is none.
    """
    runs = [await _run(job.runs, after, sandbox) for _ in range(AGAIN)]
    steady = all((run.passes, run.tests) == (last.passes, last.tests) for run in runs)
    why = f"the check ends {AGAIN + 1} times {'alike' if steady else 'not alike: a test passes by chance'}"
    votes = [Vote(check="no chance", correct=steady, reason=why)]
    names = [name for path in changed_paths(before, after) if is_test(path) for name in _new(path, before, after)]
    if not names or not steady:
        return votes
    command = f"pytest -q -rp --tb=no -o addopts= {' '.join(map(quoted, names[:NAMED]))}"
    check, idle = RepositoryCheck(command, job.seconds, job.modules), set(names)
    for kind in ("return", "raise"):
        code = {path: _emptied(after[path], kind) for path in job.code(after)}
        run = await _run(check, {**after, **code}, sandbox)
        idle &= {name.partition("[")[0].partition(" - ")[0] for name in _PASSED.findall(run.output)}
    why = f"{min(idle)} passes whatever the functions of the code do" if idle else f"{len(names)} depend on the code"
    return [*votes, Vote(check="no empty tests", correct=not idle, reason=why)]


async def _run(check: RepositoryCheck, files: Files, sandbox: Sandbox) -> CheckRun:
    run = await check.run(files, sandbox)
    if run.sandbox_failed:
        raise SandboxFailedError(run.problem)
    return run


def _new(path: str, before: Files, after: Files) -> list[str]:
    """pytest's names of the tests in a file that are new or changed."""
    old, new = (dict(_tests(path, files.get(path, b""))) for files in (before, after))
    return [name for name, text in new.items() if old.get(name) != text]


def _tests(path: str, data: bytes) -> Iterator[tuple[str, str]]:
    """(pytest's name, text) of each test in a file."""
    for node in (parsed(data) or ast.Module([], [])).body:
        for inner in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and inner.name.startswith("test"):
                prefix = f"{path}::{node.name}" if isinstance(node, ast.ClassDef) else path
                yield f"{prefix}::{inner.name}", ast.dump(inner)


def _emptied(data: bytes, kind: Literal["return", "raise"]) -> bytes:
    """A file whose functions do nothing but end in one of two ways."""
    tree = parsed(data)
    if tree is None:
        return data
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = ast.parse(_EMPTY[kind]).body
    return ast.unparse(tree).encode()
