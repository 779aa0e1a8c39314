"""The teacher is paid for tasks at the frontier of what the student can do."""

from agent0.rewards import Facts, reward
from agent0.tasks.curriculum.sampler import frontier_value


@reward("uncertainty", role="teacher", weight=1.0, reads=("solve_rate",))
def uncertainty(facts: Facts) -> float | None:
    """``1 - 2|p - 1/2|`` (arXiv 2511.16043, section 3.2), with p the verified solve rate; None where nothing could be
    verified: nobody knows how hard an unanswerable question is, however much the answers differ."""
    return None if facts["solve_rate"] is None else frontier_value(facts["solve_rate"])


@reward("agreement", role="teacher", weight=0.0, reads=("self_consistency",))
def agreement(facts: Facts) -> float | None:
    """``1 - 2|p - 1/2|``, p the share of attempts that agree with the majority, whatever is right."""
    return None if facts["self_consistency"] is None else frontier_value(facts["self_consistency"])


@reward("narrow_margin", role="teacher", weight=0.0, reads=("answer_margin",))
def narrow_margin(facts: Facts) -> float | None:
    """1 - how far the most frequent answer is ahead of the next one, as a share of all attempts."""
    return None if facts["answer_margin"] is None else 1.0 - facts["answer_margin"]


@reward("answer_doubt", role="teacher", weight=0.0, reads=("answer_confidence",))
def answer_doubt(facts: Facts) -> float | None:
    """``1 - 2|c - 1/2|``, c the mean probability that the student gave the tokens of its answers; those that a format
    asks for are left out. None where a model gives no log-probabilities."""
    return None if facts["answer_confidence"] is None else frontier_value(facts["answer_confidence"])


@reward("token_entropy", role="teacher", weight=0.0, reads=("token_entropy",))
def token_entropy(facts: Facts) -> float | None:
    """Mean surprise of the student's own tokens (an unbiased estimate of its entropy, nats a token, since they were
    sampled from it: arXiv 2002.07650), at most 1."""
    return None if facts["token_entropy"] is None else min(1.0, facts["token_entropy"])


@reward("fused_doubt", role="teacher", weight=0.0, reads=("fused_confidence",))
def fused_doubt(facts: Facts) -> float | None:
    """``1 - 2|c - 1/2|``, c the mean probability that the attempts are right by ``run.rewards.calibrator``; None
    without one that can read their signals."""
    return None if facts["fused_confidence"] is None else frontier_value(facts["fused_confidence"])


@reward("critique_doubt", role="teacher", weight=0.0, reads=("critique",))
def critique_doubt(facts: Facts) -> float | None:
    """``1 - 2|c - 1/2|``, c the share of yes among what judges and other checks said of the answers; None where nobody
    was asked."""
    return None if facts["critique"] is None else frontier_value(facts["critique"])


@reward("calibration", role="student", weight=0.0, reads=("confidence", "correct"))
def calibration(facts: Facts) -> float | None:
    """``-(c - y)^2`` (Brier 1950): a student loses least by being as sure as it is right. None where either is
    unknown."""
    if facts["confidence"] is None or facts["correct"] is None:
        return None
    return -float((facts["confidence"] - facts["correct"]) ** 2)


@reward("critique", role="student", weight=0.0, reads=("critique",))
def critique(facts: Facts) -> float | None:
    """Share of yes among what judges and other checks said of this answer; None where nobody was asked."""
    return None if facts["critique"] is None else float(facts["critique"])
