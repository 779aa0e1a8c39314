"""How sure the student is: agreement of its answers, and the probability it gave its own tokens."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from agent0.answers import normal_form


@dataclass(frozen=True)
class Agreement:
    """Self-consistency of several answers to one task (arXiv 2511.16043, section 3.1).

    ``share`` is the majority's share of all attempts (an attempt without an answer agrees with nobody);
    ``entropy`` is that of the answer distribution in nats.
    """

    majority: str | None
    share: float
    entropy: float


def agreement(answers: Iterable[str | None]) -> Agreement:
    """Count answers by normal form; ties go to the form that appeared first."""
    given = [None if a is None else normal_form(a) for a in answers]
    counts = Counter(a for a in given if a is not None)
    if not counts:
        return Agreement(None, 0.0, 0.0)
    total = sum(counts.values())
    entropy = -sum(c / total * math.log(c / total) for c in counts.values())
    majority, count = counts.most_common(1)[0]
    return Agreement(majority, count / len(given), entropy)


def token_confidence(mean_logprob: float | None) -> float | None:
    """Geometric mean probability of the sampled tokens, in (0, 1]; None where the provider gives no logprobs."""
    return None if mean_logprob is None else math.exp(min(0.0, mean_logprob))
