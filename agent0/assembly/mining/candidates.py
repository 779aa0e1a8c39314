"""Part of the rim: one candidate for a task, tried: which tests fail without its reference and pass with it, and
whether the empty patch and random ones are refused three times each."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from agent0.assembly.mining.baseline import LONGEST_S, TRIALS, Baseline, Release, UnusableError, sound
from agent0.ports.sandbox import Sandbox
from agent0.tasks.mining.mutations import Mutation, compiles, mutated
from agent0.tasks.mining.statements import bug_statement, change_statement, changed_interfaces
from agent0.verification.repositories.hidden_tests import Call, TestRun
from agent0.verification.repositories.hidden_values import HiddenValues
from agent0.verification.repositories.mined_task import SLACK_S, SLOWER, HiddenTests, TrialRecord

Code = Mapping[str, bytes]


@dataclass(frozen=True)
class MinedCandidate:
    """A task that holds: ``student`` is the work folder, ``reference`` the code that solves it."""

    statement: str
    student: Code
    reference: Code
    hidden: HiddenTests
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    trials: TrialRecord


async def bug(
    release: Release,
    start: Baseline,
    callers: Mapping[Call, frozenset[str]],
    mutation: Mutation,
    others: Sequence[Mutation],
    sandbox: Sandbox,
) -> MinedCandidate:
    """``mutation`` of ``release``, whose code is the reference: its three runs are those of ``start``. The tests in
    ``callers`` that reach the function are run; of ``others`` random patches are drawn.

    Raises:
        UnusableError: it is no task.
        SandboxUnavailableError: there is no sandbox.
    """
    reached = callers.get((mutation.path, mutation.line), frozenset()) & start.stable
    code, hidden, run = await rejected(release, start, reached, mutation, sandbox)
    failing = frozenset(hidden.tests)
    record = await trials(hidden, code, _beside(release.code, mutation, others), sandbox)
    modules = {test.partition("::")[0] for test in failing}
    return MinedCandidate(
        bug_statement(release.package, release.source.version, _messages(run.messages, failing)),
        {**{path: data for path, data in release.tree.frame.items() if path not in modules}, **code},
        release.code,
        hidden,
        tuple(sorted(failing)),
        tuple(sorted(start.stable - failing)),
        record,
    )


async def rejected(
    release: Release, start: Baseline, reached: frozenset[str], mutation: Mutation, sandbox: Sandbox
) -> tuple[Code, HiddenTests, TestRun]:
    """The code of ``release`` with ``mutation``, those of the tests ``reached`` that fail on it, and their run.

    Raises:
        UnusableError: none fails, or most of all tests do; it is no Python; they hang.
    """
    code = with_mutations(release.code, [mutation])
    if code is None:
        raise UnusableError("the changed file is no Python")
    seconds = SLOWER * sum(start.run.seconds.get(test, 0.0) for test in reached) + SLACK_S
    tests = replace(release.tests, tests=sorted(reached), seconds=seconds)
    run = sound(await tests.run(code, sandbox))
    failing = reached - run.passed
    if not failing:
        raise UnusableError("no test fails")
    if 2 * len(failing) > len(start.stable):
        raise UnusableError("most tests fail")
    return code, replace(tests, tests=sorted(failing)), run


def _beside(code: Code, mutation: Mutation, others: Sequence[Mutation]) -> Iterator[Code | None]:
    """``code`` with ``mutation`` and another, drawn anew each time."""
    apart = [other for other in others if not other.overlaps(mutation)]
    for other in random.Random(mutation.key).sample(apart, min(len(apart), 4 * TRIALS)):
        yield with_mutations(code, [mutation, other])


async def change(
    before: Release, after: Release, start: Baseline, mutations: Sequence[Mutation], sandbox: Sandbox
) -> MinedCandidate:
    """From ``before`` to ``after``, whose tests passed in ``start``. ``mutations`` are those of ``before``. Errors as
    for ``bug``."""
    packages = sorted({*before.tree.packages, *after.tree.packages})
    tests = replace(after.tests, packages=packages, tests=sorted(start.stable), seconds=LONGEST_S)
    run = sound(await tests.run(before.code, sandbox))
    failing = start.stable - run.passed
    if not failing:
        raise UnusableError("no test fails before the change")
    hidden = replace(tests, tests=sorted(failing))
    drawn = random.Random(before.source.sha256).sample(mutations, min(len(mutations), 4 * TRIALS))
    record = await trials(hidden, before.code, (with_mutations(before.code, [mutation]) for mutation in drawn), sandbox)
    reached = sound(await hidden.run(after.code, sandbox, after.tree.code)).calls
    calls = frozenset[Call]().union(*reached.values())
    interfaces = [
        text
        for path, data in after.code.items()
        for lines, text in changed_interfaces(path, before.code.get(path, b""), data)
        if any(file == path and line in lines for file, line in calls)
    ]
    versions = before.source.version, after.source.version
    messages = _messages({**run.messages, **_broken(run.broken, failing)}, failing)
    return MinedCandidate(
        change_statement(before.package, *versions, interfaces, messages),
        before.tree.files,
        after.code,
        hidden,
        tuple(sorted(failing)),
        tuple(sorted(start.stable - failing)),
        record,
    )


async def trials(
    hidden: HiddenTests | HiddenValues, code: Code, patches: Iterable[Code | None], sandbox: Sandbox
) -> TrialRecord:
    """Try the empty patch twice, which has failed once before, then the first three of ``patches`` that are Python.

    Raises:
        UnusableError: one of them is accepted, or there are no three.
    """
    drawn = list(islice(filter(None, patches), TRIALS))
    if len(drawn) < TRIALS:
        raise UnusableError("there are no three random patches")
    for patch in [code] * (TRIALS - 1) + drawn:
        accepted, why = await hidden.accept(patch, sandbox)
        if accepted is None:
            raise UnusableError(why)
        if accepted:
            raise UnusableError("its failing tests are flaky" if patch is code else "a random patch passes")
    return TrialRecord(reference=TRIALS, empty=0, random=0)


def with_mutations(code: Code, mutations: Sequence[Mutation]) -> Code | None:
    """``code`` with ``mutations``; None where it is no Python then."""
    changed = dict(code)
    for path in {mutation.path for mutation in mutations}:
        changed[path] = mutated(code[path], [each for each in mutations if each.path == path])
        if not compiles(changed[path]):
            return None
    return changed


def _messages(messages: Mapping[str, str], failing: frozenset[str]) -> dict[str, str]:
    return {test: messages.get(test, "it does not run") for test in failing}


def _broken(broken: Mapping[str, str], failing: frozenset[str]) -> dict[str, str]:
    """What keeps the file of each failing test from being imported."""
    return {test: broken[path] for test in failing if (path := test.partition("::")[0]) in broken}
