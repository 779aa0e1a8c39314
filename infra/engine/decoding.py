"""Decoding with a small Qwen2 that is a function: equal prompts are read once, keys and values stay where they are, and
rows that ended make room for what is still written."""

from collections.abc import Collection, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from agent0.infra.engine.memory_need import READ, ROOM
from agent0.infra.engine.qwen2_functional import Shape, Weights, gone_on, heads_of, hidden, normed, packed, turns
from agent0.infra.engine.sampling import Batch, Row

SHARED = 32
"""Tokens that prompts must have in common for that to be read apart."""
APART = 64
"""Tokens by which prompts may differ that are gone on from side by side, beyond twice the length of the shortest."""
CROWDED = 0.85
"""Share of rows still written below which the others are dropped: dropping copies what all have kept."""


class Cache:
    """Keys and values of every layer, [2, rows x groups, room, width], and of how many tokens of each row they are."""

    def __init__(self, shape: Shape, kept: Sequence[Tensor], lengths: Tensor) -> None:
        """``kept`` is [rows, 2 groups, T, width] a layer."""
        self._shape, self._room = shape, kept[0].shape[2]
        self._held = [torch.stack(torch.split(tensor, shape.groups, 1)).flatten(1, 2) for tensor in kept]
        self.lengths, self.longest = lengths, int(lengths.max())
        self._hidden = self._mask = self._next = torch.empty(0)
        self._widen()

    def grow(self) -> None:
        """Make room for another token a row, which is seen from now on."""
        if self.longest == self._room:
            self._widen()
        rows, groups = len(self.lengths), self._shape.groups
        device = self.lengths.device
        self._hidden[torch.arange(rows, device=device), self.lengths] = 0.0
        heads = torch.arange(2 * rows * groups, device=device).view(2, rows, groups).transpose(0, 1)
        self._next = (heads * self._room + self.lengths[:, None, None]).flatten()
        self.lengths, self.longest = self.lengths + 1, self.longest + 1
        self._mask = self._hidden[:, : self.longest].repeat_interleave(groups, 0)[:, None]

    def attend(self, layer: int, heads: Tensor) -> Tensor:
        """Put the keys and values of ``heads`` [rows, heads + 2 groups, width] into their place; what the queries
        find, [rows, heads x width]."""
        shape, stored = self._shape, self._held[layer]
        new = heads[:, shape.heads :].reshape(-1, shape.width)
        stored.view(-1, shape.width).index_copy_(0, self._next, new)
        k, v = stored[:, :, : self.longest].unbind()
        q = heads[:, : shape.heads].reshape(len(k), -1, shape.width)
        scores = torch.baddbmm(self._mask, q, k.mT, alpha=shape.width**-0.5)
        return torch.bmm(torch.softmax(scores, -1), v).view(len(heads), -1)

    def keep(self, places: Tensor) -> None:
        """Hold on to these rows only."""
        rows, groups = len(self.lengths), self._shape.groups
        self._held = [tensor.view(2, rows, groups, *tensor.shape[2:])[:, places].flatten(1, 2) for tensor in self._held]
        self._hidden, self.lengths = self._hidden[places], self.lengths[places]
        self.longest = int(self.lengths.max()) if len(places) else 0

    def join(self, other: "Cache") -> "Cache":
        """This, with the rows of ``other`` behind its own."""
        room = max(self._room, other._room)
        self._held = [
            torch.cat([pad(tensor, (0, 0, 0, room - self._room)), pad(others, (0, 0, 0, room - other._room))], 1)
            for tensor, others in zip(self._held, other._held, strict=True)
        ]
        self._room, self.lengths = room, torch.cat([self.lengths, other.lengths])
        self.longest = max(self.longest, other.longest)
        self._hide()
        return self

    def _widen(self) -> None:
        more = self.longest + ROOM - self._room
        self._held = [pad(tensor, (0, 0, 0, more)) for tensor in self._held]
        self._room += more
        self._hide()

    def _hide(self) -> None:
        """Nothing is seen of what lies beyond a row's tokens."""
        beyond = torch.arange(self._room, device=self.lengths.device) >= self.lengths[:, None]
        self._hidden = torch.zeros(beyond.shape, device=beyond.device).masked_fill_(beyond, -torch.inf)


def write(
    weights: Weights, rows: Sequence[Row], stops: Collection[int], slots: int = 0, *, shares: bool = False
) -> None:
    """Decode ``rows`` to their ends: one of ``stops``, or as many tokens as they have room for; at most ``slots`` at
    once, where that is not 0. ``shares``: what all prompts begin with is read once, which rounds otherwise."""
    for part in alike(sorted(rows, key=lambda row: len(row.written.prompt))):
        _write(weights, list(part), stops, slots or len(part), shares=shares)


def alike(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Rows in parts whose prompts, in order of length, are not much longer than the first: a row costs what the longest
    beside it does."""
    start = 0
    for index, row in enumerate(rows):
        if len(row.written.prompt) > 2 * len(rows[start].written.prompt) + APART:
            yield rows[start:index]
            start = index
    yield rows[start:]


def _write(weights: Weights, rows: list[Row], stops: Collection[int], slots: int, *, shares: bool) -> None:
    """Rows that end make room for those that wait."""
    device, waiting = str(weights.embed.device), rows[slots:]
    batch, (cache, states) = Batch(rows[:slots], stops, device), read(weights, _prompts(rows[:slots]), shares=shares)
    while True:
        chosen, alive = batch.take(weights.head(states))
        if not alive and not waiting:
            return
        if len(alive) < CROWDED * len(batch):
            places = torch.tensor(alive, dtype=torch.long, device=chosen.device)
            batch.keep(places)
            cache.keep(places)
            chosen = chosen[places]
        if alive:
            states = step(weights, chosen, cache)
        if waiting and len(alive) == len(batch) < slots:
            fresh, waiting = waiting[: slots - len(alive)], waiting[slots - len(alive) :]
            others, ends = read(weights, _prompts(fresh), shares=shares)
            batch = Batch([*batch.rows, *fresh], stops, device)
            cache, states = (cache.join(others), torch.cat([states, ends])) if alive else (others, ends)


def _prompts(rows: Sequence[Row]) -> list[list[int]]:
    return [row.written.prompt for row in rows]


def read(weights: Weights, prompts: Sequence[Sequence[int]], *, shares: bool = False) -> tuple[Cache, Tensor]:
    """What is kept of ``prompts``, and what the head reads at their ends, [rows, hidden]; ``shares`` as for
    ``write``."""
    places = {prompt: index for index, prompt in enumerate(dict.fromkeys(map(tuple, prompts)))}
    unique, device = list(places), weights.embed.device
    before = _common(unique) if shares else 0
    prefix = _read(weights, [unique[0][:before]], before, ())[0] if before else []
    rest, longest = [prompt[before:] for prompt in unique], max(map(len, unique)) - before
    few = max(1, READ // longest)
    parts = [_read(weights, rest[at : at + few], longest, prefix) for at in range(0, len(rest), few)]
    which = torch.tensor([places[tuple(prompt)] for prompt in prompts], device=device)
    kept = [torch.cat(layer)[which] for layer in zip(*(kept for kept, _ in parts), strict=True)]
    if prefix:
        kept = [
            torch.cat([p.expand(len(which), -1, -1, -1), tensor], 2) for p, tensor in zip(prefix, kept, strict=True)
        ]
    lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
    return Cache(weights.shape, kept, lengths), torch.cat([ends for _, ends in parts])[which]


def _common(prompts: Sequence[tuple[int, ...]]) -> int:
    """How many tokens all ``prompts`` begin with, so that each has another one behind; 0 where that is not worth it."""
    first, last = min(prompts), max(prompts)
    differs = next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    length = min(differs, min(map(len, prompts)) - 1)
    return length if length >= SHARED and len(prompts) > 1 else 0


def _read(
    weights: Weights, prompts: Sequence[Sequence[int]], longest: int, prefix: Sequence[Tensor]
) -> tuple[list[Tensor], Tensor]:
    device, kept = weights.embed.device, list[Tensor]()
    ids = torch.tensor([[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts], device=device)
    lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
    text = packed(ids, (torch.arange(longest, device=device) < lengths[:, None]).long())
    states = hidden(weights, text, kept, prefix=prefix)
    wide = [pad(tensor, (0, 0, 0, longest - tensor.shape[2])) for tensor in kept]
    return wide, states[lengths.cumsum(0) - 1]


def step(weights: Weights, ids: Tensor, cache: Cache) -> Tensor:
    """Go on by one token a row, ``ids`` [rows]: what the head reads then, [rows, hidden]."""
    shape = weights.shape
    x, by = weights.embedded(ids), turns(shape, cache.longest + 1, ids.device)[cache.lengths]
    cache.grow()
    for number, layer in enumerate(weights.layers):
        x = gone_on(shape, layer, x, cache.attend(number, heads_of(shape, layer, x, by)))
    return normed(x, shape.eps)
