"""How differently the program that sampled and the one that trains compute the same tokens of the same weights."""

import math
from collections.abc import Iterator, Mapping, Sequence

from agent0.errors import OperationError
from agent0.infra.training.launch.recipe import Recipe
from agent0.ports.training import Sample

TOKENS = 1_000
"""Sampled tokens that are enough to measure by."""


def enough(samples: Sequence[Sample]) -> list[Sample]:
    """The first of ``samples``, as many as have ``TOKENS`` sampled tokens together."""
    chosen, tokens = [], 0
    for sample in samples:
        if tokens >= TOKENS:
            break
        chosen.append(sample)
        tokens += sum(sample.trajectory.mask)
    return chosen


def differences(logprobs: Sequence[Sequence[float]], samples: Sequence[Sample]) -> Iterator[float]:
    """|log p - log p| in nats of every token of ``samples`` that was sampled; ``logprobs`` are the trainer's."""
    for row, sample in zip(logprobs, samples, strict=True):
        path = sample.trajectory
        yield from (abs(a - b) for a, b, own in zip(row, path.logprobs, path.mask, strict=True) if own)


def mismatch(gaps: Sequence[float], recipe: Recipe) -> dict[str, float]:
    """``mismatch_mean`` and ``mismatch_p99`` of ``gaps`` in nats, ``mismatch_share``: of tokens whose ratio is beyond
    the recipe's ``correction_cap``, or below 1 divided by it, and of how many tokens; nothing where there are none."""
    if not gaps:
        return {}
    ordered = sorted(gaps)
    beyond = sum(gap > math.log(recipe.correction_cap) for gap in ordered)
    return {
        "mismatch_mean": math.fsum(ordered) / len(ordered),
        "mismatch_p99": ordered[min(len(ordered) - 1, math.ceil(0.99 * len(ordered)) - 1)],
        "mismatch_share": beyond / len(ordered),
        "mismatch_tokens": float(len(ordered)),
    }


def check_mismatch(metrics: Mapping[str, float], recipe: Recipe) -> None:
    """Raises OperationError where a policy gradient would learn from samples that are not its own."""
    mean = metrics.get("mismatch_mean", 0.0)
    if recipe.optimised.ratio and mean > recipe.mismatch_limit:
        raise OperationError(
            "These samples cannot be trained on by a policy gradient.",
            f"Sampler and trainer differ by {mean:.2g} nats a token; run.training.<role>.mismatch_limit is "
            f"{recipe.mismatch_limit:g}.",
            "Sample and train in one format (run.<role>.precision, train_precision), or set "
            "run.training.<role>.objective to sft.",
        )
