"""Adapters with weights that say something, made without a training."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from agent0.infra.engine.adapter import Adapter, lora_settings, pack
from agent0.infra.weights.safetensors_io import Weights

RANK, ALPHA = 8, 16


def tensors(folder: Path, seed: int = 0, size: float = 0.1, rank: int = RANK) -> dict[str, torch.Tensor]:
    """Random pairs, by peft's names, for every linear layer of the model in ``folder``."""
    rng = np.random.default_rng(seed)
    base, found = Weights.of_folder(folder), {}
    for name in sorted(n for n in base if n.endswith("_proj.weight")):
        rows, columns = base.shape(name)
        module = f"base_model.model.{name.removesuffix('.weight')}"
        found[f"{module}.lora_A.weight"] = torch.from_numpy(rng.normal(0, size, (rank, columns)).astype(np.float32))
        found[f"{module}.lora_B.weight"] = torch.from_numpy(rng.normal(0, size, (rows, rank)).astype(np.float32))
    return found


def adapter(folder: Path, seed: int = 0, size: float = 0.1, **settings: Any) -> bytes:
    """The tar of such an adapter."""
    return pack(Adapter({**lora_settings(RANK, ALPHA), **settings}, tensors(folder, seed, size), {}))
