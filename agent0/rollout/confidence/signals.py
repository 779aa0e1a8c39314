"""Confidence signals of an attempt: agreement of answers, the probability of its own tokens, what its tools say.

A signal is a number in [0, 1] under a name; an unknown one is absent, which is not 0. Only the log-probability of each
sampled token is stored, so there is no entropy of a distribution and no margin to the second best.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent0.grading.normal_form import normal_form, same
from agent0.ports.models import Generation
from agent0.rollout.attempt import AttemptResult
from agent0.rollout.confidence.token_spans import answer_span, own, within

SELF_CRITIQUE = "self_critique"

MEANING = {
    "mean_token": "geometric mean probability of all sampled tokens (arXiv 2002.07650, length-normalised)",
    "own_tokens": "the same without tokens that the format of calls and boxed answers asks for",
    "lowest_token": "probability of the least sure of these (arXiv 2303.08896, the maximum of -log p)",
    "sequence": "their product: the probability of all that the student decided itself (arXiv 2002.07650)",
    "answer": "product over the tokens of the final answer alone (arXiv 2207.05221, section 3)",
    "grounded": "1 where the answer is what one of its own successful tool calls printed, else 0",
    "calls_ok": "share of its tool calls that ran and ended well",
    SELF_CRITIQUE: "probability of Yes when asked whether its answer is right (arXiv 2207.05221, section 4)",
    "agreement": "share of further samples with the same answer (self-consistency, arXiv 2203.11171)",
    "checked": "share of further samples in which a tool, called with other words, printed the same answer",
}
"""Every signal there is. The last two need further samples of the same task."""

SEVERAL = ("agreement", "checked")

OF_TURNS = {
    "margin": "mean over its tokens of the probability of the likeliest one less that of the second",
    "verified": "1 where the answer solves the one equation of its question, 0 where it does not",
}
"""Signals that only a single turn has, where a router measures it."""


@dataclass(frozen=True)
class Agreement:
    """Self-consistency of several answers to one task (arXiv 2511.16043, section 3.1).

    ``share`` is the majority's share of all attempts (an attempt without an answer agrees with no other), ``count`` how
    many these are; ``entropy`` is that of the answer distribution in nats.
    """

    majority: str | None
    share: float
    entropy: float
    count: int = 0


def agreement(answers: Iterable[str | None]) -> Agreement:
    """Count answers by normal form; ties go to the form that appeared first."""
    given = [None if a is None else normal_form(a) for a in answers]
    counts = Counter(a for a in given if a is not None)
    if not counts:
        return Agreement(None, 0.0, 0.0)
    total = sum(counts.values())
    entropy = -sum(c / total * math.log(c / total) for c in counts.values())
    majority, count = counts.most_common(1)[0]
    return Agreement(majority, count / len(given), entropy, count)


def token_confidence(mean_logprob: float | None) -> float | None:
    """Geometric mean probability of the sampled tokens, in (0, 1]; None where the provider gives no logprobs."""
    return None if mean_logprob is None else math.exp(min(0.0, mean_logprob))


def signals(
    written: Sequence[Generation], answer: str | None, *, grounded: bool, calls: int, calls_ok: int
) -> dict[str, float]:
    """Compute the confidence signals of one attempt, by the names of ``MEANING``.

    Forced prefixes were never sampled and do not count; without an answer there are no signals of the answer, without
    calls none of calls.
    """
    found = _of_tokens(written, answer)
    if answer is not None:
        found["grounded"] = float(grounded)
    if calls:
        found["calls_ok"] = calls_ok / calls
    return found


def _of_tokens(written: Sequence[Generation], answer: str | None) -> dict[str, float]:
    everything = [value for turn in written for value in turn.logprobs]
    if not everything or any(math.isnan(value) for value in everything):
        return {}
    found = {"mean_token": _probability(everything, mean=True)}
    if any(len(turn.ends) != len(turn.logprobs) for turn in written):
        return found
    chosen = [turn.logprobs[place] for turn in written for place in within(own(turn.text), turn.ends)]
    if chosen:
        found["own_tokens"] = _probability(chosen, mean=True)
        found["lowest_token"] = _probability([min(chosen)])
        found["sequence"] = _probability(chosen)
    span = answer_span(written[-1].text, answer) if answer else None
    if span and (places := within([span], written[-1].ends)):
        found["answer"] = _probability([written[-1].logprobs[place] for place in places])
    return found


def _probability(logprobs: Sequence[float], mean: bool = False) -> float:
    """Their product, or its root: the geometric mean."""
    return math.exp(min(0.0, sum(logprobs) / (len(logprobs) if mean else 1)))


def beside(one: AttemptResult, others: Sequence[AttemptResult]) -> dict[str, float]:
    """Compute the signals that further samples of the same task give for ``one``'s answer; none without an answer or
    samples.

    A tool that was called with the same words proves nothing further, so for ``checked`` such samples do not count.
    """
    if one.answer is None or not others:
        return {}
    alike = [other for other in others if other.answer is not None and same(other.answer, one.answer)]
    made = _calls(one)
    checked = [other for other in alike if other.grounded and not _calls(other) & made]
    return {"agreement": len(alike) / len(others), "checked": len(checked) / len(others)}


def _calls(solved: AttemptResult) -> set[str]:
    return {f"{one.call.name} {sorted(one.call.arguments.items())}" for one in solved.tool_calls}
