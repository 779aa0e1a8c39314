"""What memory a training will need, from a model's files alone: said, and weighed against what a GPU has, before
anything is loaded."""

import json
import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent0.errors import DependencyError, OperationError
from agent0.ports.training import TrainJob
from infra.engine.adapter import lora_settings
from infra.training.batches import longest_of, paths_of, rows_of
from infra.training.forward import at_once
from infra.training.launch.recipe import Recipe

BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0}
NF4 = 0.516
"""Bytes a weight in 4 bits, its doubly quantised scales included (4.127 bits, arXiv 2305.14314, section 3)."""
SPARE = 1.1
"""What allocators lose between blocks, and the driver keeps."""

_adapted = re.compile(rf"\.({'|'.join(lora_settings(1, 1)['target_modules'])})\.weight$")


@dataclass(frozen=True)
class Shape:
    """A model's sizes. ``linear``: weights of the layers that adapters and quantisation are for; ``ways``: their
    inputs and outputs added up, so that LoRA of rank r has r times as many weights. ``cached``: numbers that a layer
    keeps of a token's keys, and as many of its values."""

    weights: int
    linear: int
    ways: int
    layers: int
    hidden: int
    intermediate: int
    cached: int
    vocabulary: int


@dataclass(frozen=True)
class MemoryNeed:
    """GPU memory in bytes that a training needs, by purpose."""

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
        parts = ", ".join(f"{name} {_gib(value)}" for name, value in vars(self).items())
        return f"about {_gib(self.total)} GiB ({parts})"


def shape_of(folder: Path) -> Shape:
    """From config.json and the headers of the safetensors files; no weight is read."""
    config = json.loads((folder / "config.json").read_bytes())
    sizes = {name: shape for file in sorted(folder.glob("*.safetensors")) for name, shape in _header(file)}
    linear = {name: shape for name, shape in sizes.items() if _adapted.search(name)}
    heads = int(config["num_attention_heads"])
    width = int(config.get("head_dim") or config["hidden_size"] // heads)
    return Shape(
        weights=sum(map(math.prod, sizes.values())),
        linear=sum(map(math.prod, linear.values())),
        ways=sum(map(sum, linear.values())),
        layers=int(config["num_hidden_layers"]),
        hidden=int(config["hidden_size"]),
        intermediate=int(config["intermediate_size"]),
        cached=int(config.get("num_key_value_heads") or heads) * width,
        vocabulary=int(config["vocab_size"]),
    )


def need(
    shape: Shape,
    *,
    rank: int,
    rows: int,
    tokens: int,
    own: int,
    precision: str,
    quantized: bool,
    checkpointing: bool,
) -> MemoryNeed:
    """Estimate the bytes of one step on ``rows`` trajectories of ``tokens`` tokens, ``own`` of them the model's. With b
    bytes a number (2 in half precision, 4 else), N = rows x tokens, h hidden, i intermediate, V vocabulary, L layers:

        weights      b x all weights; in 4 bits 0.516 a weight of the linear layers
        adapter      (4 + 4) x rank x (inputs + outputs of the linear layers): LoRA and its gradients, single precision
        optimizer    8 x rank x (inputs + outputs): AdamW's two memories
        activations  N x one layer's x L, or with gradient checkpointing N x (b h L + one layer's + w). One layer's is
                     b (8 h + 4 i): what its backward pass needs; in half precision and 12 h: what norms keep in
                     single. w is what more a layer holds that is computed again: 8 i, gradients of two of the widest;
                     in half precision (4 + b) i, as peft makes a LoRA's input single and autocast makes it half again
        logits       n x V x 12, in half precision 14: log-softmax, its gradient and theirs in single precision; n is
                     how many tokens' are held at once (``forward.at_once``), at most rows x own. With checkpointing
                     they are gone before a layer is computed again: only what they need beyond one layer counts

    That is through transformers: a model that is computed as a function, small and on a CPU, holds its weights twice.
    Settings that change it: rows ``micro_batch``, tokens ``max_tokens`` and ``max_turns``, b ``precision``.
    """
    size, count = BYTES[precision], rows * tokens
    trained, layer = rank * shape.ways, _layer(shape, size)
    held = min(rows * own, at_once(shape.vocabulary))
    logits = held * shape.vocabulary * (12.0 + (size if size < 4 else 0.0))
    if checkpointing:
        again = count * (layer + shape.intermediate * (4.0 + size))
        kept, logits = count * size * shape.hidden * shape.layers + again, max(0.0, logits - again)
    else:
        kept = count * layer * shape.layers
    return MemoryNeed(_frozen(shape, size, quantized), 8.0 * trained, 8.0 * trained, kept, logits)


def _layer(shape: Shape, size: float) -> float:
    """Bytes a token that one layer's backward pass needs."""
    return size * (8 * shape.hidden + 4 * shape.intermediate) + (12 * shape.hidden if size < 4 else 0)


def need_to_generate(
    shape: Shape, *, rows: int, prompt: int, tokens: int, precision: str, quantized: bool
) -> MemoryNeed:
    """Estimate the bytes of ``rows`` turns of ``tokens`` tokens after prompts of ``prompt``; names as for ``need``:

    weights      as for training
    activations  2 b c L rows (prompt + tokens), keys and values of every layer, c numbers each a token, once more for
                 the layer that grows; and rows x prompt x b (3 i + 2 h), what is alive in a layer that reads prompts
    logits       rows x V x (b + 12): of one token each, their single-precision copy and what samples from it
    """
    size = BYTES[precision]
    cache = 2.0 * size * shape.cached * (shape.layers + 1) * rows * (prompt + tokens)
    read = size * rows * prompt * (3 * shape.intermediate + 2 * shape.hidden)
    logits = rows * shape.vocabulary * (size + 12.0)
    return MemoryNeed(_frozen(shape, size, quantized), 0.0, 0.0, cache + read, logits)


def _frozen(shape: Shape, size: float, quantized: bool) -> float:
    return size * (shape.weights - shape.linear) + (NF4 if quantized else size) * shape.linear


def memory_need_of(
    folder: Path, job: TrainJob, recipe: Recipe, device: str, quantization: str, precision: str
) -> MemoryNeed:
    """Estimate the GPU memory that ``job`` needs at its largest step."""
    shape = shape_of(folder)
    samples = [*job.samples, *job.replay]
    tokens = longest_of(samples) if samples else 1
    rows = min(rows_of(tokens, shape.vocabulary, recipe.micro_batch), recipe.minibatch)
    asked = recipe.gradient_checkpointing
    checkpointing = asked == "on" or (asked == "auto" and device != "cpu")
    return need(
        shape,
        rank=recipe.rank,
        rows=rows,
        tokens=tokens,
        own=max((sum(path.mask) for path in paths_of(samples)), default=1),
        precision=precision,
        quantized=bool(quantization),
        checkpointing=checkpointing,
    )


def check_room(folder: Path, job: TrainJob, recipe: Recipe, device: str, quantization: str, precision: str) -> str:
    """What ``job`` needs, in words, where the GPU has as much free.

    Raises:
        DependencyError: there is no GPU; OperationError: it has no room, with the setting to change.
    """
    import torch

    if not torch.cuda.is_available():
        fix = "Set run.student.device and run.teacher.device to cpu, or install a driver and torch for your GPU."
        raise DependencyError(f"The device {device}", "torch sees no GPU.", fix)
    found = memory_need_of(folder, job, recipe, device, quantization, precision)
    free, _ = torch.cuda.mem_get_info(device)
    return fit_or_refuse(found, float(free), device, quantization)


def fit_or_refuse(found: MemoryNeed, free: float, device: str, quantization: str) -> str:
    """Return a sentence such as ``training needs about 5.1 GiB (…) of 7.2 free on cuda``.

    Raises:
        OperationError: it needs more than there is.
    """
    sentence = f"training needs {found} of {_gib(free)} free on {device}"
    if found.total > free:
        raise OperationError(
            "This training does not fit on the GPU.", f"It {sentence[9:]}.", _remedy(found, quantization)
        )
    return sentence


def _remedy(found: MemoryNeed, quantization: str) -> str:
    if found.activations + found.logits > found.weights:
        return "Set run.training.<role>.micro_batch = 1 and gradient_checkpointing = on; then lower max_tokens."
    if not quantization:
        return "Set run.<role>.quantization = 4bit, or choose a smaller model."
    return "Choose a smaller model, or end what else uses this GPU."


def _gib(size: float) -> str:
    return f"{size / 2**30:.2f}"


def _header(file: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    """(name, shape) of every tensor in a safetensors file: eight bytes of length, then JSON."""
    with file.open("rb") as opened:
        (length,) = struct.unpack("<Q", opened.read(8))
        header: dict[str, Any] = json.loads(opened.read(length))
    for name, entry in header.items():
        if name != "__metadata__":
            yield name, tuple(entry["shape"])
