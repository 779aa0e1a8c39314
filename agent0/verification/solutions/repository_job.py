"""Work on a person's repository, as it is asked of a student: what is to be done, and which check it must pass."""

from collections.abc import Mapping, Sequence
from typing import Literal

from agent0.errors import OperationError
from agent0.events.base import Value
from agent0.events.values import SOLUTION, SOLVING, Artifact, Repository, SourceRow, Task
from agent0.verification.repositories.seeded_defects import CLEAN, REVIEW
from agent0.verification.repositories.source_tree import SourceTree, is_test
from agent0.verification.solutions.check_runs import NO_TESTS, CheckRun, RepositoryCheck

Verb = Literal["document", "fix", "refactor", "review", "test"]
NAMED = 20
"""Files that a statement names."""
_ASKED: Mapping[Verb, str] = {
    "fix": "The check fails. Repair the code so that it passes, and change nothing beyond what that needs. Tests and "
    "settings of tests stay as they are.",
    "test": "Write tests that pass on this code and would fail if a line of it were wrong: a bound, a sign, a branch. "
    "Change test files alone.",
    "refactor": "Make the code simpler: fewer branches, or fewer statements that are repeated, and not longer. What it "
    "does stays the same, the public names stay, and so do the tests.",
    "document": "Write docstrings for every public module, class, function and method that has none, with doctests "
    "where they say more than words. Nothing else may change.",
    "review": f"Review the code. Write {REVIEW}: for each defect a line FILE.py:LINE: CALL, with the line that is "
    "wrong and a call with literals of a function of that file which shows it, or, where no call can, "
    f"FILE.py:LINE: and why. Where nothing is wrong, write the line {CLEAN}. Change no other file.",
}

_ADVICE = (
    ("the package", "Install it beside Agent0, then name it: --needs PACKAGE"),
    ("did not end", "Give it longer (--timeout SECONDS), or name fewer tests in --check."),
    ("the network", "Leave those tests out: --check 'pytest -q -k \"not NAME\"'"),
    ("outside of", "Leave those tests out: --check 'pytest -q -k \"not NAME\"'"),
    ("the command", "Call what is there: python, pytest, bash."),
    ("called so", "Name other options: --check 'pytest -q -o addopts='"),
)
"""What helps, by words of the problem."""


class RepositoryJob(Value):
    """What decides about work on a repository. ``tree`` is the manifest of its files, ``base`` that of an earlier
    version where a difference is looked at, in which the files ``changed`` are others. ``modules`` are packages that
    the check may import, ``seconds`` what it may take. ``folder``: where the files
    came from; empty: from a client. ``less``: by how much a refactoring is to lower complexity and repeated statements
    together."""

    verb: Verb
    check: str
    seconds: float
    modules: tuple[str, ...]
    tree: Artifact
    base: Artifact | None = None
    changed: tuple[str, ...] = ()
    folder: str = ""
    less: int = 1

    @property
    def runs(self) -> RepositoryCheck:
        """Its check."""
        return RepositoryCheck(self.check, self.seconds, self.modules)

    def code(self, files: Mapping[str, bytes]) -> list[str]:
        """Python files of the packages and modules in ``files``, else all that are no tests: those that changed, where
        a difference is looked at."""
        plain = [path for path in files if path.endswith(".py") and not is_test(path)]
        paths = list(SourceTree(files).code) or plain
        return [path for path in paths if path in self.changed] if self.base else paths


def job_task(job: RepositoryJob, hidden: Artifact, name: str) -> Task:
    """Make the task that asks for ``job``, stored as ``hidden``; ``name`` is that of the repository."""
    repository = Repository(package=name, tree=job.tree, hidden=hidden, format=SOLUTION)
    return Task(
        question=f"{job.verb} {name}: {job.check}",
        domain=SOLVING,
        family="open",
        level=1,
        canonical=f"{SOLVING} {hidden.sha256}",
        kind="long",
        row=SourceRow(id=f"{job.verb} {name}", answer="", repository=repository),
    )


def job_statement(job: RepositoryJob, before: CheckRun, files: Mapping[str, bytes]) -> str:
    """State ``job`` for a student: its files, what is asked, and how the check ended ``before``."""
    code, tests = job.code(files), [path for path in files if path.endswith(".py") and is_test(path)]
    lines = [f"Your work folder holds a Python repository. Its check is `{job.check}`.", "", _ASKED[job.verb], ""]
    lines += [f"In all at least {job.less} fewer."] if job.verb == "refactor" else []
    lines += [f"Changed files: {_named(job.changed)}"] if job.base else []
    lines += [f"Code: {_named(code)}", f"Tests: {_named(tests)}"]
    if SourceTree(files).root:
        lines.append("Packages are imported from src.")
    shown = before.output.strip()[-3000:] or before.summary
    return "\n".join([*lines, "", f"The check ends now with exit code {before.rc}:", "", shown])


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return (", ".join(paths[:NAMED]) + more) or "none"


def refusal(job: RepositoryJob, before: CheckRun) -> OperationError | None:
    """Make the error of a job that cannot begin where its check ended so ``before`` any change; None where it can."""
    why = before.problem
    fix = next((advice for words, advice in _ADVICE if words in why), "")
    if why == NO_TESTS:
        why, fix = ("", "") if job.verb == "test" else (why, "agent0 solve test PATH writes some.")
    elif not why and job.verb == "fix" and before.passes:
        why, fix = "it passes already: there is nothing to fix", ""
    elif not why and job.verb != "fix" and not before.passes:
        why, fix = f"it fails before any change: {before.summary}", "agent0 solve fix PATH mends that first."
    return OperationError(f"The check `{job.check[:80]}` does not serve: {why}.", "", fix) if why else None
