"""What optimizers remember of the weights that they move, by the place of each weight: kept beside an adapter, so that
the training which goes on from it goes on with that, too."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch.optim import Optimizer

from agent0.errors import OperationError
from agent0.events.base import sha256

_NAMES = ("step", "exp_avg", "exp_avg_sq", "momentum_buffer")
"""What AdamW and Muon remember of a weight."""
_NOTE = "of"
"""The one entry of the header's metadata: of several the order of writing is not defined, and so no digest."""
ANEW = "anew: "
"""Begins what is recorded where a training that was to go on with a state did not."""


def trainable(model: Any) -> list[torch.nn.Parameter]:
    """The weights that are trained, in the order that their places count in."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def tensors_of(model: Any, optimizers: Sequence[Optimizer]) -> dict[str, torch.Tensor]:
    """Copy what is remembered of each weight: ``PLACE.NAME`` -> tensor on the CPU."""
    tensors: dict[str, torch.Tensor] = {}
    for place, parameter in enumerate(trainable(model)):
        state = _mover(optimizers, parameter).state.get(parameter, {})
        tensors |= {f"{place}.{name}": state[name].detach().cpu().clone() for name in _NAMES if name in state}
    return tensors


def put_back(model: Any, optimizers: Sequence[Optimizer], tensors: Mapping[str, torch.Tensor]) -> None:
    """Let ``optimizers`` remember of each weight what ``tensors_of`` copied of it."""
    for place, parameter in enumerate(trainable(model)):
        state = {name: tensors[f"{place}.{name}"] for name in _NAMES if f"{place}.{name}" in tensors}
        if state:
            _mover(optimizers, parameter).state[parameter] = {
                name: value if name == "step" else value.to(parameter.device) for name, value in state.items()
            }


def pack_state(tensors: Mapping[str, torch.Tensor], adapter: bytes, optimizer: str) -> bytes:
    """``tensors`` as safetensors that name the ``adapter`` they belong to, and the optimizer."""
    note = json.dumps({"adapter": sha256(adapter), "optimizer": optimizer}, sort_keys=True)
    return save(dict(tensors), {_NOTE: note})


def take_state(model: Any, optimizers: Sequence[Optimizer], data: bytes, parent: bytes, optimizer: str) -> str:
    """Let ``optimizers`` go on with what ``pack_state`` wrote of ``parent``; returns what to record of it. They begin
    anew where there is nothing, or it is of another kind of optimizer.

    Raises:
        OperationError: it is damaged, or of another adapter than ``parent``.
    """
    if not data:
        return f"{ANEW}the parent has no state"
    try:
        note = json.loads(json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"][_NOTE])
        adapter, kind, tensors = note["adapter"], note["optimizer"], load(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise _refused(f"{type(error).__name__}: {error}"[:200]) from error
    if adapter != sha256(parent):
        raise _refused(f"It belongs to adapter {str(adapter)[:12]}, the parent is {sha256(parent)[:12]}.")
    if kind != optimizer:
        return f"{ANEW}the parent's state is of {kind}"
    weights = trainable(model)
    for name, tensor in tensors.items():
        place = int(name.partition(".")[0])
        if not name.endswith(".step") and (place >= len(weights) or tensor.shape != weights[place].shape):
            raise _refused(f"{name} has the shape {tuple(tensor.shape)}.")
    put_back(model, optimizers, tensors)
    return f"continued from {sha256(data)[:12]}"


def _refused(why: str) -> OperationError:
    fix = "Set run.training.<role>.optimizer_state = anew."
    return OperationError("The optimizer's state is not the parent's.", why, fix)


def _mover(optimizers: Sequence[Optimizer], parameter: torch.nn.Parameter) -> Optimizer:
    """Whose weight it is."""
    return next(
        o for o in optimizers for group in o.param_groups if any(other is parameter for other in group["params"])
    )
