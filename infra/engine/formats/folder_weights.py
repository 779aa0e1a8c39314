"""Weights of a folder, read one by one without transformers, and what its config says of their shape."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from agent0.infra.engine.memory_need import is_plain
from agent0.infra.engine.qwen2_functional import Shape

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
    config: dict[str, Any] = json.loads((folder / "config.json").read_bytes())
    if not is_plain(config):
        return None
    rope = config.get("rope_parameters") or {}
    heads = int(config["num_attention_heads"])
    return Shape(
        layers=int(config["num_hidden_layers"]),
        heads=heads,
        groups=int(config.get("num_key_value_heads") or heads),
        width=int(config.get("head_dim") or config["hidden_size"] // heads),
        theta=float(rope.get("rope_theta") or config.get("rope_theta") or 10_000.0),
        eps=float(config["rms_norm_eps"]),
    )


def largest_context(folder: Path) -> int:
    """Most tokens of a conversation with the model in ``folder``."""
    return int(json.loads((folder / "config.json").read_bytes()).get("max_position_embeddings", 2048))


def embedding_of(weights: FolderWeights) -> Tensor:
    """The table of embeddings as it is stored: what is looked up is made single then."""
    return weights.stored(EMBED)
