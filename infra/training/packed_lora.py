"""LoRA beside the packed matrices of a model on a CPU: it is trained on what it is sampled with, and nothing is kept
twice."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from agent0.errors import OperationError
from agent0.infra.engine.adapter import Adapter
from agent0.infra.engine.formats.best_format import FRACTIONS, best_format
from agent0.infra.engine.formats.folder_weights import FolderWeights, embedding_of, largest_context, shape_in
from agent0.infra.engine.formats.packed_engine import PREFIX, pairs_of
from agent0.infra.engine.formats.products import FORMATS, Int8
from agent0.infra.engine.qwen2_functional import Weights, adapted, weights_of

NUMBERS = {"fp32": torch.float32, "bf16": torch.bfloat16}


class PackedBase:
    """The frozen model in ``folder``, its matrices in ``precision``: one of ``FORMATS``, or ``auto``, the best here."""

    def __init__(self, folder: Path, precision: str) -> None:
        shape, parameters = shape_in(folder), FolderWeights(folder)
        if shape is None:
            raise OperationError(f"The model in {folder} is not computed in packed formats.")
        self.format = best_format() if precision == "auto" else precision
        packing = FORMATS[self.format]
        if self.format == "int8":
            packing = partial(Int8, gradients=NUMBERS[best_format(FRACTIONS)])
        with torch.no_grad():
            weights = weights_of(shape, parameters, {}, packing)
        self.weights = replace(weights, embed=embedding_of(parameters), frozen=True)
        self.outlines = parameters.outlines()
        self.config = SimpleNamespace(
            vocab_size=len(self.outlines["model.embed_tokens.weight"]), max_position_embeddings=largest_context(folder)
        )
        self.gradient_checkpointing = "auto"
        """As ``recomputed`` reads it."""


class PackedLora:
    """The LoRA of ``adapter``'s settings beside ``base``, begun as peft begins one: the first of each pair is drawn by
    Kaiming's rule, the second is zeros (arXiv 2106.09685, section 4.1)."""

    def __init__(self, base: PackedBase, adapter: Adapter) -> None:
        self._base, self.config = base, base.config
        self._rank = int(adapter.settings["r"])
        self._settings = adapter.settings
        self._pairs = {
            name: self._begun(base.outlines[f"{name}.weight"])
            for name in (key.removesuffix(".weight") for key in sorted(base.outlines))
            if name.rpartition(".")[-1] in adapter.settings["target_modules"]
        }

    def _begun(self, outline: Tensor) -> tuple[nn.Parameter, nn.Parameter]:
        first = torch.empty(self._rank, outline.shape[1])
        nn.init.kaiming_uniform_(first, a=math.sqrt(5))
        return nn.Parameter(first), nn.Parameter(torch.zeros(outline.shape[0], self._rank))

    def parameters(self) -> Iterable[nn.Parameter]:
        """Both of every pair."""
        return (parameter for pair in self._pairs.values() for parameter in pair)

    def train(self) -> None:
        """Nothing here is otherwise in training: no part is dropped at random."""

    def get_base_model(self) -> PackedBase:
        """The frozen model."""
        return self._base

    def under(self) -> Weights:
        """The weights under the adapter as it is now, differentiable in its parameters."""
        pairs = pairs_of(Adapter(self._settings, self.named(), {}), self._base.outlines)
        return adapted(self._base.weights, self._base.outlines, pairs)

    def named(self) -> dict[str, Tensor]:
        """The parameters, by peft's names."""
        return {
            f"{PREFIX}{name}.lora_{letter}.weight": parameter
            for name, pair in self._pairs.items()
            for letter, parameter in zip("AB", pair, strict=True)
        }

    def take(self, weights: Mapping[str, Tensor]) -> None:
        """Go on from these; OperationError where they are not of this model and rank."""
        parameters = self.named()
        odd = [
            name
            for name in sorted(parameters.keys() | weights.keys())
            if name not in weights or name not in parameters or weights[name].shape != parameters[name].shape
        ]
        if odd:
            raise OperationError(
                "The parent adapter does not fit this model.", f"{odd[0]} has another shape, or is not there."
            )
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(weights[name])

    def weights(self) -> dict[str, Tensor]:
        """As they are now, by peft's names."""
        return {name: parameter.detach().clone() for name, parameter in self.named().items()}

    def unload(self) -> PackedBase:
        """The frozen model, which nothing has changed."""
        return self._base
