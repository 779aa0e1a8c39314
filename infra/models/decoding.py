"""Decoding with a small Qwen2 that is a function: equal prompts are read once, keys and values stay where they are, and
rows that ended make room for what is still written."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import embedding, pad, scaled_dot_product_attention

from infra.models.qwen import Shape, Weights, gone_on, heads_of, hidden, normed, packed, turns
from infra.models.sampling import Batch

ROOM = 64
"""Tokens that room is made for at a time."""
TOKENS = 1 << 14
"""Of prompts that are read at once: what bounds the memory it takes."""
CROWDED = 0.85
"""Share of rows still written below which the others are dropped: dropping copies what all have kept."""


class Cache:
    """Keys and values of every layer, and of how many tokens of each row they are."""

    def __init__(self, shape: Shape, kept: Sequence[Tensor], lengths: Tensor) -> None:
        """``kept`` is [rows, 2 groups, T, width] a layer."""
        self._shape, self._held = shape, list(kept)
        self.lengths, self.longest = lengths, int(lengths.max())
        self._room, self._mask, self._next = 0, torch.empty(0), torch.empty(0)
        self._widen()

    def place(self) -> None:
        """Make room for another token a row, which is seen from now on."""
        if self.longest == self._room:
            self._widen()
        rows, both = len(self.lengths), 2 * self._shape.groups
        self._mask[torch.arange(rows), self.lengths] = 0.0
        self._next = (torch.arange(rows * both).view(rows, both) * self._room + self.lengths[:, None]).flatten()
        self.lengths, self.longest = self.lengths + 1, self.longest + 1

    def attend(self, layer: int, heads: Tensor) -> Tensor:
        """Put the keys and values of ``heads`` [rows, heads + 2 groups, width] into their place; what the queries
        find, [rows, heads x width]."""
        shape, rows, held = self._shape, len(heads), self._held[layer]
        held.view(-1, shape.width).index_copy_(0, self._next, heads[:, shape.heads :].reshape(-1, shape.width))
        k, v = torch.split(held[:, :, : self.longest], shape.groups, 1)
        q = heads[:, : shape.heads].view(rows, shape.groups, -1, shape.width)  # the queries of a group are like tokens
        mask = self._mask[:, None, None, : self.longest]
        return scaled_dot_product_attention(q, k, v, attn_mask=mask).reshape(rows, -1)

    def keep(self, places: Tensor) -> None:
        """Hold on to these rows only."""
        self._held = [one[places] for one in self._held]
        self._mask, self.lengths = self._mask[places], self.lengths[places]
        self.longest = int(self.lengths.max())

    def _widen(self) -> None:
        self._room = self.longest + ROOM
        self._held = [pad(one, (0, 0, 0, self._room - one.shape[2])) for one in self._held]
        beyond = torch.arange(self._room) >= self.lengths[:, None]
        self._mask = torch.zeros(beyond.shape).masked_fill_(beyond, -torch.inf)


def write(weights: Weights, prompts: Sequence[Sequence[int]], batch: Batch) -> None:
    """Decode ``batch``, whose rows go on from ``prompts``, to their ends."""
    cache, found = read(weights, prompts)
    while True:
        chosen, alive = batch.take(found @ weights.head)
        if not alive:
            return
        if len(alive) < CROWDED * len(batch):
            places = torch.tensor(alive)
            batch.keep(places)
            cache.keep(places)
            chosen = chosen[places]
        found = step(weights, chosen, cache)


def read(weights: Weights, prompts: Sequence[Sequence[int]]) -> tuple[Cache, Tensor]:
    """What is kept of ``prompts``, and what the head reads at their ends, [rows, hidden]."""
    places = {prompt: place for place, prompt in enumerate(dict.fromkeys(map(tuple, prompts)))}
    unique, longest = list(places), max(map(len, places))
    few = max(1, TOKENS // longest)
    parts = [_read(weights, unique[at : at + few], longest) for at in range(0, len(unique), few)]
    which = torch.tensor([places[tuple(prompt)] for prompt in prompts])
    kept = [torch.cat(layer)[which] for layer in zip(*(kept for kept, _ in parts), strict=True)]
    lengths = torch.tensor([len(prompt) for prompt in prompts])
    return Cache(weights.shape, kept, lengths), torch.cat([ends for _, ends in parts])[which]


def _read(weights: Weights, prompts: Sequence[Sequence[int]], longest: int) -> tuple[list[Tensor], Tensor]:
    ids = torch.tensor([[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts])
    lengths, kept = torch.tensor([len(prompt) for prompt in prompts]), list[Tensor]()
    found = hidden(weights, packed(ids, (torch.arange(longest) < lengths[:, None]).long()), kept)
    wide = [pad(one, (0, 0, 0, longest - one.shape[2])) for one in kept]
    return wide, found[lengths.cumsum(0) - 1]


def step(weights: Weights, ids: Tensor, cache: Cache) -> Tensor:
    """Go on by one token a row, ``ids`` [rows]: what the head reads then, [rows, hidden]."""
    shape = weights.shape
    x, by = embedding(ids, weights.embed), turns(shape, cache.longest + 1)[cache.lengths]
    cache.place()
    for number, layer in enumerate(weights.layers):
        x = gone_on(shape, layer, x, cache.attend(number, heads_of(shape, layer, x, by)))
    return normed(x, shape.eps)
