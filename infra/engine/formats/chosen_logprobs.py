"""How likely chosen tokens are under a head that is not trained: logits of a large vocabulary are held for a few tokens
at a time, and never computed twice."""

from typing import Any

import torch
from torch import Tensor

from agent0.infra.engine.formats.packed_need import LEARNED
from agent0.infra.engine.formats.products import Product


class ChosenLogprobs(torch.autograd.Function):  # type: ignore[misc] # torch gives it no types
    """log softmax(head(states) / heat) at ``tokens``. Its gradient to a state, (one at the token - softmax) times the
    transposed head / heat, is computed with it, and only scaled on the way back."""

    @staticmethod
    def forward(context: Any, states: Tensor, head: Product, tokens: Tensor, heat: float) -> Tensor:
        """[n] from ``states`` [n, hidden] and ``tokens`` [n]."""
        learns = context.needs_input_grad[0]
        logprobs, gradients = [], [states.new_zeros(0, states.shape[1])]
        for part, chosen in zip(states.split(LEARNED), tokens.split(LEARNED), strict=True):
            logs = torch.log_softmax(head(part).div_(heat), -1)
            logprobs.append(logs.gather(-1, chosen[:, None])[:, 0])
            if learns:
                down = logs.exp_().neg_()
                down.scatter_add_(1, chosen[:, None], torch.ones_like(chosen[:, None], dtype=down.dtype))
                gradients.append(head.transposed(down).div_(heat))
        context.save_for_backward(torch.cat(gradients))
        return torch.cat(logprobs)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        """[n, hidden] from the gradient [n]."""
        (kept,) = context.saved_tensors
        return kept * gradients[0][:, None], None, None, None
