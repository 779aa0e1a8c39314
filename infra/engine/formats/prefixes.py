"""Keys and values of texts that were read or written, kept between calls: the next turn of a conversation, and the next
task behind the same instructions, are read from where they differ.

By blocks that are named by all tokens up to their end, as in vLLM (Kwon et al. 2023, arXiv 2309.06180, section 4.4).
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from agent0.infra.engine.formats.packed_need import BLOCKS

BLOCK = 32
"""Tokens of a block."""


@dataclass(frozen=True, eq=False)
class KeptBlock:
    """Keys and values [layers, 2 groups, BLOCK, width] of tokens; ``number`` stands for them and all before them."""

    number: int
    tensor: Tensor


@dataclass(frozen=True)
class Prefix:
    """A text that stands before so many ``rows``: its keys and values in each of ``layers``, [1, 2 groups, length,
    width]; none of an empty one."""

    rows: int
    layers: Sequence[Tensor]

    @property
    def length(self) -> int:
        """Its tokens."""
        return length_of(self.layers)


class Prefixes:
    """The blocks, each under the number of the one before it and its own tokens; the first under the name of the
    adapter that computed it (``adapter``, which whoever reads or keeps sets before). They are of ``budget`` bytes at
    most: those used longest ago go first."""

    def __init__(self, budget: int = BLOCKS) -> None:
        self.adapter = ""
        self._budget, self._size, self._count = budget, 0, 0
        self._blocks: OrderedDict[tuple[int | str, tuple[int, ...]], KeptBlock] = OrderedDict()

    def longest(self, ids: Sequence[int]) -> tuple[KeptBlock, ...]:
        """The blocks that ``ids`` begins with; at least its last token is beyond them."""
        chain: list[KeptBlock] = []
        keys = []
        for at in range(0, (len(ids) - 1) // BLOCK * BLOCK, BLOCK):
            keys.append((chain[-1].number if chain else self.adapter, tuple(ids[at : at + BLOCK])))
            block = self._blocks.get(keys[-1])
            if block is None:
                keys.pop()
                break
            chain.append(block)
        for key in reversed(keys):  # a block without those before it is of no use: they go last
            self._blocks.move_to_end(key)
        return tuple(chain)

    def keep(self, ids: Sequence[int], layers: Sequence[Tensor], start: int = 0) -> None:
        """Keep what was computed of ``ids``: keys and values [2 groups, tokens, width] a layer, of those from ``start``
        on."""
        before: int | str = self.adapter
        for at in range(0, len(ids) // BLOCK * BLOCK, BLOCK):
            key = (before, tuple(ids[at : at + BLOCK]))
            if key not in self._blocks and at >= start:
                self._add(key, torch.stack([layer[:, at - start : at - start + BLOCK] for layer in layers]))
            if key not in self._blocks:
                return
            before = self._blocks[key].number

    def _add(self, key: tuple[int | str, tuple[int, ...]], tensor: Tensor) -> None:
        self._count += 1
        self._blocks[key] = KeptBlock(self._count, tensor)
        self._size += tensor.nbytes
        while self._size > self._budget:
            _, block = self._blocks.popitem(last=False)
            self._size -= block.tensor.nbytes


def joined(chain: Sequence[KeptBlock]) -> list[Tensor]:
    """Keys and values [1, 2 groups, tokens, width] of each layer of the blocks in ``chain``; nothing of none."""
    return list(torch.cat([block.tensor for block in chain], 2)[:, None]) if chain else []


def length_of(kept: Sequence[Tensor]) -> int:
    """Tokens that layers [1, 2 groups, tokens, width] were kept of, 0 where there are none."""
    return kept[0].shape[2] if kept else 0
