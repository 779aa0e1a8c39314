"""Decoding with a model on a CPU whose matrices are packed in the format of numbers that is best there: read from
its folder without transformers, adapters computed beside."""

import time
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from agent0.errors import OperationError, TransientError
from agent0.infra.engine.adapter import OTHER_BASE, Adapter, unpack
from agent0.infra.engine.chat_template import Chat, tokenizer_of
from agent0.infra.engine.decoding import write, writing
from agent0.infra.engine.formats.best_format import best_format
from agent0.infra.engine.formats.folder_weights import FolderWeights, embedding_of, largest_context, shape_in
from agent0.infra.engine.formats.packed_need import BLOCKS
from agent0.infra.engine.formats.prefixes import Prefixes
from agent0.infra.engine.formats.products import FORMATS
from agent0.infra.engine.inference import ADAPTERS_KEPT, Engine, Score
from agent0.infra.engine.qwen2_functional import Pairs, Weights, adapted, logprobs, weights_of
from agent0.infra.engine.requests import TurnRequest, Written
from agent0.infra.engine.sampling import Row

PREFIX = "base_model.model."
STEPS = 8
"""Tokens a turn after which others may join."""
OVER = object()
"""What a decoding gives that has no row left."""


@dataclass(frozen=True)
class OpenTurn:
    """A turn that has not ended; ``row`` is None where nothing can be written. ``start``: when it was taken in."""

    request: TurnRequest
    written: Written
    row: Row | None
    start: float = field(default_factory=time.monotonic)

    @property
    def ended(self) -> bool:
        """Whether nothing more is written."""
        return self.row is None or self.row.ended


@dataclass
class OpenTurns:
    """Turns by number that have not ended; rows of those that wait, and the decoding of the others."""

    turns: dict[int, OpenTurn] = field(default_factory=dict)
    waiting: list[Row] = field(default_factory=list)
    decoding: Iterator[None] = field(default_factory=lambda: iter(()))


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
        self._open = OpenTurns()

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

    def advance(
        self, fresh: Mapping[int, TurnRequest], earlier: Collection[int] = (), adapter: str = ""
    ) -> dict[int, Written]:
        """Take in turns by number, and write a few tokens of each that is open; those that have ended. ``earlier``:
        the open ones, all under this ``adapter``.

        Raises:
            TransientError: an earlier one is not known here.
        """
        if not earlier:
            self._open = OpenTurns()
        if not self._open.turns.keys() >= {*earlier}:
            raise TransientError("The model's worker process has lost turns that it was writing.")
        self._prefixes.adapter = adapter
        for number, request in fresh.items():
            written = self._encoded(request)
            self._open.turns[number] = OpenTurn(request, written, self._row(written, request))
        self._open.waiting += [turn.row for number in fresh if (turn := self._open.turns[number]).row]
        try:
            with torch.inference_mode():
                self._write_some(self._under(adapter))
        except BaseException:
            self._open = OpenTurns()
            raise
        return self._ended()

    def _write_some(self, weights: Weights) -> None:
        """A few tokens of each open turn, until one ends."""
        turns, waiting = self._open.turns.values(), self._open.waiting
        for _ in range(STEPS):
            if any(turn.ended for turn in turns):
                return
            if next(self._open.decoding, OVER) is OVER and waiting:
                self._open.decoding = writing(weights, waiting, self._chat.stops, self._prefixes)

    def _ended(self) -> dict[int, Written]:
        """Take the turns that have ended out of the open ones."""
        ended = {number: turn for number, turn in self._open.turns.items() if turn.ended}
        for number, turn in ended.items():
            self._finish(turn.written, turn.request, turn.start)
            del self._open.turns[number]
        return {number: turn.written for number, turn in ended.items()}


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
