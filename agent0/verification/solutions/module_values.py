"""Values of calls of a repository's functions: modules as they are imported, with the packages its check may use."""

from collections.abc import Sequence

from agent0.ports.sandbox import Root, Sandbox
from agent0.tools.builtin.run_tests import PYTEST
from agent0.tools.snapshots import Files
from agent0.verification.repositories.hidden_values import ModuleCalls, values_of
from agent0.verification.repositories.source_tree import SourceTree
from agent0.verification.solutions.check_runs import SandboxFailedError
from agent0.verification.solutions.repository_job import RepositoryJob

CALLS_S = 10.0
"""Seconds that calls may take together, at most those of the check."""


def module_of(path: str, files: Files) -> str:
    """The dotted name that the file ``path`` of ``files`` is imported by."""
    name = path.removeprefix("src/" if SourceTree(files).root else "").removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


async def module_values(
    job: RepositoryJob, calls: Sequence[ModuleCalls], files: Files, sandbox: Sandbox
) -> tuple[list[list[str]], str]:
    """Make ``calls`` on ``files``; returns the text of each value by module, or why there is none.

    Raises:
        SandboxFailedError: the sandbox failed. SandboxUnavailableError: there is none.
    """
    if not calls:
        return [], ""
    src = bool(SourceTree(files).root)
    flat = {path.removeprefix("src/") if src else path: data for path, data in files.items()}
    root = Root(modules=tuple(dict.fromkeys((*PYTEST, *job.modules))))
    values, problem, sandbox_failed = await values_of(calls, flat, sandbox, min(job.seconds, CALLS_S), root)
    if sandbox_failed:
        raise SandboxFailedError(problem)
    return values, problem
