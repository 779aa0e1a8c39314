"""Training examples for the built-in models that climb: the lowest levels of a ladder, answered at once by the student,
asked for by the teacher.

The family's own solution is what is taught, here and nowhere else: a run trains on the student's accepted answers, and
on examples of this course that are kept beside the model.
"""

import random

from agent0.events.values import Turn
from agent0.infra.tiny.examples import STYLE, Phase, TrainingExample
from agent0.rollout.prompts import prompt, render
from agent0.rollout.teacher import request_turns
from agent0.tasks.curriculum.sampler import ANY_LEVEL
from agent0.tasks.families import Family, Params, families
from agent0.tasks.splits import split_key, split_of

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
