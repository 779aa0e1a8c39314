"""What all trajectories of a minibatch begin with, such as instructions: computed once, forward and backward."""

from collections.abc import Sequence

import torch
from torch import Tensor

from agent0.events.values import Trajectory
from agent0.infra.engine.qwen2_functional import Weights, hidden, packed

SHORTEST = 32
"""Tokens below which it is not worth a pass of its own."""


def shared_length(paths: Sequence[Trajectory]) -> int:
    """Tokens that all ``paths`` begin with and none learns, without the one that the first learned token is predicted
    from; 0 where they are too few."""
    contexts = [path.token_ids[: max(0, (*path.mask, 1).index(1) - 1)] for path in paths]
    places = enumerate(zip(*contexts, strict=False))
    length = next((place for place, tokens in places if len({*tokens}) > 1), min(map(len, contexts), default=0))
    return length if length >= SHORTEST and len(paths) > 1 else 0


class SharedPrefix:
    """Keys and values of each layer of tokens that stand before every row. Gradients that reach them are gathered, and
    taken back through the tokens at once."""

    def __init__(self, weights: Weights, ids: Sequence[int], *, twice: bool = False) -> None:
        """``twice``: what a gradient needs of a layer is computed again rather than kept."""
        self.length = len(ids)
        row, layers = torch.tensor([ids]), list[Tensor]()
        hidden(weights, packed(row, torch.ones_like(row)), layers, twice=twice)
        self._outputs = [*layers]  # with ``twice`` more are appended on the way back
        self.layers = [layer.detach().requires_grad_(layer.requires_grad) for layer in layers]
        """[1, 2 groups, tokens, width] each."""

    def backward(self) -> None:
        """Take the gradients back to what the weights were made of."""
        reached = [
            (layer, leaf.grad) for layer, leaf in zip(self._outputs, self.layers, strict=True) if leaf.grad is not None
        ]
        if reached:
            torch.autograd.backward(*map(list, zip(*reached, strict=True)))
