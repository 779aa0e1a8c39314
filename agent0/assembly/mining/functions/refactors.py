"""Part of the rim: functions of published packages, written more complicated than they are, as tasks that ask to
simplify them."""

import random
from collections.abc import Iterator

from agent0.assembly.mining.baseline import TRIALS, UnusableError, sound
from agent0.assembly.mining.functions.called_functions import CalledFunction, MinedRelease
from agent0.assembly.mining.functions.mined_answers import Draw, MinedAnswer, Tried, tried
from agent0.tasks.mining.complication import complicated_function
from agent0.tasks.mining.mutations import by_kinds, compiles
from agent0.tasks.mining.statements import function_refactor_statement
from agent0.verification.repositories.code_measures import CodeMeasures, UnmeasurableError
from agent0.verification.repositories.mined_task import FUNCTION, SLACK_S, SLOWER
from agent0.verification.repositories.simpler_function import HiddenFunction, SimplerFunction, function_measures

CHANGES, LEAST, LEFT = 4, 3, 0.4
"""Changes of a function; by how much the complexity must be above that of the original, and the share of what is above
it that may stay."""


def refactors(mined: MinedRelease, source: random.Random, so_far: Tried) -> Iterator[Draw]:
    """Yield a task of every function with enough mutations for random answers."""
    for function in source.sample(mined.functions, len(mined.functions)):
        if len(mined.mutations_in(function)) >= TRIALS:
            yield _draw(mined, function)


def _draw(mined: MinedRelease, function: CalledFunction) -> Draw:
    async def make() -> MinedAnswer:
        return await _refactor(mined, function)

    return f"{function.path} {function.name}", make


async def _refactor(mined: MinedRelease, function: CalledFunction) -> MinedAnswer:
    """The task, whose reference is the function as it was published.

    Raises:
        UnusableError: there is none.
        SandboxUnavailableError: there is no sandbox.
    """
    release, path = mined.release, function.path
    original, rng = release.code[path], random.Random(f"{release.source.sha256} {path} {function.name}")
    before, high, low = _complicated(function, original, rng)
    files = {**release.tree.files, path: before}
    if await mined.wrong_calls(function, {**release.code, path: before}):
        raise UnusableError("written more complicated it gives another value")
    tests = sound(await release.tests.run({**release.code, path: before}, mined.sandbox))
    if not mined.start.stable <= tests.passed:
        raise UnusableError("written more complicated it fails tests")
    hidden = _hidden(mined, function, high, low)
    mutations = by_kinds(mined.mutations_in(function), rng)
    drawn = [{path: mined.changed(each)[path]} for each in mutations[:TRIALS]]
    decider = SimplerFunction(hidden, files, SLACK_S)
    trials = await tried(decider, {path: original}, {path: before}, drawn, mined.sandbox)
    bounds = (high.complexity, hidden.complexity), (high.size, hidden.size)
    return MinedAnswer(
        release=release,
        kind="refactor",
        key=f"{path} {function.name}",
        statement=function_refactor_statement(*release.title, path, function.name, *bounds),
        student=files,
        answer={path: original},
        files=files,
        hidden=hidden,
        decides=FUNCTION,
        change=f"{function.name}, {path}: {high.complexity} of {low.complexity}, size {high.size} of {low.size}",
        trials=trials,
    )


def _complicated(
    function: CalledFunction, original: bytes, rng: random.Random
) -> tuple[bytes, CodeMeasures, CodeMeasures]:
    """Its file with ``function`` more complicated, and the measures of that and of the ``original``.

    Raises:
        UnusableError: it cannot be, or it is hardly.
    """
    try:
        before = complicated_function(original, function.name, CHANGES, rng)
        high, low = (function_measures(data, before, function.name) for data in (before, original))
    except (UnmeasurableError, StopIteration, ValueError, RecursionError) as error:
        raise UnusableError(f"it cannot be measured: {error}"[:200]) from error
    if high.complexity - low.complexity < LEAST or high.size <= low.size or not compiles(before):
        raise UnusableError("it is hardly more complicated")
    return before, high, low


def _hidden(mined: MinedRelease, function: CalledFunction, high: CodeMeasures, low: CodeMeasures) -> HiddenFunction:
    """What decides: bounds between the measures of the complicated function and of the original, calls and tests."""
    reached = mined.tests_of(function)
    return HiddenFunction(
        path=function.path,
        module=function.module,
        name=function.name,
        complexity=int(low.complexity + LEFT * (high.complexity - low.complexity)),
        size=int(low.size + LEFT * (high.size - low.size)),
        calls=function.calls,
        modules=tuple(sorted({test.partition("::")[0] for test in reached})),
        tests=tuple(sorted(reached)),
        seconds=SLOWER * sum(mined.start.run.seconds.get(test, 0.0) for test in reached) + SLACK_S,
    )
