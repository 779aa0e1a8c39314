"""Part of the rim: work on the user's repository, asked for in Python."""

from collections.abc import Sequence
from pathlib import Path

from agent0.assembly.api.calls import Say, run_sync
from agent0.assembly.api.folder import Folder
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.solving.repository_copy import read_repository
from agent0.assembly.solving.solutions import RepositorySolution, SolutionRequest, carry_solution, submission_of
from agent0.errors import ConfigError
from agent0.verification.solutions.repository_job import Verb


def solve(
    folder: Folder,
    verb: Verb,
    path: str | Path,
    check: str = "pytest -q",
    *,
    diff: str = "",
    dirty: bool = False,
    needs: Sequence[str] = (),
    seconds: float = 120.0,
    seed: int = 0,
    less: int = 1,
    say: Say | None = None,
) -> RepositorySolution:
    """Have the student of ``folder`` work on a copy of the repository at ``path``, as `agent0 solve` does: fix, test,
    refactor (``less``: by how much), document or review. The same call goes on where it stopped. Nothing is written
    before ``apply()`` of what comes back, which has ``solved``, ``votes`` and ``diff``.

    Raises:
        ConfigError: the repository cannot be copied, or has what is not committed and ``dirty`` does not allow that.
        OperationError: the check does not serve. DependencyError: a model or the sandbox is away.
    """
    folder.require_writable("work on a repository")
    copy = read_repository(Path(path), diff)
    if copy.dirty and not dirty:
        raise ConfigError(f"{copy.folder} has what is not committed.", f"{copy.dirty[0]}.", "Commit it, or dirty=True.")
    request = SolutionRequest(verb, check, seconds, tuple(needs), seed, less)
    store = artifact_store(folder.settings)
    begin = submission_of(folder.settings.run, store, request, copy, folder=str(copy.folder))
    solution = run_sync(lambda: carry_solution(folder.settings, begin, begin.run, say or (lambda _: None)))
    folder.refresh()
    return solution
