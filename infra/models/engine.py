"""Batched decoding with a KV cache, inside the worker process. One batch holds one adapter; each row has its own
random stream, so what a request gets does not depend on its neighbours (up to rounding of their shared matrices)."""

import os
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError

from agent0.errors import ConfigError, DependencyError, OperationError
from agent0.ports import Likely, Sampling
from events.values import Turn
from infra.models.engine_adapter import unpack
from infra.models.engine_chat import Chat
from infra.models.engine_likelihood import likelihoods
from infra.models.engine_turns import Wanted, Written

ADAPTERS_KEPT = 4
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def precision_of(device: str, asked: str) -> str:
    """What weights and activations are kept in: ``asked``, or single precision on a CPU and bfloat16 on a GPU."""
    return asked if asked != "auto" else "fp32" if device == "cpu" else "bf16"


def load(path: str, device: str, quantization: str, precision: str = "auto") -> tuple[Any, Any]:
    """Model and tokenizer of a local folder: safetensors only, no remote code.

    The tokenizer is exactly its tokenizer.json: the classes that transformers chooses by architecture may cut text
    in another way than the file says.

    Raises:
        DependencyError: the folder cannot be read as a model.
    """
    import transformers

    library: Any = transformers
    library.utils.logging.set_verbosity_error()
    library.utils.logging.disable_progress_bar()
    dtype: Any = PRECISIONS[precision_of(device, precision)]
    options: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    try:
        tokenizer = library.PreTrainedTokenizerFast.from_pretrained(path, **options)
        model = library.AutoModelForCausalLM.from_pretrained(
            path, use_safetensors=True, dtype=dtype, **options, **_quantized(device, quantization, dtype)
        )
    except (OSError, ValueError, KeyError, ImportError, SafetensorError) as error:
        raise DependencyError(
            f"The model in {path}", f"{type(error).__name__}: {error}"[:300], "Save or download that model again."
        ) from error
    if not quantization:
        model.to(device)
    return model.eval(), tokenizer


def _quantized(device: str, quantization: str, dtype: Any) -> dict[str, Any]:
    if not quantization:
        return {}
    if quantization != "4bit" or device == "cpu":
        raise ConfigError(f"Quantization {quantization!r} on {device} is not supported.", "4bit needs a GPU.")
    from transformers import BitsAndBytesConfig

    config = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=dtype
    )  # type: ignore[no-untyped-call]
    return {"quantization_config": config, "device_map": {"": device}}


class Engine:
    """A model, its tokenizer and the adapters used last."""

    def __init__(
        self, path: str, threads: int = 1, device: str = "cpu", quantization: str = "", precision: str = "auto"
    ) -> None:
        torch.set_num_threads(threads)
        self._device = device
        self._model, tokenizer = load(path, device, quantization, precision)
        self._chat = Chat(tokenizer)
        self._context = int(getattr(self._model.config, "max_position_embeddings", 2048))
        self._adapters: OrderedDict[str, None] = OrderedDict()

    def ready(self) -> dict[str, Any]:
        """Process id and parameters: answers once the model is loaded."""
        return {"pid": os.getpid(), "parameters": sum(p.numel() for p in self._model.parameters())}

    def has_adapter(self, name: str) -> bool:
        """Whether adapter ``name`` is loaded."""
        return name in self._adapters

    def load_adapter(self, name: str, data: bytes) -> None:
        """Load adapter ``name`` from its tar; the one used longest ago goes where there are too many."""
        from peft import PeftModel, get_peft_model, set_peft_model_state_dict

        adapter = unpack(data)
        if isinstance(self._model, PeftModel):
            self._model.add_adapter(name, adapter.config())
        else:
            self._model = get_peft_model(self._model, adapter.config(), adapter_name=name)
        outcome: Any = set_peft_model_state_dict(self._model, adapter.weights, adapter_name=name)
        if outcome.unexpected_keys:
            raise OperationError("The adapter does not fit this model.", f"Unknown: {outcome.unexpected_keys[:2]}.")
        self._adapters[name] = None
        while len(self._adapters) > ADAPTERS_KEPT:
            self._model.delete_adapter(self._adapters.popitem(last=False)[0])
        self._model.eval()

    def generate(self, batch: Sequence[Wanted], adapter: str = "") -> list[Written]:
        """One turn for each of ``batch``, all under ``adapter`` (already loaded; "" is the base)."""
        start = time.monotonic()
        written = [self._encoded(wanted) for wanted in batch]
        rows = [_Row(w, wanted.sampling) for w, wanted in zip(written, batch, strict=True) if not w.error]
        rows = [row for row in rows if row.fit(self._context)]
        with torch.inference_mode(), self._using(adapter):
            if rows:
                self._decode(rows)
        seconds = time.monotonic() - start
        for found, wanted in zip(written, batch, strict=True):
            found.text, found.wall_s = wanted.prefill + self._chat.decode(found.ids), seconds
            found.ends = self._chat.ends(found.ids, len(wanted.prefill))
        return written

    def likelihood(self, turns: Sequence[Turn], texts: Sequence[str], adapter: str = "") -> list[Likely]:
        """How likely each of ``texts`` is after ``turns``, under ``adapter``; errors as for ``likelihoods``."""
        with torch.inference_mode(), self._using(adapter):
            return likelihoods(self._model, self._chat, self._context, self._device, turns, texts)

    def _encoded(self, wanted: Wanted) -> Written:
        try:
            return Written(self._chat.prompt(wanted.turns, wanted.tools, wanted.prefill))
        except OperationError as error:
            return Written(error=str(error))

    def _using(self, adapter: str) -> Any:
        if adapter:
            self._adapters.move_to_end(adapter)
            self._model.set_adapter(adapter)
            return nullcontext()
        return self._model.disable_adapter() if self._adapters else nullcontext()

    def _decode(self, rows: "list[_Row]") -> None:
        import transformers

        ids, seen = _left_padded([row.written.prompt for row in rows], self._chat.pad, self._device)
        positions = (seen.cumsum(-1) - 1).clamp(min=0)
        cache: Any = transformers.DynamicCache(config=self._model.config)
        while True:
            logits = (
                self._model(
                    input_ids=ids,
                    attention_mask=seen,
                    position_ids=positions,
                    past_key_values=cache,
                    use_cache=True,
                    logits_to_keep=1,
                )
                .logits[:, -1]
                .float()
            )
            chosen, logprobs = _choose(logits, rows)
            alive = [
                place
                for place, (row, token, logprob) in enumerate(
                    zip(rows, chosen.tolist(), logprobs.tolist(), strict=True)
                )
                if row.add(token, logprob, self._chat.stops)
            ]
            if not alive:
                return
            if len(alive) < len(rows):
                keep = torch.tensor(alive, device=self._device)
                rows = [rows[place] for place in alive]
                chosen, seen, positions = chosen[keep], seen[keep], positions[keep]
                cache.batch_select_indices(keep)
            ids, positions = chosen[:, None], positions[:, -1:] + 1
            seen = torch.cat([seen, seen.new_ones(len(rows), 1)], dim=1)


class _Row:
    """One request while it is decoded. Its random numbers are drawn at once from its own seed."""

    def __init__(self, written: Written, sampling: Sampling) -> None:
        self.written, self.sampling, self.left = written, sampling, sampling.max_tokens
        self.draws = np.random.default_rng(sampling.seed % 2**64).random(sampling.max_tokens)

    def fit(self, context: int) -> bool:
        """Shorten the turn to the context; False where nothing fits."""
        self.left = min(self.left, context - len(self.written.prompt))
        return self.left > 0

    def draw(self) -> float:
        return float(self.draws[len(self.written.ids)])

    def add(self, token: int, logprob: float, stops: frozenset[int]) -> bool:
        """Append; whether the turn goes on."""
        self.written.ids.append(token)
        self.written.logprobs.append(logprob)
        self.left -= 1
        if token in stops:
            self.written.finish = "stop"
        return token not in stops and self.left > 0


def _left_padded(prompts: Sequence[list[int]], pad: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(map(len, prompts))
    ids = torch.tensor([[pad] * (longest - len(p)) + p for p in prompts], device=device)
    seen = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts], device=device)
    return ids, seen


def _choose(logits: torch.Tensor, rows: Sequence[_Row]) -> tuple[torch.Tensor, torch.Tensor]:
    """Next tokens and their log-probabilities at the sampling temperature (1 for greedy), before any top-p cut.

    Inverse transform on each row's own uniform draw; shapes [rows, vocabulary] to [rows].
    """
    heat = torch.tensor([row.sampling.temperature or 1.0 for row in rows], device=logits.device)
    logs = torch.log_softmax(logits / heat[:, None], dim=-1)
    chosen = logs.argmax(-1)
    sampled = [place for place, row in enumerate(rows) if row.sampling.temperature > 0]
    if sampled:
        at = torch.tensor(sampled, device=logits.device)
        draws = torch.tensor([rows[place].draw() for place in sampled], device=logits.device)
        cut = torch.tensor([rows[place].sampling.top_p for place in sampled], device=logits.device)
        chosen[at] = _sampled(logs[at].exp(), draws, cut)
    return chosen, logs.gather(-1, chosen[:, None])[:, 0]


def _sampled(chances: torch.Tensor, draws: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    if bool((top_p >= 1).all()):
        heap = chances.cumsum(-1)
        return torch.searchsorted(heap, (draws * heap[:, -1])[:, None])[:, 0].clamp(max=chances.shape[-1] - 1)
    ordered, names = chances.sort(dim=-1, descending=True, stable=True)
    ordered = ordered * (ordered.cumsum(-1) - ordered < top_p[:, None])
    heap = ordered.cumsum(dim=-1)
    place = torch.searchsorted(heap, (draws * heap[:, -1])[:, None]).clamp(max=chances.shape[-1] - 1)
    return names.gather(-1, place)[:, 0]
