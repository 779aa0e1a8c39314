"""Training examples for the built-in model that climbs: the lowest levels of a ladder, answered at once.

The family's own solution is what is taught, here and nowhere else: a run trains on the student's accepted answers, and
on examples of this course that are kept beside the model.
"""

import random

from agent0.rollout.prompts import prompt, render
from agent0.tasks.families import families
from agent0.tasks.splits import split_key, split_of
from events.values import Turn
from infra.tiny.examples import STYLE, Phase, TrainingExample

CLIMBED = ("reversal",)


def climb_example(level: int, phase: Phase, rng: random.Random) -> TrainingExample:
    """Make one conversation on a training task of ``level``: the question and its answer; nothing is read of
    ``phase``."""
    entry = families()[rng.choice(CLIMBED)]
    params = entry.sample(level, rng)
    while split_of(split_key(entry, params)) != "train":
        params = entry.sample(level, rng)
    asked = render(prompt(STYLE, entry.domain, "student"), {"question": entry.render(params, rng)})
    return (*asked, Turn(role="assistant", content=f"\\boxed{{{entry.solve(params)}}}"))
