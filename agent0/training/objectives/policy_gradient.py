"""Losses on tensors [rows, T]: policy gradients on what was sampled, likelihood on what was verified. Pure
functions."""

from typing import TYPE_CHECKING, Literal

from agent0.training.objectives import Loss, MinibatchRows

if TYPE_CHECKING:
    from torch import Tensor

Ratio = Literal["token", "attempt", "mean"]
"""Whose probability is divided by that with which it was sampled: each token's; an attempt's as one action, the product
of its tokens' (arXiv:2402.14740); or their geometric mean (arXiv:2507.18071, eq. 7)."""


def token_logprobs(logits: "Tensor", ids: "Tensor", temperature: float = 1.0) -> "Tensor":
    """Log-probability of each token given those before it, at ``temperature``.

    ``logits`` [rows, T, vocabulary], ``ids`` [rows, T]; result [rows, T], 0 at place 0, which nothing predicts. Double
    precision stays double; everything else is single.
    """
    import torch

    exact = logits if logits.dtype == torch.float64 else logits.float()
    logs = torch.log_softmax(exact[:, :-1] / temperature, dim=-1)
    gathered = logs.gather(-1, ids[:, 1:, None])[..., 0]
    return torch.nn.functional.pad(gathered, (1, 0))


def clipped_surrogate(rows: MinibatchRows, *, clip_low: float, ratio: Ratio = "token") -> Loss:
    """The clipped surrogate of PPO (Schulman et al. 2017, arXiv:1707.06347, eq. 7) token by token, with separate lower
    and upper bounds (Yu et al. 2025, arXiv:2503.14476, eq. 8), the upper one a sample's own.

    loss = - sum_i weight_i sum_t mask_it min(r_it A_i, clip(r_it, 1 - low, 1 + high_i) A_i),  r as ``ratio`` says

    Where the mask is 0 (prompt, tool output, forced prefix) nothing reaches the gradient.
    """
    sampled = rows.mask.bool()
    ratios = _ratios(rows.logprobs, rows.behaviour, sampled, ratio)
    bounded = ratios.clamp(min=1 - clip_low).minimum(1 + rows.clip_high[:, None])
    worth = rows.advantage[:, None]
    gain = (ratios * worth).minimum(bounded * worth)
    kept = (gain * by_token(rows.weight)).masked_fill(~sampled, 0.0)
    clipped = sampled & (bounded * worth < ratios * worth)
    below, above = (clipped & (worth < 0)).sum(), (clipped & (worth > 0)).sum()
    shares = {"clip_share": clipped.sum(), "clip_below": below, "clip_above": above}
    return Loss(-kept.sum(), {"ratio": (ratios.detach() * sampled).sum(), **shares})


def weighted_likelihood(rows: MinibatchRows, *, ratio: Ratio) -> Loss:
    """REINFORCE on stored samples with a truncated importance weight that gets no gradient (Ionides 2008).

    loss = - sum_i weight_i A_i sum_t mask_it min(r_it, 1 + high_i) new_it,  r as ``ratio`` says, held fixed

    On the first step r is 1 and this is REINFORCE itself.
    """
    sampled = rows.mask.bool()
    ratios = _ratios(rows.logprobs.detach(), rows.behaviour, sampled, ratio)
    bound = 1 + rows.clip_high[:, None]
    gain = ratios.minimum(bound) * rows.advantage[:, None] * rows.logprobs
    kept = (gain * by_token(rows.weight)).masked_fill(~sampled, 0.0)
    above = (sampled & (ratios > bound)).sum()
    return Loss(-kept.sum(), {"ratio": (ratios * sampled).sum(), "clip_share": above, "clip_above": above})


def divergence(logprobs: "Tensor", reference: "Tensor", mask: "Tensor", weight: "Tensor") -> "Tensor":
    """The low-variance estimate k3 of KL(new || reference) (Schulman 2020, "Approximating KL divergence"), a sum over
    masked tokens: exp(reference - new) - (reference - new) - 1, never negative. Shapes as in ``MinibatchRows``."""
    gap = (reference - logprobs).masked_fill(~mask.bool(), 0.0)
    return ((gap.exp() - gap - 1) * by_token(weight)).sum()


def entropy_bonus(entropy: "Tensor", mask: "Tensor", weight: "Tensor") -> "Tensor":
    """The entropies with which the masked tokens were chosen, times their rows' weights, summed: the bonus.
    ``entropy`` is [rows, T] in nats; the others are as in ``MinibatchRows``."""
    return (entropy.masked_fill(~mask.bool(), 0.0) * by_token(weight)).sum()


def likelihood(logprobs: "Tensor", mask: "Tensor", weight: "Tensor") -> "Tensor":
    """Negative log-likelihood of the masked tokens, summed; shapes as in ``MinibatchRows``."""
    return -(logprobs.masked_fill(~mask.bool(), 0.0) * weight[:, None]).sum()


def correction(reference: "Tensor", behaviour: "Tensor", mask: "Tensor", kind: str, cap: float) -> "Tensor":
    """Weights [rows, T] of tokens that one program sampled (``behaviour``) and another trains (``reference``, the same
    model): exp(reference - behaviour), cut at ``cap`` (``truncate``: truncated importance sampling, Ionides 2008;
    ``rollout_is=token`` of verl, ``token_truncate`` of TRL) or 0 beyond it (``mask``: TRL's ``token_mask``)."""
    weights = (reference - behaviour).masked_fill(~mask.bool(), 0.0).clamp(-20.0, 20.0).exp()
    return weights.clamp(max=cap) if kind == "truncate" else weights.masked_fill(weights > cap, 0.0)


def by_attempt(weight: "Tensor", mask: "Tensor", mean: float) -> "Tensor":
    """Weights [rows, 1] or [rows, T] with which each row counts alike however long it is, where sums are divided by
    tokens: ``weight`` times the ``mean`` number of masked tokens over the row's own."""
    return by_token(weight) * (mean / mask.sum(-1, keepdim=True).clamp(min=1))


def by_token(weight: "Tensor") -> "Tensor":
    """[rows, 1] or [rows, T] of ``weight`` [rows] or [rows, T]."""
    return weight[:, None] if weight.ndim == 1 else weight


def _ratios(logprobs: "Tensor", behaviour: "Tensor", sampled: "Tensor", ratio: Ratio) -> "Tensor":
    """[rows, T]. An attempt's is cut at exp(20), far beyond every bound, so that none is infinite."""
    gap = (logprobs - behaviour).masked_fill(~sampled, 0.0)
    if ratio == "token":
        return gap.exp()
    total = gap.sum(-1, keepdim=True)
    log = total.clamp(max=20.0) if ratio == "attempt" else total / sampled.sum(-1, keepdim=True).clamp(min=1)
    return log.expand_as(gap).exp()
