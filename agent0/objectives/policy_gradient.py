"""Policy gradient on what was sampled, likelihood on what was verified. Pure functions on tensors [rows, T]."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Surrogate:
    """``loss`` is a sum over tokens (divide by the tokens of the whole step); the rest are counts for metrics."""

    loss: Tensor
    ratio_sum: Tensor
    clipped: Tensor


def token_logprobs(logits: Tensor, ids: Tensor, temperature: float = 1.0) -> Tensor:
    """Log-probability of each token given those before it, at ``temperature``.

    ``logits`` [rows, T, vocabulary], ``ids`` [rows, T]; result [rows, T], 0 at place 0, which nothing predicts.
    """
    logs = torch.log_softmax(logits[:, :-1].float() / temperature, dim=-1)
    found = logs.gather(-1, ids[:, 1:, None])[..., 0]
    return torch.nn.functional.pad(found, (1, 0))


def clipped_surrogate(
    logprobs: Tensor,
    behaviour: Tensor,
    mask: Tensor,
    advantage: Tensor,
    weight: Tensor,
    *,
    clip_low: float,
    clip_high: Tensor,
) -> Surrogate:
    """The clipped surrogate of PPO (Schulman et al. 2017, arXiv:1707.06347, eq. 7) token by token, with separate lower
    and upper bounds (Yu et al. 2025, arXiv:2503.14476, eq. 8), the upper one a sample's own.

    loss = - sum_i weight_i sum_t mask_it min(r_it A_i, clip(r_it, 1 - low, 1 + high_i) A_i),  r = exp(new - behaviour)

    ``logprobs``, ``behaviour``, ``mask`` are [rows, T]; ``advantage``, ``weight``, ``clip_high`` are [rows]. Where
    ``mask`` is 0 (prompt, tool output, forced prefix) nothing reaches the gradient.
    """
    own = mask.bool()
    ratio = torch.exp(torch.where(own, logprobs - behaviour, torch.zeros_like(logprobs)))
    bounded = ratio.clamp(min=1 - clip_low).minimum(1 + clip_high[:, None])
    worth = advantage[:, None]
    gain = torch.minimum(ratio * worth, bounded * worth)
    kept = torch.where(own, gain * weight[:, None], torch.zeros_like(gain))
    clipped = own & (bounded * worth < ratio * worth)
    return Surrogate(-kept.sum(), (ratio.detach() * own).sum(), clipped.sum())


def likelihood(logprobs: Tensor, mask: Tensor, weight: Tensor) -> Tensor:
    """Negative log-likelihood of the masked tokens: a sum; shapes as above."""
    return -(torch.where(mask.bool(), logprobs, torch.zeros_like(logprobs)) * weight[:, None]).sum()
