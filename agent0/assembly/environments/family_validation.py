"""Part of the rim: whether a family is fit to train on. Its own answers are right, empty and random ones are not, and
it repeats itself: environments' validators say that the oracle reaches the maximum and the floor does not.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.runtime.port_openers import open_port
from agent0.events.values import Task
from agent0.ports.sandbox import Sandbox
from agent0.settings import Settings
from agent0.tasks.families import Family
from agent0.tasks.seeds import derive_seed
from agent0.tasks.splits import task_of
from agent0.verification.verifiers import verifier_for

MOST_RANDOM = 0.75
"""Share of random answers that may be right: of two possible answers half are."""
WORDS = ("0", "1", "-7", "true", "none of them", "(1, 2)", "x")
"""What is answered by chance, beside answers to other tasks."""


@dataclass(frozen=True)
class LevelValidation:
    """One level of a family: how many tasks were drawn, how many of them differ, how many answers they have; shares of
    right answers; seconds of the slowest task, from its draw to the verdict on its answer. ``problems`` is empty where
    the level is fit."""

    level: int
    tasks: int
    distinct: int
    answers: int
    oracle: float
    empty: float
    random: float
    slowest_s: float
    problems: tuple[str, ...]


async def validate_family(
    settings: Settings, family: Family, levels: Sequence[int], count: int, seed: int, seconds: float
) -> list[LevelValidation]:
    """Validate each of ``levels`` (``validate_level``), with the verifiers' sandbox where one is needed."""
    sandbox = await open_port("verifier_sandbox", settings, artifact_store(settings), tested=True)
    try:
        return [await validate_level(family, level, count, seed, sandbox, seconds) for level in levels]
    finally:
        await sandbox.close()


async def validate_level(
    family: Family, level: int, count: int, seed: int, sandbox: Sandbox, seconds: float
) -> LevelValidation:
    """Draw ``count`` tasks of a level with ``seed`` and judge answers to each as a run would; a task may take
    ``seconds``.

    Raises:
        SandboxUnavailableError: something would have to be run, and there is no sandbox.
    """
    drawn: list[tuple[Task, str]] = []
    problems: dict[str, None] = {}
    verdicts: list[list[bool | None]] = []
    slowest = 0.0
    for number in range(count):
        start = perf_counter()
        question, answer = _draw(family, level, seed, number)
        task = task_of(family, question)
        if task is None or task.level != level:
            problems[f"it does not read its own question: {question[:80]!r}"] = None
            continue
        oracle, again = await _right(task, [answer, answer], sandbox)
        slowest = max(slowest, perf_counter() - start)
        if (question, answer) != _draw(family, level, seed, number) or oracle != again:
            problems["the same seed gave another task, answer or verdict"] = None
        if not oracle:
            problems[f"its own answer {answer[:40]!r} to {question[:80]!r} is not right"] = None
        guess = _guess(task, drawn, random.Random(derive_seed("guess", seed, level, number)))
        verdicts.append([oracle, *await _right(task, ["", guess], sandbox)])
        drawn.append((task, answer))
    right = [sum(map(bool, column)) / len(verdicts) for column in zip(*verdicts, strict=True)] or [0.0, 0.0, 0.0]
    distinct, answers = len({task.canonical for task, _ in drawn}), len({answer for _, answer in drawn})
    level_result = LevelValidation(level, len(drawn), distinct, answers, right[0], right[1], right[2], slowest, ())
    return replace(level_result, problems=(*problems, *_problems(level_result, count, seconds)))


def _problems(result: LevelValidation, count: int, seconds: float) -> Iterator[str]:
    """What is wrong with the level as a whole."""
    if result.empty:
        yield "an empty answer is right"
    if result.random > MOST_RANDOM:
        yield f"{result.random:.0%} of random answers are right, at most {MOST_RANDOM:.0%} may be"
    if count > 1 and result.distinct < 2:
        yield "all its tasks are the same"
    if result.slowest_s > seconds:
        yield f"a task took {result.slowest_s:.2f} s, more than {seconds:g} s"


def _draw(family: Family, level: int, seed: int, number: int) -> tuple[str, str]:
    """Question and answer of a task, by seed."""
    rng = random.Random(derive_seed("validate", family.name, seed, level, number))
    params = family.sample(level, rng)
    return family.render(params, rng), family.solve(params)


def _guess(task: Task, drawn: Sequence[tuple[Task, str]], rng: random.Random) -> str:
    """An answer by chance: the answer to another task, or a word."""
    others = [answer for other, answer in drawn if other.canonical != task.canonical]
    return rng.choice(others) if others and rng.random() < 0.5 else rng.choice(WORDS)


async def _right(task: Task, answers: Sequence[str], sandbox: Sandbox) -> list[bool | None]:
    return [verdict.correct for verdict in await verifier_for(task).judge(task, answers, sandbox)]
