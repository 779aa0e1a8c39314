"""A vote of several models, weighed by how probably each is right (log-odds: the optimal rule for independent voters,
Nitzan and Paroush 1982)."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent0.stats.calibrators import log_odds

if TYPE_CHECKING:
    from agent0.routing.strategies import Answer


@dataclass(frozen=True)
class Won:
    """The winning answer: the model that it is taken from, how many gave it, and its share of all weight."""

    model: str
    votes: int
    probability: float


def weigh(answers: "Sequence[Answer]", right: Mapping[str, float | None]) -> Won:
    """Find the answer with the most weight; of equals the one that came first.

    A vote weighs the log-odds of its confidence, where that is unknown of how often its model is right (``right``), and
    next to nothing where that is unknown as well: it then breaks ties only. ``probability`` is the softmax over the
    answers that were given.
    """
    weights: defaultdict[str, float] = defaultdict(float)
    for answer in answers:
        probability = answer.confidence if answer.confidence is not None else right.get(answer.model)
        weights[answer.key] += log_odds(probability) if probability is not None else 1e-6
    best = max(weights, key=lambda key: weights[key])
    holders = [answer for answer in answers if answer.key == best]
    total = sum(math.exp(weight - weights[best]) for weight in weights.values())
    return Won(holders[0].model, len(holders), 1 / total)
