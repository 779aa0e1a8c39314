"""Training examples for the built-in model, made before any run: calls copied from the question, guesses, and
questions.

Every task is of the training split. A call's output is the family's own solution; a test compares the two.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agent0.events.values import Turn
from agent0.rollout.prompts import prompt, render
from agent0.rollout.teacher import request_turns
from agent0.tasks.curriculum.sampler import ANY_LEVEL
from agent0.tasks.families import Family, Params, families
from agent0.tasks.splits import split_key, split_of

STYLE = "compact"
TAUGHT = ("arithmetic", "boolean", "counting", "linear", "lists", "modular", "ranking", "strings", "tracing")
"""The families that the built-in model knows; one that is added later does not change how it is made."""


@dataclass(frozen=True)
class Phase:
    """One stretch of training. The learning rate goes linearly from ``lr`` to ``lr_end``. ``levels`` are weights of
    levels from 1 on; ``tool`` is the share of student examples that call a tool (the rest guess), ``teacher`` the share
    of examples in which a question is asked."""

    steps: int
    lr: float
    lr_end: float
    levels: tuple[float, ...]
    tool: float
    teacher: float


TrainingExample = tuple[Turn, ...]
"""A conversation that ends with an assistant's turn. What is said up to a turn of the name ``NOT_TAUGHT`` is read, not
learned."""
NOT_TAUGHT = "not taught"
Make = Callable[[int, Phase, random.Random], TrainingExample]
"""(level, phase, rng) -> one training example."""


def training_examples(phase: Phase, rng: random.Random, make: Make) -> Iterator[TrainingExample]:
    """Yield training examples without end, as ``make`` makes them, levels drawn by ``phase.levels``."""
    while True:
        level = rng.choices(range(1, len(phase.levels) + 1), phase.levels)[0]
        yield make(level, phase, rng)


def tool_example(level: int, phase: Phase, rng: random.Random) -> TrainingExample:
    """Make one conversation on a fresh training task: a tool call, a guess, or the teacher's question."""
    entry = families()[rng.choice(TAUGHT)]
    params = entry.sample(level, rng)
    while split_of(split_key(entry, params)) != "train":
        params = entry.sample(level, rng)
    question = entry.render(params, rng)
    if rng.random() < phase.teacher:
        values = {"domain": entry.domain, "family": entry.name, "level": level}
        return (*render(prompt(STYLE, entry.domain, "teacher"), values), _says(question))
    turns = render(prompt(STYLE, entry.domain, "student"), {"question": question})
    answer = _says(f"\\boxed{{{entry.solve(params)}}}")
    if rng.random() >= phase.tool:
        return (*turns, answer)
    output = Turn(role="tool", content=entry.solve(params))
    return (*turns, _says(call_text(entry, params)), output, answer)


def call_text(entry: Family, params: dict[str, object]) -> str:
    """The reference call as an assistant writes it."""
    name, arguments = entry.call(params)
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def _says(text: str) -> Turn:
    return Turn(role="assistant", content=text)


def weights(values: Sequence[float]) -> tuple[float, ...]:
    """Weights of levels from 1 on, one each.

    Raises:
        ValueError: there is none, or one is no number.
    """
    if not values:
        raise ValueError("levels are empty")
    return tuple(float(value) for value in values)


CLIMBED = ("reversal",)
LADDERS = {
    "reversal": "a string of digits written backwards",
    "digit_sums": "digits from the last one on, each with the sum so far",
    "word_reversal": "a list of words written from the last one to the first",
    "column_addition": "two numbers added column by column, every carry written down",
}
"""Families that can be climbed, in words; a level is a number of digits or words."""


def climb_example(level: int, phase: Phase, rng: random.Random, ladder: str = CLIMBED[0]) -> TrainingExample:
    """Make one conversation on a training task of ``level`` of the family ``ladder``: the question and its answer;
    nothing is read of ``phase``."""
    entry, params = _task(level, rng, ladder)
    turns = render(prompt(STYLE, entry.domain, "student"), {"question": entry.render(params, rng)})
    return (*turns, Turn(role="assistant", content=f"\\boxed{{{entry.solve(params)}}}"))


def climb_teacher_example(level: int, phase: Phase, rng: random.Random) -> TrainingExample:
    """Make one conversation in which a training task of ``level`` is written on a request that names no level."""
    entry, params = _task(level, rng)
    turns = request_turns(prompt(STYLE, entry.domain, "teacher"), entry.domain, entry.name, ANY_LEVEL)
    return (*turns, Turn(role="assistant", content=entry.render(params, rng)))


def _task(level: int, rng: random.Random, ladder: str = CLIMBED[0]) -> tuple[Family, Params]:
    """The family ``ladder``, and a training task of it."""
    entry = families()[ladder]
    params = entry.sample(level, rng)
    while split_of(split_key(entry, params)) != "train":
        params = entry.sample(level, rng)
    return entry, params
