"""What is recorded of each step of a training: sums over its tokens, and the record made of them."""

import math
from collections.abc import Mapping, Sequence

from torch import Tensor

from agent0.events.values import TrainingStep
from agent0.infra.training.launch.recipe import Kind
from agent0.infra.training.metrics import OF, learned_tokens
from agent0.ports.training import Sample

STEP = "step."
"""Prefix of sums over a step's tokens that are recorded with the step and are no metric of the whole training."""
MISMATCH = f"{STEP}mismatch"
MEANS = {
    "entropy_estimate": f"{STEP}entropy_estimate",
    "parent_kl": f"{STEP}parent_kl",
    "penalised_kl": f"{OF}kl",
    "mismatch": MISMATCH,
    "clip_below": f"{OF}clip_below",
    "clip_above": f"{OF}clip_above",
}
"""Fields of ``TrainingStep`` that are means over tokens, by the sums they are made of."""
STEEPEST = 20.0
"""Largest log-ratio that counts in a divergence, so that none is infinite; as the objectives cut theirs."""


def token_sums(
    logprobs: Tensor, sampler: Tensor, parent: Tensor | None, mask: Tensor, *, first: bool
) -> dict[str, Tensor]:
    """Sum what a step is recorded by over the tokens where ``mask`` is 1. All are [rows, T]: log-probabilities by the
    model in training, by the ``sampler``, and of the ``parent`` as the trainer computes them (None: not computed, so
    that the sampler's stand for them; at the ``first`` step the model is the parent)."""
    sampled = mask.bool()
    model = logprobs.detach()
    if parent is None and first:
        parent = model
    gap = (model - (sampler if parent is None else parent)).masked_fill(~sampled, 0.0).clamp(max=STEEPEST)
    sums = {
        "entropy_estimate": -model.masked_fill(~sampled, 0.0).sum(),
        "parent_kl": (gap.exp() - gap - 1).sum(),
    }
    if parent is not None:
        sums["mismatch"] = (parent - sampler).masked_fill(~sampled, 0.0).abs().sum()
    return {f"{STEP}{name}": value for name, value in sums.items()}


def step_record(
    kind: Kind, batch: Sequence[Sample], sums: Mapping[str, float], loss: float, norm: float, learning_rate: float
) -> TrainingStep:
    """The record of a step on ``batch``: ``sums`` over its tokens (those of ``MEANS``), its loss and the norm of its
    gradient. A mean that is no finite number is left out."""
    tokens = int(sum(learned_tokens(batch).values()))
    means = {name: sums[source] / max(1, tokens) for name, source in MEANS.items() if source in sums}
    return TrainingStep(
        kind=kind,
        loss=_finite(loss),
        gradient_norm=_finite(norm),
        learning_rate=learning_rate,
        tokens=tokens,
        **{name: mean for name, mean in means.items() if math.isfinite(mean)},
        skipped=not (math.isfinite(loss) and math.isfinite(norm)),
    )


def of_training(sums: Mapping[str, float]) -> dict[str, float]:
    """Those of ``sums`` that are metrics of the whole training, too."""
    return {name: value for name, value in sums.items() if not name.startswith(STEP)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
