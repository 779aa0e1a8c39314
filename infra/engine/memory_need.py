"""What memory a model needs to generate and to train, from its sizes alone: no weight is read, nothing is loaded."""

import json
import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent0.errors import ConfigError
from agent0.infra.engine.adapter import lora_settings
from agent0.infra.weights.model_config import ModelConfig, ModelKind

LARGEST = 1 << 27
"""Parameters of the largest model that is computed as a function: a copy of the weights is held for every adapter."""
PLAIN = ("Qwen2ForCausalLM", "LlamaForCausalLM")
"""Architectures whose matrices can be packed."""
ROOM = 64
"""Tokens that decoding makes room for at a time."""
READ = 1 << 11
"""Tokens of prompts that are read at once: what is computed of them should stay in a processor's cache."""
LOGITS = 1 << 24
"""Logits (numbers) held at once where a model in training is large."""
BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "int8": 1.0}
NF4 = 0.516
"""Bytes a weight in 4 bits, its doubly quantised scales included (4.127 bits, arXiv 2305.14314, section 3)."""
SPARE = 1.1
"""What allocators lose between blocks, and the driver keeps."""

_adapted = re.compile(rf"\.({'|'.join(lora_settings(1, 1)['target_modules'])})\.weight$")


@dataclass(frozen=True)
class Shape:
    """A model's sizes. ``linear``: weights of the layers that adapters and quantisation are for; ``ways``: their
    inputs and outputs added up, so that LoRA of rank r has r times as many weights. ``cached``: numbers that a layer
    keeps of a token's keys, and as many of its values. ``plain``: of the kind that is computed as a function in single
    precision, without transformers; ``packable``: its matrices can be packed. ``context``: most tokens of a
    conversation; 0: not known."""

    weights: int
    linear: int
    ways: int
    layers: int
    hidden: int
    intermediate: int
    cached: int
    vocabulary: int
    plain: bool = False
    packable: bool = False
    context: int = 0


@dataclass(frozen=True)
class MemoryNeed:
    """Memory in bytes that a training or generating needs, by purpose."""

    weights: float
    adapter: float
    optimizer: float
    activations: float
    logits: float

    @property
    def total(self) -> float:
        """All of it, and what is lost between blocks."""
        return SPARE * float(sum(vars(self).values()))

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {gib(value)}" for name, value in vars(self).items())
        return f"about {gib(self.total)} GiB ({parts})"


def shape_of(folder: Path) -> Shape:
    """From config.json and the headers of the safetensors files; no weight is read."""
    config = ModelConfig.of_folder(folder)
    sizes = {name: shape for file in sorted(folder.glob("*.safetensors")) for name, shape in _header(file)}
    linear = {name: shape for name, shape in sizes.items() if _adapted.search(name)}
    weights = sum(map(math.prod, sizes.values()))
    return Shape(
        weights=weights,
        linear=sum(map(math.prod, linear.values())),
        ways=sum(map(sum, linear.values())),
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        intermediate=config.intermediate_size,
        cached=config.groups * config.head_width,
        vocabulary=config.vocab_size,
        plain=config.architectures == ["Qwen2ForCausalLM"] and weights <= LARGEST,
        packable=is_plain(config),
        context=config.max_position_embeddings or 0,
    )


def need(
    shape: Shape,
    *,
    rank: int,
    rows: int,
    tokens: int,
    learned: int,
    precision: str,
    quantized: bool,
    checkpointing: bool,
    function: bool = False,
) -> MemoryNeed:
    """The bytes of one step on ``rows`` trajectories of ``tokens`` tokens, ``learned`` of them the model's. With b
    bytes a number (2 in half precision, 4 else), N = rows x tokens, h hidden, i intermediate, V vocabulary, L layers:

        weights      b x all weights; in 4 bits 0.516 a weight of the linear layers
        adapter      (4 + 4) x rank x (inputs + outputs of the linear layers): LoRA and its gradients, single precision;
                     of rank 0 (4 + 4) x all weights
        optimizer    as large: AdamW's two memories
        activations  N x one layer's x L, or with gradient checkpointing N x (b h L + one layer's + w). One layer's is
                     b (8 h + 4 i): what its backward pass needs; in half precision and 12 h: what norms keep in
                     single. w is (4 + b) i, gradients of two of the widest; in half precision peft makes a LoRA's
                     input single. Without checkpointing w counts where it is more than the logits, gone by then
        logits       n x V x 12, in half precision 14: log-softmax, its gradient and theirs in single precision; n is
                     how many tokens' are held at once, at most rows x own. With checkpointing they are gone before a
                     layer is computed again: only what they need beyond one layer counts

    That is through transformers. A model that is computed as a ``function`` holds the weights of its linear layers and
    of its head once more, changed by the adapter.
    Settings that change it: rows ``micro_batch``, tokens ``max_tokens`` and ``max_turns``, b ``precision``.
    """
    size, trained = BYTES[precision], 8.0 * (rank * shape.ways or shape.weights)
    kept, logits = _kept(shape, rows * tokens, rows * learned, size, checkpointing)
    weights = _frozen(shape, size, quantized) + (_copied(shape, shape.linear) if function else 0.0)
    return MemoryNeed(weights, trained, trained, kept, logits)


def _kept(shape: Shape, count: int, learned: int, size: float, checkpointing: bool) -> tuple[float, float]:
    """(activations, logits) of ``need`` for ``count`` tokens, ``learned`` of them the model's."""
    backward = size * (8 * shape.hidden + 4 * shape.intermediate)  # bytes a token that one layer's needs
    layer = backward + (12 * shape.hidden if size < 4 else 0)
    widest = count * shape.intermediate * (4.0 + size)
    computed = min(learned, at_once(shape.vocabulary))
    logits = computed * shape.vocabulary * (12.0 + (size if size < 4 else 0.0))
    if checkpointing:
        again = count * layer + widest
        return count * size * shape.hidden * shape.layers + again, max(0.0, logits - again)
    return count * layer * shape.layers + max(0.0, widest - logits), logits


def need_to_generate(
    shape: Shape, *, rows: int, prompt: int, tokens: int, precision: str, quantized: bool, function: bool = False
) -> MemoryNeed:
    """Estimate the bytes of ``rows`` turns of ``tokens`` tokens after prompts of ``prompt``; names as for ``need``:

    weights      as for training
    activations  2 b c L rows (prompt + tokens), keys and values of every layer, c numbers each a token, once more for
                 the layer that grows; and rows x prompt x b (3 i + 2 h), what is alive in a layer that reads prompts
    logits       rows x V x (b + 12): of one token each, their single-precision copy and what samples from it

    That is through transformers; ``_function_generates`` has the other.
    """
    if function:
        return _function_generates(shape, rows, prompt, tokens)
    size = BYTES[precision]
    cache = 2.0 * size * shape.cached * (shape.layers + 1) * rows * (prompt + tokens)
    read = size * rows * prompt * (3 * shape.intermediate + 2 * shape.hidden)
    logits = rows * shape.vocabulary * (size + 12.0)
    return MemoryNeed(_frozen(shape, size, quantized), 0.0, 0.0, cache + read, logits)


def _function_generates(shape: Shape, rows: int, prompt: int, tokens: int) -> MemoryNeed:
    """As ``need_to_generate`` where a model is a function (``agent0.infra.engine.decoding``) and all prompts differ:

    weights      4 x all weights, and once more those of the head and of the layers that a norm is multiplied into
    activations  ``decoded``
    logits       as above
    """
    mixed = shape.layers * shape.hidden * (shape.hidden + 2 * shape.cached + 2 * shape.intermediate)
    weights = 4.0 * shape.weights + _copied(shape, mixed)
    return MemoryNeed(weights, 0.0, 0.0, decoded(shape, rows, prompt, tokens), rows * shape.vocabulary * 16.0)


def decoded(shape: Shape, rows: int, prompt: int, tokens: int) -> float:
    """Bytes that ``rows`` turns hold without transformers, and their prompts while they are read, some at a time:

    8 c (L + 1) rows (prompt + tokens + room), keys and values of every layer, once more of the one that is copied;
    (8 c L + 4 (3 i + 2 h)) x tokens that are read at once, 2,048 or a prompt
    """
    kept = 8.0 * shape.cached * (shape.layers + 1) * rows * (prompt + tokens + ROOM)
    read = 8.0 * shape.cached * shape.layers + 4.0 * (3 * shape.intermediate + 2 * shape.hidden)
    return kept + read * min(rows * prompt, max(prompt, READ))


def _copied(shape: Shape, layers: int) -> float:
    """Bytes of the copies that a function of the weights needs: of so many weights of ``layers``, and of the head."""
    return 4.0 * (layers + shape.vocabulary * shape.hidden)


def precision_of(device: str, setting: str) -> str:
    """What weights and activations are kept in: ``setting``, or single precision on a CPU and bfloat16 on a GPU."""
    return setting if setting != "auto" else "fp32" if device == "cpu" else "bf16"


def trained_precision(device: str, setting: str) -> str:
    """What weights are kept in while adapters for them are trained: whole numbers have no gradients."""
    return precision_of(device, "auto" if setting == "int8" else setting)


def as_function(shape: Shape, precision: str, quantized: bool) -> bool:
    """Whether a model of ``shape`` is computed as a function of its weights there."""
    return shape.plain and precision == "fp32" and not quantized


def packed(folder: Path, device: str, quantization: str, precision: str) -> bool:
    """Whether the model in ``folder`` is computed with its matrices packed (``agent0.infra.engine.formats``).

    Raises:
        ConfigError: ``int8`` is asked for where it cannot be had.
    """
    config = ModelKind.of_folder(folder)
    if not is_plain(config) and precision != "int8":
        return False
    if precision == "int8" and not (device == "cpu" and not quantization and is_plain(config)):
        why = f"{config.architectures} on {device}: that is for Qwen2 and Llama models on a CPU."
        raise ConfigError("The model is not computed in int8.", why, "Leave run.student.precision at auto.")
    return is_packed(shape_of(folder), device, bool(quantization), precision)


def is_packed(shape: Shape, device: str, quantized: bool, precision: str) -> bool:
    """Whether a model of ``shape`` is: on a CPU, where it has no more than what is computed there, and is too large to
    be a function or asked for in ``int8``."""
    can = shape.packable and device == "cpu" and not quantized and precision != "fp16"
    return can and (precision == "int8" or shape.weights > LARGEST)


def is_plain(config: ModelKind) -> bool:
    """Whether ``config`` of a model names blocks of attention with turned positions and of gated products, norms before
    each, and nothing beside."""
    return (
        config.architectures in [[kind] for kind in PLAIN]
        and config.hidden_act == "silu"
        and config.rotation.kind == "default"
        and not config.use_sliding_window
        and not config.mlp_bias
        and config.quantization_config is None
    )


def _frozen(shape: Shape, size: float, quantized: bool) -> float:
    return size * (shape.weights - shape.linear) + (NF4 if quantized else size) * shape.linear


def at_once(vocabulary: int) -> int:
    """How many tokens' logits are held at once."""
    return max(1, LOGITS // vocabulary)


def gib(size: float) -> str:
    """Format ``size`` in bytes as a number of GiB, with two digits after the point."""
    return f"{size / 2**30:.2f}"


def _header(file: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    """(name, shape) of every tensor in a safetensors file: eight bytes of length, then JSON."""
    with file.open("rb") as opened:
        (length,) = struct.unpack("<Q", opened.read(8))
        header = json.loads(opened.read(length))
    for name, entry in header.items():
        if name != "__metadata__":
            yield name, tuple(entry["shape"])
