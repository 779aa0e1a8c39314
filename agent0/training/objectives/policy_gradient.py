"""Losses on tensors [rows, T]: policy gradients on what was sampled, likelihood on what was verified. Pure
functions."""

from typing import TYPE_CHECKING

from agent0.training.objectives import Loss, MinibatchRows

if TYPE_CHECKING:
    from torch import Tensor


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


def clipped_surrogate(
    logprobs: "Tensor",
    behaviour: "Tensor",
    mask: "Tensor",
    advantage: "Tensor",
    weight: "Tensor",
    *,
    clip_low: float,
    clip_high: "Tensor",
) -> Loss:
    """The clipped surrogate of PPO (Schulman et al. 2017, arXiv:1707.06347, eq. 7) token by token, with separate lower
    and upper bounds (Yu et al. 2025, arXiv:2503.14476, eq. 8), the upper one a sample's own.

    loss = - sum_i weight_i sum_t mask_it min(r_it A_i, clip(r_it, 1 - low, 1 + high_i) A_i),  r = exp(new - behaviour)

    ``logprobs``, ``behaviour``, ``mask`` are [rows, T]; ``advantage``, ``weight``, ``clip_high`` are [rows], ``weight``
    [rows, T] where tokens have weights of their own. Where ``mask`` is 0 (prompt, tool output, forced prefix) nothing
    reaches the gradient.
    """
    sampled = mask.bool()
    ratio = _ratio(logprobs, behaviour, sampled)
    bounded = ratio.clamp(min=1 - clip_low).minimum(1 + clip_high[:, None])
    worth = advantage[:, None]
    gain = (ratio * worth).minimum(bounded * worth)
    kept = (gain * _by_token(weight)).masked_fill(~sampled, 0.0)
    clipped = sampled & (bounded * worth < ratio * worth)
    return Loss(-kept.sum(), {"ratio": (ratio.detach() * sampled).sum(), "clip_share": clipped.sum()})


def weighted_likelihood(rows: MinibatchRows) -> Loss:
    """REINFORCE on stored samples with a truncated importance weight that gets no gradient (Ionides 2008).

    loss = - sum_i weight_i min(r_i, 1 + high_i) A_i sum_t mask_it new_it,  r held fixed

    r_i = exp(sum_t mask_it (new_it - behaviour_it)) is the ratio of a whole attempt, which is one action
    (arXiv:2402.14740). On the first step r is 1 and this is REINFORCE itself.
    """
    sampled = rows.mask.bool()
    ratio = _ratio(rows.logprobs.detach(), rows.behaviour, sampled, sequence=True)
    bound = 1 + rows.clip_high[:, None]
    gain = ratio.minimum(bound) * rows.advantage[:, None] * rows.logprobs
    kept = (gain * _by_token(rows.weight)).masked_fill(~sampled, 0.0)
    return Loss(-kept.sum(), {"ratio": (ratio * sampled).sum(), "clip_share": (sampled & (ratio > bound)).sum()})


def divergence(logprobs: "Tensor", reference: "Tensor", mask: "Tensor", weight: "Tensor") -> "Tensor":
    """The low-variance estimate k3 of KL(new || reference) (Schulman 2020, "Approximating KL divergence"), a sum over
    masked tokens: exp(reference - new) - (reference - new) - 1, which is never negative. Shapes as above."""
    gap = (reference - logprobs).masked_fill(~mask.bool(), 0.0)
    return ((gap.exp() - gap - 1) * _by_token(weight)).sum()


def entropy_bonus(entropy: "Tensor", mask: "Tensor", weight: "Tensor") -> "Tensor":
    """The entropies with which the masked tokens were chosen, times their rows' weights, summed: the bonus.
    ``entropy`` is [rows, T] in nats; shapes as for ``clipped_surrogate``."""
    return (entropy.masked_fill(~mask.bool(), 0.0) * _by_token(weight)).sum()


def likelihood(logprobs: "Tensor", mask: "Tensor", weight: "Tensor") -> "Tensor":
    """Negative log-likelihood of the masked tokens, summed; shapes as for ``clipped_surrogate``."""
    return -(logprobs.masked_fill(~mask.bool(), 0.0) * weight[:, None]).sum()


def correction(reference: "Tensor", behaviour: "Tensor", mask: "Tensor", kind: str, cap: float) -> "Tensor":
    """Weights [rows, T] of tokens that one program sampled (``behaviour``) and another trains (``reference``, the same
    model): exp(reference - behaviour), cut at ``cap`` (``truncate``: truncated importance sampling, Ionides 2008;
    ``rollout_is=token`` of verl, ``token_truncate`` of TRL) or 0 beyond it (``mask``: TRL's ``token_mask``)."""
    weights = (reference - behaviour).masked_fill(~mask.bool(), 0.0).clamp(-20.0, 20.0).exp()
    return weights.clamp(max=cap) if kind == "truncate" else weights.masked_fill(weights > cap, 0.0)


def _by_token(weight: "Tensor") -> "Tensor":
    """[rows, 1] or [rows, T] of ``weight`` [rows] or [rows, T]."""
    return weight[:, None] if weight.ndim == 1 else weight


def _ratio(logprobs: "Tensor", behaviour: "Tensor", sampled: "Tensor", sequence: bool = False) -> "Tensor":
    """[rows, T]. A sequence's is cut at exp(20), far beyond every bound, so that none is infinite."""
    gap = (logprobs - behaviour).masked_fill(~sampled, 0.0)
    return gap.sum(-1, keepdim=True).clamp(max=20.0).expand_as(gap).exp() if sequence else gap.exp()
