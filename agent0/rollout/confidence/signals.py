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
from agent0.rollout.confidence.token_spans import answer_span, own_spans, within

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
    forms = [None if a is None else normal_form(a) for a in answers]
    counts = Counter(a for a in forms if a is not None)
    if not counts:
        return Agreement(None, 0.0, 0.0)
    total = sum(counts.values())
    entropy = -sum(c / total * math.log(c / total) for c in counts.values())
    majority, count = counts.most_common(1)[0]
    return Agreement(majority, count / len(forms), entropy, count)


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
    values = _of_tokens(written, answer)
    if answer is not None:
        values["grounded"] = float(grounded)
    if calls:
        values["calls_ok"] = calls_ok / calls
    return values


def _of_tokens(written: Sequence[Generation], answer: str | None) -> dict[str, float]:
    everything = [value for turn in written for value in turn.logprobs]
    if not everything or any(math.isnan(value) for value in everything):
        return {}
    values = {"mean_token": _probability(everything, mean=True)}
    if any(len(turn.ends) != len(turn.logprobs) for turn in written):
        return values
    chosen = [turn.logprobs[token] for turn in written for token in within(own_spans(turn.text), turn.ends)]
    if chosen:
        values["own_tokens"] = _probability(chosen, mean=True)
        values["lowest_token"] = _probability([min(chosen)])
        values["sequence"] = _probability(chosen)
    span = answer_span(written[-1].text, answer) if answer else None
    if span and (places := within([span], written[-1].ends)):
        values["answer"] = _probability([written[-1].logprobs[token] for token in places])
    return values


def _probability(logprobs: Sequence[float], mean: bool = False) -> float:
    """Their product, or its root: the geometric mean."""
    return math.exp(min(0.0, sum(logprobs) / (len(logprobs) if mean else 1)))


def beside(attempt: AttemptResult, others: Sequence[AttemptResult]) -> dict[str, float]:
    """Compute the signals that further samples of the same task give for ``attempt``'s answer; none without an answer
    or samples.

    A tool that was called with the same words proves nothing further, so for ``checked`` such samples do not count.
    """
    if attempt.answer is None or not others:
        return {}
    alike = [other for other in others if other.answer is not None and same(other.answer, attempt.answer)]
    calls = _calls(attempt)
    checked = [other for other in alike if other.grounded and not _calls(other) & calls]
    return {"agreement": len(alike) / len(others), "checked": len(checked) / len(others)}


def _calls(solved: AttemptResult) -> set[str]:
    return {f"{use.call.name} {sorted(use.call.arguments.items())}" for use in solved.tool_calls}
