"""A small model whose own weights are trained, in the place of one that peft holds an adapter in."""

from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor, nn, no_grad

from agent0.errors import OperationError
from agent0.infra.engine.adapter import Adapter
from agent0.infra.engine.memory_need import LARGEST
from agent0.infra.engine.qwen2_functional import shape_of

_FIX = "Set run.training.<role>.rank to 1 or more: LoRA."
_WHAT = "A model's own weights (rank 0) cannot be used here."


class Whole:
    """The model ``base`` with all of its weights free to move, until ``unload``. Tied ones are one and stay so."""

    def __init__(self, base: Any) -> None:
        """Raises OperationError where ``base`` is not one that is trained so."""
        check_small(shape_of(base) is not None)
        self._base, self.config = base, base.config
        self._was = [
            (parameter, parameter.detach().clone(), parameter.requires_grad) for parameter in base.parameters()
        ]
        for parameter in base.parameters():
            parameter.requires_grad_(True)

    def parameters(self) -> Iterable[nn.Parameter]:
        """All, each once."""
        parameters: Iterable[nn.Parameter] = self._base.parameters()
        return parameters

    def modules(self) -> Iterable[nn.Module]:
        """The base's."""
        modules: Iterable[nn.Module] = self._base.modules()
        return modules

    def train(self) -> None:
        """Put the base into training mode, as ``torch.nn.Module.train`` does."""
        self._base.train()

    def get_base_model(self) -> Any:
        """The model itself."""
        return self._base

    def take(self, weights: Mapping[str, Tensor]) -> None:
        """Go on from these, a full adapter's; OperationError where they are not of this model."""
        check_names(weights, dict(self._base.named_parameters()))
        with no_grad():
            for name, parameter in self._base.named_parameters():
                parameter.copy_(weights[name])

    def weights(self) -> dict[str, Tensor]:
        """As they are now, by the base's own names."""
        return {name: parameter.detach().clone() for name, parameter in self._base.named_parameters()}

    def unload(self) -> Any:
        """The base with the weights that it came with, bit for bit."""
        with no_grad():
            for parameter, was, trainable in self._was:
                parameter.copy_(was)
                parameter.grad = None
                parameter.requires_grad_(trainable)
        return self._base.eval()


def check_small(small: bool, what: str = _WHAT, fix: str = _FIX) -> None:
    """Raises OperationError (``what``, with its ``fix``) where a model is not ``small``: not one that is computed as a
    function."""
    if not small:
        why = f"That is for plain Qwen2 models of up to {LARGEST // 10**5 / 10} million weights, in precision fp32."
        raise OperationError(what, why, fix)


def check_kind(rank: int, parent: Adapter) -> None:
    """Raises OperationError where ``parent`` is a full adapter and ``rank`` wants LoRA, or the other way round."""
    if parent.full != (rank == 0):
        kind, fix = ("a full adapter", "rank = 0") if parent.full else ("a LoRA adapter", "a rank of 1 or more")
        why = f"It is {kind}, and run.training.<role>.rank is {rank}."
        raise OperationError("The parent adapter is of the other kind.", why, f"Train with {fix}, or from the base.")


def check_names(weights: Mapping[str, Tensor], base: Mapping[str, Tensor]) -> None:
    """Raises OperationError where ``weights`` are not, one for one, those of ``base``."""
    odd = [name for name in sorted(weights.keys() | base.keys()) if _shape(weights, name) != _shape(base, name)]
    if odd:
        shapes = [_shape(side, odd[0]) or "not there" for side in (weights, base)]
        why = f"{odd[0]} is {shapes[0]} in the adapter, {shapes[1]} in the model."
        raise OperationError("The adapter does not fit this model.", why)


def _shape(tensors: Mapping[str, Tensor], name: str) -> tuple[int, ...] | None:
    return tuple(tensors[name].shape) if name in tensors else None
