"""Votes on work on a person's repository: their check before and after, and what each kind of work is to show.

Nothing here is proof against code that is written to deceive its check: a person reads the difference.
"""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from agent0.events.values import Vote
from agent0.ports.sandbox import Sandbox
from agent0.tasks.mining.mutations import compiles, mutated, mutations_of
from agent0.tools.snapshots import Files
from agent0.verification.solutions.check_runs import NO_TESTS, CheckRun, RepositoryCheck
from agent0.verification.solutions.code_measures import (
    complexity,
    parsed,
    public_names,
    repeated,
    trees,
    without_docstrings,
)
from agent0.verification.solutions.patches import changed_paths, hunks, is_text, patched, without
from agent0.verification.solutions.repository_job import RepositoryJob, Verb

MOST_HUNKS, MUTANTS, SURVIVORS = 8, 16, 4
"""Hunks left out one by one; wrong versions that are drawn, and how many of those that tests miss are tried again."""


class UnsaidError(Exception):
    """The sandbox itself failed; the message says how."""


@dataclass(frozen=True)
class Solution:
    """Work on a repository: its files ``before``, and ``after`` with the changes that count."""

    job: RepositoryJob
    before: Files
    after: Files
    sandbox: Sandbox

    async def check(self, files: Files, check: RepositoryCheck | None = None) -> CheckRun:
        """Run the check, or another.

        Raises:
            UnsaidError: the sandbox failed. SandboxUnavailableError: there is none.
        """
        run = await (check or self.job.runs).run(files, self.sandbox)
        if run.unsaid:
            raise UnsaidError(run.problem)
        return run

    @property
    def changed(self) -> list[str]:
        """Paths that count as changed."""
        return changed_paths(self.before, self.after)

    @property
    def code(self) -> list[str]:
        """Python files that are no tests, those of either version."""
        return self.job.code({**self.before, **self.after})


async def solution_votes(job: RepositoryJob, before: Files, work: Files, sandbox: Sandbox) -> list[Vote]:
    """Try the work folder ``work`` of ``job``, which began with ``before``; returns a vote for each trial, the check
    first.

    Raises:
        UnsaidError: the sandbox failed. SandboxUnavailableError: there is none.
    """
    solution = Solution(job, before, patched(job.verb, before, work), sandbox)
    if not solution.changed:
        return [Vote(check="changes", correct=False, reason="nothing that counts was changed")]
    if binary := [path for path in solution.changed if not is_text(solution.after.get(path, b""))]:
        return [Vote(check="changes", correct=False, reason=f"{binary[0]} is no text")]
    first = await solution.check(before)
    last = await solution.check(solution.after)
    votes = [_before(job.verb, first), _after(first, last)]
    return votes if not votes[-1].correct else [*votes, *await _MORE[job.verb](solution)]


def _before(verb: Verb, run: CheckRun) -> Vote:
    expected = not run.passes if verb == "fix" else run.passes or (verb == "test" and run.problem == NO_TESTS)
    return Vote(check="check before", correct=expected, reason=run.summary)


def _after(first: CheckRun, last: CheckRun) -> Vote:
    """It passes, and no test that passed is gone."""
    if last.passes and (first.tests or 0) > (last.tests or 0):
        return Vote(check="check after", correct=False, reason=f"{first.tests} tests passed before, {last.tests} now")
    return Vote(check="check after", correct=last.passes, reason=last.summary)


async def _fix(solution: Solution) -> list[Vote]:
    """Without any of its hunks the check fails."""
    parts = list(hunks(solution.before, solution.after))
    name = "only what is needed"
    if len(parts) > MOST_HUNKS:
        return [Vote(check=name, correct=None, reason=f"{len(parts)} hunks are too many to leave out one by one")]
    for part in parts if len(parts) > 1 else ():
        if (await solution.check(without(part, solution.before, solution.after))).passes:
            why = f"it passes without the change of {part.path}, line {part.first + 1}"
            return [Vote(check=name, correct=False, reason=why)]
    return [Vote(check=name, correct=True, reason=f"hunks without which it fails: {len(parts)} of {len(parts)}")]


async def _test(solution: Solution) -> list[Vote]:
    """Of wrong versions that the tests before miss, the new ones reject some."""
    drawn = [mutation for path in solution.code for mutation in mutations_of(path, solution.before[path])]
    random.Random(solution.job.tree.sha256).shuffle(drawn)
    missed = rejected = 0
    for mutation in drawn[:MUTANTS]:
        wrong = {mutation.path: mutated(solution.before[mutation.path], [mutation])}
        if not compiles(wrong[mutation.path]) or not _misses(await solution.check({**solution.before, **wrong})):
            continue
        missed += 1
        rejected += not (await solution.check({**solution.after, **wrong})).passes
        if missed == SURVIVORS:
            break
    why = f"wrong versions that the tests before miss: {missed} of those drawn; the new tests reject {rejected}"
    return [Vote(check="wrong versions", correct=rejected > 0 if missed else None, reason=why)]


def _misses(run: CheckRun) -> bool:
    return run.passes or run.problem == NO_TESTS


async def _refactor(solution: Solution) -> list[Vote]:
    """Complexity or repetition went down, and no public name is gone."""
    paths = [path for path in solution.code if path in solution.changed]
    before, after = (trees(files, paths) for files in (solution.before, solution.after))
    branches, copies = ([sum(map(complexity, side)), repeated(side)] for side in (before, after))
    less = any(new < old for old, new in zip(branches, copies, strict=True))
    why = f"complexity {branches[0]} -> {copies[0]}, repeated statements {branches[1]} -> {copies[1]}"
    gone = _public(solution.before, paths) - _public(solution.after, paths)
    names = Vote(check="public names", correct=not gone, reason=f"gone: {sorted(gone)[0]}" if gone else "all are there")
    return [Vote(check="simpler", correct=less, reason=why), names]


def _public(files: Files, paths: Sequence[str]) -> set[str]:
    named = ((path, parsed(files[path])) for path in paths if path in files)
    return {name for path, tree in named if tree is not None for name, _ in public_names(tree, path)}


async def _document(solution: Solution) -> list[Vote]:
    """Nothing but docstrings changed, they cover every public name, and their doctests pass."""
    same = all(_is_documented_only(solution, path) for path in solution.changed)
    missing = [
        f"{path}: {name}"
        for path in solution.code
        if path in solution.after and (tree := parsed(solution.after[path])) is not None
        for name, documented in public_names(tree, path)
        if not documented
    ]
    command = f"pytest -q --doctest-modules {' '.join(map(_quoted, solution.code))}"
    doctests = RepositoryCheck(command, solution.job.seconds, solution.job.modules)
    run = await solution.check(solution.after, doctests)
    why = f"{len(missing)} are without, such as {missing[0]}" if missing else "all have a docstring"
    return [
        Vote(check="docstrings alone", correct=same, reason="" if same else "something else changed"),
        Vote(check="public names", correct=not missing, reason=why),
        Vote(check="doctests", correct=_misses(run), reason=run.summary),
    ]


def _is_documented_only(solution: Solution, path: str) -> bool:
    before, after = (parsed(files.get(path, b"")) for files in (solution.before, solution.after))
    both = path in solution.before and path in solution.after and path.endswith(".py")
    return both and before is not None and after is not None and without_docstrings(before) == without_docstrings(after)


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"


_MORE: Mapping[Verb, Callable[[Solution], Awaitable[list[Vote]]]] = {
    "fix": _fix,
    "test": _test,
    "refactor": _refactor,
    "document": _document,
}
