"""The teacher's rewards for tasks that the student solves sometimes, and the student's for well-calibrated
confidence."""

import math

from agent0.rewards import Features, reward
from agent0.tasks.curriculum.sampler import frontier_value


@reward("uncertainty", role="teacher", weight=1.0, reads=("solve_rate",))
def uncertainty(features: Features) -> float | None:
    """``1 - 2|p - 1/2|`` (arXiv 2511.16043, section 3.2), with p the verified solve rate; None where nothing was
    verified: the difficulty of a question without a verifiable answer is unknown, however much the answers differ."""
    return None if features["solve_rate"] is None else frontier_value(features["solve_rate"])


@reward("variance", role="teacher", weight=0.0, reads=("solve_rate",))
def variance(features: Features) -> float | None:
    """``4p(1-p)``, p the verified solve rate: the variance of an attempt's outcome as a share of the largest. Rounder
    at the top than ``uncertainty``: with four attempts, one or three right still earn 3/4."""
    rate = features["solve_rate"]
    return None if rate is None else float(4 * rate * (1 - rate))


@reward("agreement", role="teacher", weight=0.0, reads=("self_consistency",))
def agreement(features: Features) -> float | None:
    """``1 - 2|p - 1/2|``, p the share of attempts that agree with the majority, whether or not it is right."""
    return None if features["self_consistency"] is None else frontier_value(features["self_consistency"])


@reward("answer_entropy", role="teacher", weight=0.0, reads=("answer_entropy", "attempts", "self_consistency"))
def answer_entropy(features: Features) -> float | None:
    """Entropy of the distribution of answers, as a share of what as many different answers as attempts would have
    (Shannon 1948). None below two attempts, and where none gave an answer: then there is no distribution."""
    if features["answer_entropy"] is None or not features["self_consistency"] or (features["attempts"] or 0) < 2:
        return None
    return max(0.0, min(1.0, float(features["answer_entropy"]) / math.log(features["attempts"])))


@reward("narrow_margin", role="teacher", weight=0.0, reads=("answer_margin",))
def narrow_margin(features: Features) -> float | None:
    """1 minus the lead of the most frequent answer over the next one, as a share of all attempts."""
    return None if features["answer_margin"] is None else 1.0 - features["answer_margin"]


@reward("answer_doubt", role="teacher", weight=0.0, reads=("answer_confidence",))
def answer_doubt(features: Features) -> float | None:
    """``1 - 2|c - 1/2|``, c the student's mean probability of the tokens of its answers, without those of the answer
    format. None where a model gives no log-probabilities."""
    return None if features["answer_confidence"] is None else frontier_value(features["answer_confidence"])


@reward("token_entropy", role="teacher", weight=0.0, reads=("token_entropy",))
def token_entropy(features: Features) -> float | None:
    """Mean entropy of the student's own tokens in nats per token, at most 1: the mean of -log p over sampled tokens, an
    unbiased estimate (arXiv 2002.07650)."""
    return None if features["token_entropy"] is None else min(1.0, features["token_entropy"])


@reward("fused_doubt", role="teacher", weight=0.0, reads=("fused_confidence",))
def fused_doubt(features: Features) -> float | None:
    """``1 - 2|c - 1/2|``, c the mean probability by ``run.rewards.calibrator`` that the attempts are right; None
    without a calibrator that can read their signals."""
    return None if features["fused_confidence"] is None else frontier_value(features["fused_confidence"])


@reward("critique_doubt", role="teacher", weight=0.0, reads=("critique",))
def critique_doubt(features: Features) -> float | None:
    """``1 - 2|c - 1/2|``, c the share of yes among the votes of judges and other checks on the answers; None without
    votes."""
    return None if features["critique"] is None else frontier_value(features["critique"])


@reward("calibration", role="student", weight=0.0, reads=("confidence", "correct"))
def calibration(features: Features) -> float | None:
    """``-(c - y)^2`` (Brier 1950), c the student's confidence, y whether it is right: highest in expectation for
    calibrated confidence. None where either is unknown."""
    if features["confidence"] is None or features["correct"] is None:
        return None
    return -float((features["confidence"] - features["correct"]) ** 2)


@reward("critique", role="student", weight=0.0, reads=("critique",))
def critique(features: Features) -> float | None:
    """Share of yes among the votes of judges and other checks on this answer; None without votes."""
    return None if features["critique"] is None else float(features["critique"])
