"""How sure a model was of a turn: features, and the probability that a calibrator makes of them."""

import math
from collections.abc import Mapping

from agent0.ports.models import GenerateRequest, Generation
from agent0.settings import CalibratorConfig
from agent0.stats.calibrators import Calibrator
from agent0.stats.logistic import Fusion

TOKENS = ("mean_token", "lowest_token")
"""Names of the features that need nothing but the log-probabilities of a turn."""


def folded(text: str) -> str:
    """Return ``text`` without what is no part of an answer: case and white space."""
    return " ".join(text.split()).casefold()


def features(request: GenerateRequest, written: Generation) -> dict[str, float]:
    """Measure how sure a model was: the geometric mean of the probabilities of its tokens, and the lowest of them.
    Nothing where it gives no log-probabilities, as Anthropic's do."""
    logprobs = [min(0.0, value) for value in written.logprobs if not math.isnan(value)]
    if not logprobs:
        return {}
    return {"mean_token": math.exp(sum(logprobs) / len(logprobs)), "lowest_token": math.exp(min(logprobs))}


def probability(features_of_turn: Mapping[str, float], plan: CalibratorConfig | None) -> float | None:
    """The probability that a turn with these features is right: by the calibrator ``plan``, else the mean probability
    of its tokens as it is. None where nothing is known that it follows from."""
    if plan is None or not plan.signal:
        return features_of_turn.get("mean_token")
    names = tuple(plan.signal.split("+"))
    if not any(name in features_of_turn for name in names):
        return None
    if plan.method == "logistic":
        return Fusion(names, plan.parameters, 0).apply(features_of_turn)
    return Calibrator(plan.method, plan.parameters, 0).apply(features_of_turn[names[0]])


def is_whole(plan: CalibratorConfig) -> bool:
    """Whether ``plan`` has as many parameters as its method needs for its signals."""
    size, count = len(plan.parameters), len(plan.signal.split("+"))
    if plan.method == "logistic":
        return size == 1 + 2 * count
    if plan.method == "isotonic":
        return size >= 2 and size % 2 == 0 and count == 1
    return size == {"temperature": 1, "platt": 2}[plan.method] and count == 1
