"""Rewards from the self-critique turn, in which the student judges its own answer (``run.student.self_critique``).

The reward is how well its judgement separates right from wrong answers, not the judgement itself: a student that always
says Yes would be rewarded.
"""

from agent0.rewards import Features, reward
from agent0.tasks.curriculum.sampler import frontier_value


@reward("self_critique", role="student", weight=0.0, reads=("self_critique", "correct"))
def self_critique(features: Features) -> float | None:
    """``-(c - y)^2`` (Brier 1950), c the probability that the student gives to its own answer being right, y whether it
    is. None where either is unknown."""
    if features["self_critique"] is None or features["correct"] is None:
        return None
    return -float((features["self_critique"] - features["correct"]) ** 2)


@reward("self_doubt", role="teacher", weight=0.0, reads=("self_critique",))
def self_doubt(features: Features) -> float | None:
    """``1 - 2|c - 1/2|``, c the mean over attempts of the probability that the student gives to its own answer being
    right. None where none was asked."""
    return None if features["self_critique"] is None else frontier_value(features["self_critique"])
