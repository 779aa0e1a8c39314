"""Part of the rim: functions of published packages as tasks that ask for tests, which must reject wrong versions."""

import random
from collections.abc import Iterator, Mapping, Sequence

from agent0.assembly.mining.baseline import TRIALS, UnusableError
from agent0.assembly.mining.candidates import Code, rejected
from agent0.assembly.mining.functions.called_functions import CalledFunction, Calls, MinedRelease
from agent0.assembly.mining.functions.mined_answers import Draw, MinedAnswer, Tried, tried
from agent0.tasks.mining.mutations import Mutation, by_kinds
from agent0.tasks.mining.statements import function_tests_statement
from agent0.verification.repositories.mined_task import SLACK_S, VERSIONS
from agent0.verification.repositories.wrong_versions import (
    MOST_LINES,
    TESTS,
    HiddenVersions,
    VersionedModule,
    WrongVersions,
)

LEAST, MOST, MUTANTS = 2, 5, 15
"""Wrong versions of a function; mutations tried for them."""


def tests(mined: MinedRelease, source: random.Random, so_far: Tried) -> Iterator[Draw]:
    """Yield a task of every function with enough mutations."""
    for function in source.sample(mined.functions, len(mined.functions)):
        if len(mined.mutations_in(function)) >= LEAST:
            yield _draw(mined, function)


def _draw(mined: MinedRelease, function: CalledFunction) -> Draw:
    async def make() -> MinedAnswer:
        return await _tests(mined, function)

    return f"{function.path} {function.name}", make


async def wrong_versions(mined: MinedRelease, function: CalledFunction) -> list[tuple[Mutation, Code, Calls]]:
    """Mutations of ``function`` that tests of the package reject, each with the code and the calls of the function that
    go wrong.

    Raises:
        SandboxUnavailableError: there is no sandbox.
    """
    versions = list[tuple[Mutation, Code, Calls]]()
    rng = random.Random(f"versions {mined.release.source.sha256} {function.path} {function.name}")
    for mutation in by_kinds(mined.mutations_in(function), rng)[:MUTANTS]:
        try:
            code = mined.changed(mutation)
            wrong = tuple(call for call in await mined.wrong_calls(function, code) if call in function.calls)
            if wrong:
                reached = mined.callers[mutation.path, mutation.line] & mined.start.stable
                await rejected(mined.release, mined.start, reached, mutation, mined.sandbox)
                versions.append((mutation, code, wrong))
        except UnusableError:
            continue  # another one
        if len(versions) == MOST:
            break
    return versions


async def _tests(mined: MinedRelease, function: CalledFunction) -> MinedAnswer:
    """The task, whose reference asserts what calls of the package's own tests give.

    Raises:
        UnusableError: there is none.
        SandboxUnavailableError: there is no sandbox.
    """
    release, versions = mined.release, await wrong_versions(mined, function)
    if len(versions) < LEAST:
        raise UnusableError("too few wrong versions")
    asserted = rejecting([wrong for _, _, wrong in versions])
    module = VersionedModule(
        name=function.module,
        prelude="",
        functions=(function.name,),
        versions=tuple(code[function.path].decode() for _, code, _ in versions),
        path=release.tree.import_path(function.path),
    )
    hidden, files = HiddenVersions(package="", modules=(module,)), mined.importable(release.code)
    answer = {TESTS: _written(asserted)}
    trials = await tried(WrongVersions(hidden, files, SLACK_S), answer, {}, _random_tests(function), mined.sandbox)
    return MinedAnswer(
        release=release,
        kind="tests",
        key=f"{function.path} {function.name}",
        statement=function_tests_statement(*release.title, function.path, function.name, len(versions)),
        student=mined.untested,
        answer=answer,
        files=files,
        hidden=hidden,
        decides=VERSIONS,
        change="; ".join(f"{each.kind} in {each.function}, {each.path}:{each.line}" for each, _, _ in versions),
        trials=trials,
    )


def rejecting(versions: Sequence[Calls]) -> Calls:
    """The calls that reject most of what is left, one after the other: the fewest by that rule."""
    calls, left = list[tuple[str, str]](), list(versions)
    while left and len(calls) < MOST_LINES:
        every = [call for wrong in left for call in wrong]
        calls.append(min(every, key=lambda call: (-every.count(call), len(call[0]), call)))
        left = [wrong for wrong in left if calls[-1] not in wrong]
    return tuple(calls)


def _written(calls: Sequence[tuple[str, str]]) -> bytes:
    """A file of tests, one for each call."""
    return "\n\n".join(
        f"def test_{number}():\n    assert {call} == {value}\n" for number, (call, value) in enumerate(calls)
    ).encode()


def _random_tests(function: CalledFunction) -> list[Mapping[str, bytes]]:
    """Each asserts of a drawn call what another gives; of values that are all alike nothing can be drawn."""
    rng, calls = random.Random(f"{function.path} {function.name}"), function.calls
    values = sorted({value for _, value in calls})
    if len(values) < LEAST:
        return []
    drawn = [rng.choice(calls) for _ in range(TRIALS)]
    others = [rng.choice([other for other in values if other != value]) for _, value in drawn]
    return [{TESTS: _written([(call, value)])} for (call, _), value in zip(drawn, others, strict=True)]
