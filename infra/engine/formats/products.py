"""Products of states with a layer's matrix, by the format of numbers that the matrix is kept in.

What goes in and comes out is in single precision. ``int8`` is quantised symmetrically: the matrix by output when it is
packed, the states by row when they come (LLM.int8(), arXiv 2208.07339, section 2.2, without its outliers).
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

CHUNK = 8192
"""Outputs that are computed at once: what comes of them stays in a processor's cache until it is scaled."""
LEAST = 1e-12
"""The scale of a row or an output that is all zeros."""


class Product(Protocol):
    """Multiplies states by one matrix [in, out], whichever format of numbers that is kept in."""

    def __call__(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """``x`` [N, in] times the matrix, and its bias or ``add`` [N, out]: [N, out]."""
        ...


@dataclass(frozen=True)
class Single:
    """Multiplies in single precision; differentiable where the matrix is."""

    matrix: Tensor
    bias: Tensor | None = None

    def __call__(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """See ``Product``."""
        plus = self.bias if add is None else add
        return x @ self.matrix if plus is None else torch.addmm(plus, x, self.matrix)


class Brain:
    """Multiplies in bfloat16 and adds up in single precision."""

    def __init__(self, matrix: Tensor, bias: Tensor | None = None) -> None:
        self._matrix, self._bias = matrix.bfloat16().contiguous(), bias

    def __call__(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """See ``Product``."""
        product, plus = (x.bfloat16() @ self._matrix).float(), self._bias if add is None else add
        return product if plus is None else product.add_(plus)


class Int8:
    """Multiplies whole numbers of 8 bits and adds up exactly."""

    def __init__(self, matrix: Tensor, bias: Tensor | None = None) -> None:
        scale = matrix.abs().amax(0).clamp_min_(LEAST).div_(127)
        chunks = zip(matrix.split(CHUNK, 1), scale.split(CHUNK), strict=True)
        self._chunks = [((part / by).round_().to(torch.int8).contiguous(), by) for part, by in chunks]
        self._width, self._bias = matrix.shape[1], bias

    def __call__(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """See ``Product``."""
        by = x.abs().amax(-1, keepdim=True).clamp_min_(LEAST).div_(127)
        whole = (x / by).round_().to(torch.int8)
        product, start = x.new_empty(len(x), self._width), 0
        for matrix, scale in self._chunks:
            part = product[:, start : start + len(scale)]
            torch.mul(torch._int_mm(whole, matrix), scale, out=part)
            start += len(scale)
        product.mul_(by)
        plus = self._bias if add is None else add
        return product if plus is None else product.add_(plus)


@dataclass(frozen=True)
class Adapted:
    """A product with a low-rank one beside it: ``a`` [in, rank], ``b`` [rank, out], its scale in one of them."""

    base: Product
    a: Tensor
    b: Tensor

    def __call__(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """See ``Product``."""
        return self.base(x, add).addmm_(x @ self.a, self.b)


Packing = Callable[[Tensor, Tensor | None], Product]
"""From a matrix [in, out] and perhaps its bias [out]."""
FORMATS: dict[str, Packing] = {"fp32": Single, "bf16": Brain, "int8": Int8}


def quickest(width: int = 896, wider: int = 4864, rows: int = 64, tries: int = 5) -> str:
    """The format in which this processor multiplies ``rows`` states of ``width`` numbers by a matrix to ``wider``
    soonest, measured here: neither is always right, and one that is emulated is a hundred times slower."""
    states, matrix = torch.randn(rows, width), torch.randn(width, wider)
    seconds = {name: _shortest(packing(matrix, None), states, tries) for name, packing in FORMATS.items()}
    return min(seconds, key=lambda name: seconds[name])


def _shortest(product: Product, states: Tensor, tries: int) -> float:
    product(states)
    shortest = math.inf
    for _ in range(tries):
        start = time.perf_counter()
        product(states)
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


def beside(pairs: Sequence[tuple[Tensor, Tensor] | None], widths: Sequence[int]) -> tuple[Tensor, Tensor] | None:
    """One low-rank product beside matrices that are one, from those beside each, (a [in, r], b [r, out]) or None;
    ``widths`` are their outputs."""
    present = [pair for pair in pairs if pair is not None]
    if not present:
        return None
    blocks = [
        present[0][1].new_zeros(0, width) if pair is None else pair[1]
        for pair, width in zip(pairs, widths, strict=True)
    ]
    return torch.cat([a for a, _ in present], 1), torch.block_diag(*blocks)
