"""Batched decoding with a KV cache, inside the worker process. One batch holds one adapter; each row has its own
random stream, so what a request gets does not depend on its neighbours (up to rounding of their shared matrices).
Small models are computed as functions, all others through transformers."""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from agent0.errors import ConfigError, DependencyError, OperationError
from agent0.events.values import Turn
from agent0.infra.engine.adapter import OTHER_BASE, Adapter, unpack
from agent0.infra.engine.chat_template import Chat, tokenizer_of
from agent0.infra.engine.decoding import write
from agent0.infra.engine.memory_need import trained_precision
from agent0.infra.engine.qwen2_functional import Weights, logprobs, parts_of, shape_of, weights_of
from agent0.infra.engine.requests import TurnRequest, Written
from agent0.infra.engine.sampling import Batch, Row
from agent0.infra.training.full_finetune import check_names, check_small
from agent0.infra.training.launch.devices import check_device
from agent0.ports.models import Likely
from agent0.training.objectives.policy_gradient import token_logprobs

ADAPTERS_KEPT = 4
TEXTS_AT_ONCE = 16
"""Texts that a model did not write, in one pass."""
Score = Callable[[Tensor, Tensor, int], Tensor]
"""From token ids and where they are no padding, both [rows, T], to log-probabilities of the last so many of each row,
[rows, so many]."""
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def load(path: str, device: str, quantization: str, precision: str = "auto") -> tuple[Any, Any]:
    """Model and tokenizer of a local folder: safetensors only, no remote code.

    Raises:
        DependencyError: the folder cannot be read as a model, or torch does not see the device.
    """
    import transformers

    check_device(device)

    library: Any = transformers
    library.utils.logging.set_verbosity_error()
    library.utils.logging.disable_progress_bar()
    dtype: Any = PRECISIONS[trained_precision(device, precision)]
    local = {"trust_remote_code": False, "local_files_only": True}
    try:
        tokenizer = tokenizer_of(path)
        model = library.AutoModelForCausalLM.from_pretrained(
            path, use_safetensors=True, dtype=dtype, **local, **_quantized(device, quantization, dtype)
        )
    except (OSError, ValueError, KeyError, ImportError, SafetensorError) as error:
        raise DependencyError(
            f"The model in {path}", f"{type(error).__name__}: {error}"[:300], "Save or download that model again."
        ) from error
    if not quantization:
        model.to(device)
    _keep_differentiable(model)
    return model.eval(), tokenizer


def _keep_differentiable(model: Any) -> None:
    """Where a CPU computes bfloat16, bitsandbytes packs 4-bit weights at their first use without gradients, and no
    gradient passes packed ones: generating and training need the same weights."""
    for module in model.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False


def _quantized(device: str, quantization: str, dtype: Any) -> dict[str, object]:
    if not quantization:
        return {}
    if quantization != "4bit":
        raise ConfigError(f"Quantization {quantization!r} is not supported.", "Known: 4bit.")
    from transformers import BitsAndBytesConfig

    config = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=dtype
    )
    return {"quantization_config": config, "device_map": {"": device}}


class Engine:
    """A model, its tokenizer and the adapters used last."""

    def __init__(
        self,
        path: str,
        threads: int = 1,
        device: str = "cpu",
        quantization: str = "",
        precision: str = "auto",
        through: bool = False,
        template: Mapping[str, object] | None = None,
    ) -> None:
        """``through``: through transformers even where the model is small enough to be computed as a function;
        ``template``: arguments of its chat template."""
        torch.set_num_threads(threads)
        self._device = device
        self._model, tokenizer = load(path, device, quantization, precision)
        self._chat = Chat(tokenizer, template)
        self._context = int(getattr(self._model.config, "max_position_embeddings", 2048))
        self._adapters: OrderedDict[str, bool] = OrderedDict()  # name -> whether peft holds it
        self._shape = None if through else shape_of(self._model)
        self._weights: dict[str, Weights | None] = {}

    def has_adapter(self, name: str) -> bool:
        """Whether adapter ``name`` is loaded."""
        return name in self._adapters

    def load_adapter(self, name: str, data: bytes) -> None:
        """Load adapter ``name`` from its tar; the one used longest ago goes where there are too many.

        Raises:
            OperationError: it does not fit, or holds whole weights and this model is not computed as a function.
        """
        adapter = unpack(data)
        if adapter.full:
            self._weights[name] = self._replaced(adapter)
        else:
            self._add(name, adapter)
        self._adapters[name] = not adapter.full
        while len(self._adapters) > ADAPTERS_KEPT:
            self._drop(*self._adapters.popitem(last=False))
        self._model.eval()

    def _replaced(self, adapter: Adapter) -> Weights:
        """What ``adapter`` puts in the place of all weights."""
        check_small(self._shape is not None)
        parts = parts_of(self._model)
        assert self._shape and parts  # noqa: S101 - so it was checked
        check_names(adapter.weights, parts[0])
        with torch.no_grad():
            return weights_of(
                self._shape, {name: tensor.to(self._device) for name, tensor in adapter.weights.items()}, {}
            )

    def _add(self, name: str, adapter: Adapter) -> None:
        from peft import get_peft_model, set_peft_model_state_dict

        if self._paired:
            self._model.add_adapter(name, adapter.config())
        else:
            self._model = get_peft_model(self._model, adapter.config(), adapter_name=name)
        try:
            outcome: Any = set_peft_model_state_dict(self._model, adapter.weights, adapter_name=name)
            odd = outcome.unexpected_keys and f"Unknown: {outcome.unexpected_keys[:2]}."
        except RuntimeError as error:  # shapes, a line each
            odd = " ".join(f"{error}".split())[:200]
        if odd:
            self._drop(name, True)
            raise OperationError("The adapter does not fit this model.", odd, OTHER_BASE)

    def _drop(self, name: str, paired: bool) -> None:
        self._weights.pop(name, None)
        left = [other for other, is_paired in self._adapters.items() if is_paired]
        if paired and left:
            self._model.set_adapter(left[-1])  # the one that goes must not be the one in use
            self._model.delete_adapter(name)
        elif paired:
            self._model = self._model.unload()

    @property
    def _paired(self) -> bool:
        """Whether peft holds an adapter in the model."""
        return any(self._adapters.values())

    def generate(self, batch: Sequence[TurnRequest], adapter: str = "") -> list[Written]:
        """One turn for each of ``batch``, all under ``adapter`` (already loaded; "" is the base)."""
        start = time.monotonic()
        written = [self._encoded(request) for request in batch]
        rows = [row for pair in zip(written, batch, strict=True) if (row := self._row(*pair))]
        with torch.inference_mode():
            if rows:
                self._decode(rows, adapter)
        for turn, request in zip(written, batch, strict=True):
            self._finish(turn, request, start)
        return written

    def advance(
        self, fresh: Mapping[int, TurnRequest], earlier: Collection[int] = (), adapter: str = ""
    ) -> dict[int, Written]:
        """Take in turns by number; some that have ended, of these and of ``earlier`` ones, which have not. Here each
        batch is written to its end, so there are no earlier ones."""
        return dict(zip(fresh, self.generate(list(fresh.values()), adapter), strict=True))

    def _row(self, written: Written, request: TurnRequest) -> Row | None:
        """What is to be decoded; None where there is nothing to write or no room."""
        room = min(request.sampling.max_tokens, self._context - len(written.prompt))
        if room <= 0 or written.error:
            return None
        bias = [(self._chat.token_of(text), value) for text, value in request.sampling.bias]
        is_over = partial(self._chat.has_written, request.sampling.stop)
        return Row(written, request.sampling, room, bias, request.margins, is_over)

    def _finish(self, turn: Written, request: TurnRequest, start: float) -> None:
        turn.text, turn.wall_s = request.prefill + self._chat.decode(turn.ids), time.monotonic() - start
        turn.ends = self._chat.ends(turn.ids, len(request.prefill))

    def likelihood(self, turns: Sequence[Turn], texts: Sequence[str], adapter: str = "") -> list[Likely]:
        """How likely each of ``texts`` is after ``turns``, under ``adapter``; errors as for ``likelihoods``."""
        with torch.inference_mode():
            return likelihoods(self._score(adapter), self._chat, self._context, self._device, turns, texts)

    def _encoded(self, request: TurnRequest) -> Written:
        try:
            return Written(self._chat.prompt(request.turns, request.tools, request.prefill))
        except OperationError as error:
            return Written(error=str(error))

    def _using(self, adapter: str) -> Any:
        if adapter:
            self._model.set_adapter(adapter)
            return nullcontext()
        return self._model.disable_adapter() if self._paired else nullcontext()

    def _function(self, adapter: str) -> Weights | None:
        """The weights under ``adapter``, where the model is computed as a function of them."""
        if adapter:
            self._adapters.move_to_end(adapter)
        if self._shape and adapter not in self._weights:
            parts = parts_of(self._model, adapter)
            self._weights[adapter] = weights_of(self._shape, *parts) if parts else None
        return self._weights.get(adapter)

    def _score(self, adapter: str) -> Score:
        if weights := self._function(adapter):
            return lambda ids, attention, last: logprobs(weights, ids, attention, attention)[:, -last:]

        def score(ids: torch.Tensor, attention: torch.Tensor, last: int) -> torch.Tensor:
            kept = {"use_cache": False, "logits_to_keep": last + 1}
            with self._using(adapter):
                logits = self._model(input_ids=ids, attention_mask=attention, **kept).logits
            return token_logprobs(logits, ids[:, -last - 1 :])[:, 1:]

        return score

    def _decode(self, rows: Sequence[Row], adapter: str) -> None:
        if weights := self._function(adapter):
            write(weights, rows, self._chat.stops)
        else:
            with self._using(adapter):
                self._decode_through_transformers(rows)

    def _decode_through_transformers(self, rows: Sequence[Row]) -> None:
        import transformers

        batch = Batch(rows, self._chat.stops, self._device)
        ids, attention = _left_padded([row.written.prompt for row in rows], self._chat.pad, self._device)
        positions = (attention.cumsum(-1) - 1).clamp(min=0)
        cache: Any = transformers.DynamicCache(config=self._model.config)
        while True:
            logits = self._model(
                input_ids=ids,
                attention_mask=attention,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            ).logits[:, -1]
            chosen, alive = batch.take(logits)
            if not alive:
                return
            if len(alive) < len(batch):
                keep = torch.tensor(alive, device=self._device)
                batch.keep(keep)
                chosen, attention, positions = chosen[keep], attention[keep], positions[keep]
                cache.batch_select_indices(keep)
            ids, positions = chosen[:, None], positions[:, -1:] + 1
            attention = torch.cat([attention, attention.new_ones(len(batch), 1)], dim=1)


def _left_padded(prompts: Sequence[list[int]], pad: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(map(len, prompts))
    ids = torch.tensor([[pad] * (longest - len(p)) + p for p in prompts], device=device)
    attention = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts], device=device)
    return ids, attention


def likelihoods(
    score: Score, chat: Chat, context: int, device: str, turns: Sequence[Turn], texts: Sequence[str]
) -> list[Likely]:
    """How likely each of ``texts`` is as the beginning of the assistant's next turn after ``turns``.

    Raises:
        OperationError: a text is empty, or does not fit into ``context`` tokens.
    """
    prompt, written = chat.prompt(turns), [chat.written(text) for text in texts]
    if not all(written):
        raise OperationError("An empty text has no likelihood.")
    if len(prompt) + max(map(len, written)) > context:
        raise OperationError("The texts do not fit into the model's context.", f"It has {context} tokens.")
    sums: list[float] = []
    for start in range(0, len(written), TEXTS_AT_ONCE):
        sums += _sums(score, prompt, written[start : start + TEXTS_AT_ONCE], chat.pad, device)
    return [Likely(total, len(ids), len(text)) for total, ids, text in zip(sums, written, texts, strict=True)]


def _sums(score: Score, prompt: list[int], batch: list[list[int]], pad: int, device: str) -> list[float]:
    """Padded on the right, so every position is that of its text alone."""
    longest = max(map(len, batch))
    rows = [prompt + ids + [pad] * (longest - len(ids)) for ids in batch]
    attention = [[1] * (len(prompt) + len(ids)) + [0] * (longest - len(ids)) for ids in batch]
    logprobs = score(torch.tensor(rows, device=device), torch.tensor(attention, device=device), longest).tolist()
    return [sum(each[: len(ids)]) for each, ids in zip(logprobs, batch, strict=True)]
