"""Decoding with a model on a CPU whose matrices are packed in the format of numbers that is best there: read from
its folder without transformers, adapters computed beside."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from agent0.errors import OperationError
from agent0.infra.engine.adapter import OTHER_BASE, Adapter, unpack
from agent0.infra.engine.chat_template import Chat, tokenizer_of
from agent0.infra.engine.decoding import write
from agent0.infra.engine.formats.best_format import best_format
from agent0.infra.engine.formats.folder_weights import FolderWeights, embedding_of, largest_context, shape_in
from agent0.infra.engine.formats.packed_need import BLOCKS
from agent0.infra.engine.formats.prefixes import Prefixes
from agent0.infra.engine.formats.products import FORMATS
from agent0.infra.engine.inference import ADAPTERS_KEPT, Engine, Score
from agent0.infra.engine.qwen2_functional import Pairs, Weights, adapted, logprobs, weights_of
from agent0.infra.engine.sampling import Row

PREFIX = "base_model.model."


class PackedEngine(Engine):
    """A model, its tokenizer and the adapters used last. ``precision`` is one of ``FORMATS``; ``auto``: the best here;
    ``kept`` are the bytes of keys and values of earlier texts."""

    def __init__(
        self,
        path: str,
        threads: int = 1,
        precision: str = "auto",
        template: Mapping[str, object] | None = None,
        kept: int = BLOCKS,
    ) -> None:
        torch.set_num_threads(threads)
        folder, shape = Path(path), shape_in(Path(path))
        if shape is None:
            raise OperationError(f"The model in {path} is not computed in packed formats.")
        self.format = best_format() if precision == "auto" else precision
        self._chat, self._device = Chat(tokenizer_of(path), template), "cpu"
        self._context = largest_context(folder)
        self._parameters = FolderWeights(folder)
        with torch.inference_mode():
            weights = weights_of(shape, self._parameters, {}, FORMATS[self.format])
            self._base = replace(weights, embed=embedding_of(self._parameters))
        self._adapted: OrderedDict[str, Weights] = OrderedDict()
        self._prefixes = Prefixes(kept)

    def has_adapter(self, name: str) -> bool:
        """Whether adapter ``name`` is loaded."""
        return name in self._adapted

    def load_adapter(self, name: str, data: bytes) -> None:
        """Load adapter ``name`` from its tar; the one used longest ago goes where there are too many.

        Raises:
            OperationError: it does not fit, or holds whole weights.
        """
        adapter = unpack(data)
        if adapter.full:
            raise OperationError("An adapter of whole weights is for small models.", "This one is computed packed.")
        pairs = pairs_of(adapter, self._parameters)
        with torch.inference_mode():
            self._adapted[name] = adapted(self._base, self._parameters, pairs)
        while len(self._adapted) > ADAPTERS_KEPT:
            self._adapted.popitem(last=False)

    def _under(self, adapter: str) -> Weights:
        if not adapter:
            return self._base
        self._adapted.move_to_end(adapter)
        return self._adapted[adapter]

    def _score(self, adapter: str) -> Score:
        weights = self._under(adapter)
        return lambda ids, attention, last: logprobs(weights, ids, attention, attention)[:, -last:]

    def _decode(self, rows: Sequence[Row], adapter: str) -> None:
        self._prefixes.adapter = adapter
        write(self._under(adapter), rows, self._chat.stops, self._prefixes)


def pairs_of(adapter: Adapter, parameters: Mapping[str, Tensor]) -> Pairs:
    """LoRA's pairs by the name of the weight of ``parameters`` that they are for.

    Raises:
        OperationError: it holds more than pairs, or one that does not fit.
    """
    rank, alpha = int(adapter.settings["r"]), float(adapter.settings["lora_alpha"])
    scale = alpha / (rank**0.5 if adapter.settings.get("use_rslora") else rank)
    suffix, pairs = ".lora_A.weight", {}
    for name, a in adapter.weights.items():
        layer = name.removesuffix(suffix)
        target, b = f"{layer.removeprefix(PREFIX)}.weight", adapter.weights.get(f"{layer}.lora_B.weight")
        if not name.endswith(suffix) or b is None:
            continue
        if target not in parameters or (len(b), a.shape[1]) != parameters[target].shape:
            why = f"There is no weight of its shape for {name}."
            raise OperationError("The adapter does not fit this model.", why, OTHER_BASE)
        pairs[target] = (a, b, scale)
    if 2 * len(pairs) != len(adapter.weights):
        raise OperationError(
            "The adapter does not fit this model.", "It holds more than pairs beside linear layers.", OTHER_BASE
        )
    return pairs
