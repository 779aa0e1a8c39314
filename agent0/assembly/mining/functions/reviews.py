"""Part of the rim: functions of published packages as tasks that ask for a review, a third of which are right."""

import random
from collections.abc import Iterator, Mapping

from agent0.assembly.mining.baseline import TRIALS, UnusableError
from agent0.assembly.mining.candidates import Code, rejected
from agent0.assembly.mining.functions.called_functions import CalledFunction, MinedRelease
from agent0.assembly.mining.functions.mined_answers import Draw, MinedAnswer, Tried, tried
from agent0.tasks.mining.mutations import Mutation, by_kinds
from agent0.tasks.mining.statements import function_review_statement
from agent0.verification.repositories.mined_task import DEFECTS, SLACK_S
from agent0.verification.repositories.seeded_defects import (
    CLEAN,
    REVIEW,
    REVIEWED,
    Defect,
    HiddenDefects,
    ReviewedModule,
    SeededDefects,
)

EVERY, RIGHT = 3, "right "
"""Of so many functions that are reviewed one is right, and its candidate's name begins so."""


def reviews(mined: MinedRelease, source: random.Random, so_far: Tried) -> Iterator[Draw]:
    """Yield functions with a mutation, and right ones where these are too few among the tasks ``so_far``."""
    by_name = {(each.path, each.name): each for each in mined.functions}
    changeable = [each for each in mined.functions if mined.mutations_in(each)]
    right = iter(source.sample(changeable, len(changeable)))
    for mutation in by_kinds(mined.mutations, source):
        function = by_name.get((mutation.path, mutation.function.partition(".")[0]))
        if function is None:
            continue
        accepted = [name for name, task in so_far().items() if task]
        are_few = EVERY * sum(name.startswith(RIGHT) for name in accepted) <= len(accepted)
        if are_few and (clean := next(right, None)):
            yield _draw(mined, clean, None)
        yield _draw(mined, function, mutation)


def _draw(mined: MinedRelease, function: CalledFunction, mutation: Mutation | None) -> Draw:
    async def make() -> MinedAnswer:
        return await _review(mined, function, mutation, name)

    name = mutation.key if mutation else f"{RIGHT}{function.path} {function.name}"
    return name, make


async def _review(mined: MinedRelease, function: CalledFunction, mutation: Mutation | None, name: str) -> MinedAnswer:
    """The task whose defect is ``mutation``, which tests of the package reject, and a call that shows it.

    Raises:
        UnusableError: there is none.
        SandboxUnavailableError: there is no sandbox.
    """
    release = mined.release
    code: Code = release.code if mutation is None else mined.changed(mutation)
    defects, text = await _defect(mined, function, mutation, code) if mutation else ((), CLEAN)
    hidden = HiddenDefects(
        package="",
        modules=(ReviewedModule(name=function.module, prelude="", functions=function.functions),),
        defects=defects,
    )
    files = mined.importable(release.code)
    files |= {f"{REVIEWED}/{path}": data for path, data in mined.importable(code).items()}
    answer = {REVIEW: f"{text}\n".encode()}
    decider = SeededDefects(hidden, files, SLACK_S)
    trials = await tried(decider, answer, {}, _random_reviews(function, code, name), mined.sandbox)
    return MinedAnswer(
        release=release,
        kind="review",
        key=name,
        statement=function_review_statement(*release.title, function.path, function.name, function.functions),
        student={**mined.untested, **code},
        answer=answer,
        files=files,
        hidden=hidden,
        decides=DEFECTS,
        change=f"{mutation.kind} in {mutation.function}, {mutation.path}:{mutation.line}" if mutation else CLEAN,
        trials=trials,
    )


async def _defect(
    mined: MinedRelease, function: CalledFunction, mutation: Mutation, code: Code
) -> tuple[tuple[Defect, ...], str]:
    """Where ``mutation`` is in ``code``, and the line that names it, with a call that goes wrong. Errors as above."""
    wrong = await mined.wrong_calls(function, code)
    if not wrong:
        raise UnusableError("no call that its tests make goes wrong")
    reached = mined.callers[mutation.path, mutation.line] & mined.start.stable
    await rejected(mined.release, mined.start, reached, mutation, mined.sandbox)
    first, last = mutation.lines(mined.release.code[mutation.path])
    defect = Defect(module=function.path.removesuffix(".py"), first=first, last=last)
    return (defect,), f"{function.path}:{first}: {wrong[0][0]}"


def _random_reviews(function: CalledFunction, code: Code, name: str) -> list[Mapping[str, bytes]]:
    """Each names a line of the file with a call, both drawn."""
    rng, lines = random.Random(name), code[function.path].count(b"\n")
    return [
        {REVIEW: f"{function.path}:{rng.randint(1, lines)}: {rng.choice(function.all_calls)[0]}".encode()}
        for _ in range(TRIALS)
    ]
