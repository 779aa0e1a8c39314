"""What a student itself can see of its work on a repository: the tests in the work folder that it was given, and the
calls that the statement shows. Hidden tests, references and verdicts are never read here.

Tests are those of the task, whatever became of them; of a task that asks for tests, the student's own on the code as it
was.
"""

from dataclasses import dataclass

from agent0.errors import TransientError
from agent0.events.values import TESTING, Task
from agent0.ports.sandbox import Sandbox
from agent0.tasks.mining.statements import shown_calls
from agent0.tools.snapshots import Files
from agent0.verification.repositories.hidden_tests import TestRun, run_hidden_tests
from agent0.verification.repositories.hidden_values import ModuleCalls, is_same, values_of
from agent0.verification.repositories.source_tree import SourceTree, is_test
from agent0.verification.repositories.wrong_versions import TESTS
from agent0.verification.solutions.patches import unified

SECONDS = 30.0
"""Processor time of the tests, and wall time of the calls."""
NAMED, LONGEST = 5, 6_000
"""Failures that are told; characters of a difference that is shown."""


@dataclass(frozen=True)
class VisibleCheck:
    """``score``: how many of the tests and calls pass, which orders work on one task and nothing else; 0 where nothing
    was changed. ``output`` says which do not, in words for the student."""

    score: float
    output: str


async def visible_check(task: Task, before: Files, work: Files, sandbox: Sandbox) -> VisibleCheck:
    """Check the work folder ``work`` of ``task``, whose files were ``before``.

    Raises:
        SandboxUnavailableError: there is no sandbox.
        TransientError: it failed through no fault of the code.
    """
    if dict(before) == dict(work):
        return VisibleCheck(0.0, "Nothing was changed.")
    run = await _tests(task, before, work, sandbox)
    passed, failures = len(run.passed), [f"{test}: {run.messages.get(test, '')}" for test in _failing(run)]
    failures += [f"{path} cannot be imported: {why}" for path, why in run.broken.items()]
    failures += [run.problem] if run.problem else []
    right, wrong = await _calls(task, work, sandbox)
    passed, failures = passed + right, [*failures, *wrong]
    if not passed and not failures:
        return VisibleCheck(1.0, "There are no tests to see.")
    more = [f"- and {len(failures) - NAMED} more"] if len(failures) > NAMED else []
    head = f"{passed} tests and calls that you can see are right, {len(failures)} are not."
    return VisibleCheck(float(passed), "\n".join([head, *(f"- {text}" for text in failures[:NAMED]), *more]))


def refined_question(task: Task, before: Files, work: Files, check: VisibleCheck) -> str:
    """Ask for ``task`` once more: a student that left ``work`` reads what it changed and what its check says."""
    difference = unified(before, work)
    shown = difference if len(difference) <= LONGEST else f"{difference[:LONGEST]}\n…"
    return "\n\n".join(
        [
            task.question,
            "You have worked on this before, and your work folder is as you left it. You changed:",
            shown or "nothing",
            check.output,
            "Look at it again and mend what is wrong. What is right may stay as it is.",
        ]
    )


def _failing(run: TestRun) -> list[str]:
    return [test for test, outcome in run.outcomes.items() if outcome == "failed"]


async def _tests(task: Task, before: Files, work: Files, sandbox: Sandbox) -> TestRun:
    """Run the tests of ``before`` on ``work``."""
    tests = {path: data for path, data in before.items() if is_test(path)}
    if task.domain == TESTING:
        work, tests = before, tests | ({TESTS: work[TESTS]} if TESTS in work else {})
    modules = SourceTree(tests).test_modules
    if not modules:
        return TestRun()
    files = SourceTree({path: data for path, data in work.items() if not is_test(path)} | tests)
    run = await run_hidden_tests(files.files, (files.root,), modules, sandbox, SECONDS)
    if run.sandbox_failed:
        raise TransientError("The sandbox did not run the visible tests.", run.problem)
    return run


async def _calls(task: Task, work: Files, sandbox: Sandbox) -> tuple[int, list[str]]:
    """How many calls that the statement shows are right, and what is wrong with the others."""
    calls = shown_calls(task.question)
    if not calls or not task.row or not task.row.repository:
        return 0, []
    package = task.row.repository.package
    modules = [
        ModuleCalls(module=f"{package}.{call.module}", prelude=call.prelude, calls=((call.expression, call.expected),))
        for call in calls
    ]
    code = {path: data for path, data in work.items() if path.startswith(f"{package}/")}
    values, problem, sandbox_failed = await values_of(modules, code, sandbox, SECONDS)
    if sandbox_failed:
        raise TransientError("The sandbox did not make the calls of the statement.", problem)
    if problem:
        return 0, [problem]
    pairs = [(call, value) for call, (value,) in zip(calls, values, strict=True)]
    wrong = [
        f"{call.expression} is to be {call.expected}, and gives {value[:80]}"
        for call, value in pairs
        if not is_same(call.expected, value)
    ]
    return len(pairs) - len(wrong), wrong
