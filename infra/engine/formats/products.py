"""Products of states with a layer's matrix, by the format of numbers that the matrix is kept in, and how likely chosen
tokens are by that of a head.

What goes in and comes out is in single precision. ``int8`` is quantised symmetrically: the matrix by output when it is
packed, the states by row when they come (LLM.int8(), arXiv 2208.07339, section 2.2, without its outliers).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from agent0.infra.engine.formats.packed_need import LEARNED

CHUNK = 8192
"""Outputs that are computed at once: what comes of them stays in a processor's cache until it is scaled."""
LEAST = 1e-12
"""The scale of a row or an output that is all zeros."""


class FrozenProduct(torch.autograd.Function):  # type: ignore[misc] # torch gives it no types
    """The product of states [N, in] with a matrix that is not trained: gradients go on to the states alone."""

    @staticmethod
    def forward(context: Any, x: Tensor, product: "Brain | Int8") -> Tensor:
        """[N, out]."""
        context.product = product
        return product.multiplied(x)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """[N, in] from the gradient [N, out]."""
        return context.product.transposed(gradients[0]), None


class Product(Protocol):
    """Multiplies states by one matrix [in, out], whichever format of numbers that is kept in."""

    def __call__(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """``x`` [N, in] times the matrix, and its bias or ``add`` [N, out]: [N, out]."""
        ...

    def transposed(self, gradient: Tensor) -> Tensor:
        """``gradient`` [N, out] times the transposed matrix: [N, in]."""
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

    def transposed(self, gradient: Tensor) -> Tensor:
        """See ``Product``."""
        return gradient @ self.matrix.T


class Brain:
    """Multiplies in bfloat16 and adds up in single precision."""

    def __init__(self, matrix: Tensor, bias: Tensor | None = None) -> None:
        self._matrix, self._bias = matrix.bfloat16().contiguous(), bias

    def __call__(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """See ``Product``."""
        product, plus = FrozenProduct.apply(x, self), self._bias if add is None else add
        return product if plus is None else product.add_(plus)

    def multiplied(self, x: Tensor) -> Tensor:
        """``x`` [N, in] times the matrix: [N, out]."""
        return (x.bfloat16() @ self._matrix).float()

    def transposed(self, gradient: Tensor) -> Tensor:
        """See ``Product``."""
        return (gradient.bfloat16() @ self._matrix.T).float()


class Int8:
    """Multiplies whole numbers of 8 bits and adds up exactly."""

    def __init__(self, matrix: Tensor, bias: Tensor | None = None, gradients: torch.dtype = torch.float32) -> None:
        """``gradients``: the kind of numbers that gradients are multiplied in."""
        scale = matrix.abs().amax(0).clamp_min_(LEAST).div_(127)
        chunks = zip(matrix.split(CHUNK, 1), scale.split(CHUNK), strict=True)
        self._chunks = [((part / by).round_().to(torch.int8).contiguous(), by) for part, by in chunks]
        self._width, self._bias, self._gradients = matrix.shape[1], bias, gradients

    def __call__(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """See ``Product``."""
        product, plus = FrozenProduct.apply(x, self), self._bias if add is None else add
        return product if plus is None else product.add_(plus)

    def multiplied(self, x: Tensor) -> Tensor:
        """``x`` [N, in] times the matrix: [N, out]."""
        by = x.abs().amax(-1, keepdim=True).clamp_min_(LEAST).div_(127)
        whole = (x / by).round_().to(torch.int8)
        product, start = x.new_empty(len(x), self._width), 0
        for matrix, scale in self._chunks:
            part = product[:, start : start + len(scale)]
            torch.mul(torch._int_mm(whole, matrix), scale, out=part)
            start += len(scale)
        return product.mul_(by)

    def transposed(self, gradient: Tensor) -> Tensor:
        """See ``Product``. That states were rounded has no gradient (straight through, arXiv 1308.3432, section 4)."""
        number = self._gradients
        parts = gradient.split([len(scale) for _, scale in self._chunks], 1)
        sums = [
            (part * scale).to(number) @ matrix.to(number).T
            for part, (matrix, scale) in zip(parts, self._chunks, strict=True)
        ]
        return sum(sums[1:], sums[0]).float()


@dataclass(frozen=True)
class Adapted:
    """A product with a low-rank one beside it: ``a`` [in, rank], ``b`` [rank, out], its scale in one of them."""

    base: Product
    a: Tensor
    b: Tensor

    def __call__(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """See ``Product``."""
        return self.base(x, add).addmm_(x @ self.a, self.b)

    def transposed(self, gradient: Tensor) -> Tensor:
        """See ``Product``."""
        return self.base.transposed(gradient).addmm_(gradient @ self.b.T, self.a.T)


Packing = Callable[[Tensor, Tensor | None], Product]
"""From a matrix [in, out] and perhaps its bias [out]."""
FORMATS: dict[str, Packing] = {"fp32": Single, "bf16": Brain, "int8": Int8}


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
