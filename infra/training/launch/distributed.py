"""The processes that train together, one a GPU: accelerate knows who they are, and scales and casts for half precision.
Alone on a CPU it changes no bit."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from agent0.ports.training import Sample

SCALE = 1024.0
"""What half-precision losses are multiplied by at first; it adapts."""


class Team:
    """This process among those that ``accelerate launch`` started, or on its own.

    Each takes its share of a minibatch; gradients are summed over all before each step, so that every process takes
    the same step. Nothing is wrapped: LoRA's gradients are small enough to be summed in one go.
    """

    def __init__(self, device: str, precision: str) -> None:
        from accelerate import Accelerator
        from accelerate.utils import GradScalerKwargs

        mixed = "no" if precision == "fp32" else precision
        scaling = [GradScalerKwargs(init_scale=SCALE)] if mixed == "fp16" else []
        self._accelerator: Any = Accelerator(cpu=device == "cpu", mixed_precision=mixed, kwargs_handlers=scaling)
        self.size, self._place = int(self._accelerator.num_processes), int(self._accelerator.process_index)
        self.device = f"cuda:{self._accelerator.local_process_index}" if device == "cuda" and self.size > 1 else device

    @property
    def first(self) -> bool:
        """Whether this process keeps what is half done."""
        return self._place == 0

    @property
    def scaled(self) -> bool:
        """Whether losses are multiplied before their gradients are taken."""
        return self._accelerator.scaler is not None

    def prepare(self, optimizer: torch.optim.Optimizer) -> Any:
        """``optimizer``, which knows of the scale where there is one."""
        return self._accelerator.prepare_optimizer(optimizer) if self.scaled else optimizer

    def casting(self) -> AbstractContextManager[Any]:
        """Where a forward pass is computed in half precision, if that was asked for."""
        context: AbstractContextManager[Any] = self._accelerator.autocast()
        return context

    def share(self, batch: Sequence[Sample]) -> Sequence[Sample]:
        """This process's part of a minibatch; may be empty."""
        return batch[self._place :: self.size]

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of ``loss``."""
        self._accelerator.backward(loss)

    def clip(self, parameters: Sequence[torch.nn.Parameter], largest: float) -> Tensor:
        """Sum the gradients of all processes; their norm before it was cut to ``largest``."""
        if self.size > 1:
            grads = [
                torch.zeros_like(parameter) if parameter.grad is None else parameter.grad for parameter in parameters
            ]
            whole = self._accelerator.reduce(torch.cat([grad.flatten() for grad in grads]), "sum")
            for parameter, grad in zip(
                parameters, whole.split([parameter.numel() for parameter in parameters]), strict=True
            ):
                parameter.grad = grad.view_as(parameter)
        norm: Tensor = self._accelerator.clip_grad_norm_(parameters, largest)
        return norm

    def merged(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Numbers of this process, summed over all."""
        if self.size == 1:
            return dict(metrics)
        every: list[Any] = [None] * self.size
        torch.distributed.all_gather_object(every, dict(metrics))
        names = sorted({name for part in every for name in part})
        return {name: sum(part.get(name, 0.0) for part in every) for name in names}

    def begin(self) -> None:
        """A job begins: forget what the last one took of the GPU."""
        if self.device != "cpu":
            torch.cuda.reset_peak_memory_stats(self.device)

    def end(self) -> dict[str, float]:
        """A job is over: let go of its optimizer. On a GPU: ``peak_mib``, the most memory it held."""
        if self.scaled:
            self._accelerator.free_memory()
        peak = 0.0 if self.device == "cpu" else torch.cuda.max_memory_allocated(self.device) / 2**20
        return {"peak_mib": peak} if peak else {}
