"""Weights of a folder, read one by one without transformers, and what its config says of their shape."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from agent0.infra.engine.memory_need import is_plain
from agent0.infra.engine.qwen2_functional import Shape
from agent0.infra.weights.model_config import ModelConfig, ModelKind

EMBED = "model.embed_tokens.weight"


class FolderWeights(Mapping[str, Tensor]):
    """The weights in the safetensors files of ``folder`` by name, each read in single precision when it is asked
    for."""

    def __init__(self, folder: Path) -> None:
        library: Any = safe_open  # it has no types
        files = [library(str(path), "pt") for path in sorted(folder.glob("*.safetensors"))]
        self._places = {str(name): file for file in files for name in file.keys()}  # noqa: SIM118 - no mapping

    def __getitem__(self, name: str) -> Tensor:
        return self.stored(name).float()

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def stored(self, name: str) -> Tensor:
        """Weight ``name`` in the precision that it is stored in."""
        weight: Tensor = self._places[name].get_tensor(name)
        return weight

    def outlines(self) -> dict[str, Tensor]:
        """Vectors as they are, and of every matrix its sizes alone (a tensor on the device ``meta``)."""
        sizes = {name: self._places[name].get_slice(name).get_shape() for name in self}
        return {
            name: self[name] if len(size) == 1 else torch.empty(size, device="meta") for name, size in sizes.items()
        }


def shape_in(folder: Path) -> Shape | None:
    """What config.json of ``folder`` says; None where the model has more than what is computed here."""
    if not is_plain(ModelKind.of_folder(folder)):
        return None
    config = ModelConfig.of_folder(folder)
    return Shape(
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        groups=config.groups,
        width=config.head_width,
        theta=config.theta,
        eps=config.rms_norm_eps,
    )


def largest_context(folder: Path) -> int:
    """Most tokens of a conversation with the model in ``folder``."""
    return ModelKind.of_folder(folder).max_position_embeddings or 2048


def embedding_of(weights: FolderWeights) -> Tensor:
    """The table of embeddings as it is stored: what is looked up is made single then."""
    return weights.stored(EMBED)
