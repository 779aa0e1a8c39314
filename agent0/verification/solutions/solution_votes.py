"""Votes on work on a person's repository: their check before and after, and what each kind of work is to show.

Nothing here is proof against code that is written to deceive its check: a person reads the difference.
"""

import ast
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from agent0.events.values import Vote
from agent0.ports.sandbox import Sandbox
from agent0.tools.snapshots import Files
from agent0.verification.repositories.code_measures import measures_of
from agent0.verification.solutions.check_runs import NO_TESTS, CheckRun, RepositoryCheck, SandboxFailedError, quoted
from agent0.verification.solutions.code_measures import (
    docstring_fault,
    parsed,
    public_names,
    repeated,
    text_run,
    trees,
    without_docstrings,
)
from agent0.verification.solutions.equal_behaviour import behaviour_vote
from agent0.verification.solutions.new_tests import new_test_votes
from agent0.verification.solutions.patches import changed_paths, hunks, is_text, patched, without
from agent0.verification.solutions.repository_job import RepositoryJob, Verb

MOST_HUNKS, MUTANTS, SURVIVORS = 32, 16, 4
"""Parts of a change that are left out one by one; wrong versions that are drawn, and how many of those that tests miss
are tried again."""
GROWTH = 1.1
"""By how much simpler code may be longer, in nodes of its syntax tree."""


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
            SandboxFailedError: the sandbox failed. SandboxUnavailableError: there is none.
        """
        run = await (check or self.job.runs).run(files, self.sandbox)
        if run.sandbox_failed:
            raise SandboxFailedError(run.problem)
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
        SandboxFailedError: the sandbox failed. SandboxUnavailableError: there is none.
    """
    solution = Solution(job, before, patched(job.verb, before, work), sandbox)
    if not solution.changed:
        return [Vote(check="changes", correct=False, reason="nothing that counts was changed")]
    if binary := [path for path in solution.changed if not is_text(solution.after.get(path, b""))]:
        return [Vote(check="changes", correct=False, reason=f"{binary[0]} is no text")]
    first = await solution.check(before)
    last = await solution.check(solution.after)
    votes = [_before(job.verb, first), _after(first, last)]
    if votes[-1].correct and job.verb == "test":
        votes += await new_test_votes(job, before, solution.after, last, sandbox)
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
    """Without any of its hunks the check fails; of many, without any group of those that follow each other."""
    all_hunks = list(hunks(solution.before, solution.after))
    step = -(-len(all_hunks) // MOST_HUNKS)
    parts = [all_hunks[first : first + step] for first in range(0, len(all_hunks), step)]
    name, kind = "only what is needed", "hunks" if step == 1 else f"groups of {step} hunks"
    for part in parts if len(parts) > 1 else ():
        if (await solution.check(without(part, solution.before, solution.after))).passes:
            why = f"it passes without the change of {part[0].path}, line {part[0].first + 1}"
            return [Vote(check=name, correct=False, reason=why)]
    return [Vote(check=name, correct=True, reason=f"{kind} without which it fails: {len(parts)} of {len(parts)}")]


async def _test(solution: Solution) -> list[Vote]:
    """Of wrong versions that the tests before miss, the new ones reject some."""
    from agent0.tasks.mining.mutations import compiles, mutated, mutations_of  # noqa: PLC0415 - libcst takes .2 s

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
    """Complexity or repetition went down by what is asked for, no public name is gone, and calls give the same."""
    paths = [path for path in solution.code if path in solution.changed]
    sides = [trees(files, paths) for files in (solution.before, solution.after)]
    (old, new), (repeats, fewer) = (measures_of(side) for side in sides), map(repeated, sides)
    saved = old.complexity - new.complexity + repeats - fewer
    text = text_run(sides[1]) - text_run(sides[0])
    why = f"it runs text: {min(text)}; " if text else ""
    why += f"complexity {old.complexity} -> {new.complexity}, repeated statements {repeats} -> {fewer}, "
    why += f"size {old.size} -> {new.size}; asked for: the first two fall by {solution.job.less}"
    less = saved >= solution.job.less and new.size <= GROWTH * old.size and not text
    gone = {*_public(solution.before, paths)} - {*_public(solution.after, paths)}
    lost = f"gone: {' '.join(min(gone))}" if gone else "all are there"
    votes = [Vote(check="simpler", correct=less, reason=why), Vote(check="public names", correct=not gone, reason=lost)]
    equal = (solution.job, solution.before, solution.after, paths, solution.sandbox)
    return [*votes, await behaviour_vote(*equal)] if less and not gone else votes


def _public(files: Files, paths: Sequence[str]) -> dict[tuple[str, str], ast.AST]:
    """Public names of files, by path and dotted name."""
    named = ((path, parsed(files[path])) for path in paths if path in files)
    return {(path, name): node for path, tree in named if tree is not None for name, node in public_names(tree, path)}


async def _document(solution: Solution) -> list[Vote]:
    """Nothing but docstrings changed, they cover every public name and say more than it, and their doctests pass."""
    same = all(_is_documented_only(solution, path) for path in solution.changed)
    texts = [
        {key: ast.get_docstring(node) or "" for key, node in _public(files, solution.code).items()}  # type: ignore[arg-type]  # modules, classes and functions
        for files in (solution.before, solution.after)
    ]
    written = {key: text for key, text in texts[1].items() if not text or text != texts[0].get(key)}
    nodes, others = _public(solution.after, solution.code), Counter(texts[1].values())
    repeats = {text for text, count in others.items() if count > 1}
    missing = [
        f"{path}: {name} {fault}"
        for path, name in written
        if (fault := docstring_fault(name, nodes[path, name], repeats))
    ]
    command = f"pytest -q --doctest-modules {' '.join(map(quoted, solution.changed))}"
    doctests = RepositoryCheck(command, solution.job.seconds, solution.job.modules)
    why = f"{len(missing)} of {len(nodes)}, such as {missing[0]}" if missing else f"all {len(nodes)} have a docstring"
    votes = [
        Vote(check="docstrings alone", correct=same, reason="" if same else "something else changed"),
        Vote(check="public names", correct=not missing, reason=why),
    ]
    if missing or not same:
        return votes
    run = await solution.check(solution.after, doctests)
    return [*votes, Vote(check="doctests", correct=_misses(run), reason=run.summary)]


def _is_documented_only(solution: Solution, path: str) -> bool:
    before, after = (parsed(files.get(path, b"")) for files in (solution.before, solution.after))
    both = path in solution.before and path in solution.after and path.endswith(".py")
    return both and before is not None and after is not None and without_docstrings(before) == without_docstrings(after)


_MORE: Mapping[Verb, Callable[[Solution], Awaitable[list[Vote]]]] = {
    "fix": _fix,
    "test": _test,
    "refactor": _refactor,
    "document": _document,
}
