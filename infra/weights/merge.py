"""An adapter as numbers: which weights it changes, whether it fits a base, and the base with it in: LoRA's pairs added,
a full adapter's weights in the place of its base's.

``W + scale * B @ A`` with scale alpha / r, or alpha / sqrt(r) where the adapter is rank-stabilised.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np

from agent0.errors import OperationError
from agent0.infra.engine.adapter import CONFIG, FULL, LORA, WEIGHTS, files, lora_settings
from agent0.infra.weights.safetensors_io import Array, Weights, names, write

PREFIX = "base_model.model."
EMBEDDINGS, HEAD = "model.embed_tokens.weight", "lm_head.weight"
KINDS = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
UNSUPPORTED = ("use_dora", "modules_to_save", "alpha_pattern", "fan_in_fan_out", "lora_bias", "use_qalora")
"""Settings of an adapter that make it more than two matrices beside a linear layer."""
COPIED = (
    "tokenizer.json",
    "tokenizer_config.json",
    "generation_config.json",
    "chat_template.jinja",
    "special_tokens_map.json",
    "vocab.json",
    "merges.txt",
)
"""What a merged folder has of the base's besides weights and configuration."""


@dataclass(frozen=True)
class Lora:
    """Pairs (A of shape [r, in], B of shape [out, r]) by the name of the weight that they change."""

    pairs: Mapping[str, tuple[Array, Array]]
    alpha: float
    stabilised: bool = False

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the weights that it changes, by their names."""
        return {name: (b.shape[0], a.shape[1]) for name, (a, b) in self.pairs.items()}

    def alpha_of(self, name: str) -> float:
        """The alpha with which alpha / r is this pair's scale: the one rule that llama.cpp knows."""
        return self.alpha * sqrt(self.pairs[name][0].shape[0]) if self.stabilised else self.alpha

    def change(self, name: str) -> Array:
        """What is added to the weight ``name``, of its shape [out, in]; float32."""
        a, b = self.pairs[name]
        delta: Array = (b @ a) * (self.alpha_of(name) / a.shape[0])
        return delta


@dataclass(frozen=True)
class MergedWeights:
    """All weights of a model, by the names that its base has for them."""

    weights: Weights

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the weights that it replaces, by their names."""
        return {name: self.weights.shape(name) for name in self.weights}

    def read(self, name: str) -> Array:
        """The weight that stands for the base's ``name``; a head that is not held is tied to the embeddings."""
        return self.weights.read(EMBEDDINGS if name == HEAD and HEAD not in self.weights else name)


def read_adapter(data: bytes) -> Lora | MergedWeights:
    """The adapter in the tar ``data``.

    Raises:
        OperationError: it is none, or does more than two matrices beside a linear layer can.
    """
    try:
        members = files(data)
        settings = json.loads(members[CONFIG])
        weights = Weights({WEIGHTS: members[WEIGHTS]})
        if settings.get("peft_type") == FULL:
            return MergedWeights(weights)
        alpha, stabilised = float(settings["lora_alpha"]), bool(settings.get("use_rslora"))
    except (KeyError, ValueError, TypeError) as error:
        raise OperationError("This artifact is no adapter.", f"{type(error).__name__}: {error}"[:200]) from error
    return _lora(settings, weights, alpha, stabilised)


def read_lora(data: bytes) -> Lora:
    """The adapter in the tar ``data``, which is of LoRA; errors as for ``read_adapter``."""
    adapter = read_adapter(data)
    if isinstance(adapter, MergedWeights):
        raise not_separable()
    return adapter


def not_separable() -> OperationError:
    """Make the error for a full adapter where low-rank pairs are required."""
    why = "It is a full adapter: all weights of the model, not pairs to add to a base."
    fix = "Take the merged form: --format gguf-merged or merged, or push with --as merged."
    return OperationError("This checkpoint cannot be served beside its base.", why, fix)


def _lora(settings: Mapping[str, object], weights: Weights, alpha: float, stabilised: bool) -> Lora:
    odd = [name for name in UNSUPPORTED if settings.get(name)]
    odd += ["bias"] * (settings.get("bias", "none") != "none")
    if odd:
        why = f"It uses {', '.join(odd)}."
        raise OperationError("This adapter cannot be exported.", why, "Train it as plain LoRA, without these settings.")
    return Lora(_pairs(weights), alpha, stabilised)


def _pairs(weights: Weights) -> dict[str, tuple[Array, Array]]:
    modules = {name.removesuffix(".lora_A.weight") for name in weights if name.endswith(".lora_A.weight")}
    expected = {f"{module}.lora_{side}.weight" for module in modules for side in "AB"}
    if odd := expected.symmetric_difference(weights):
        raise OperationError("This adapter cannot be exported.", f"It is more, or less, than pairs: {names(odd)}.")
    out = {}
    for module in sorted(modules):
        a, b = (weights.read(f"{module}.lora_{side}.weight") for side in "AB")
        if a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[1]:
            raise OperationError("This adapter cannot be exported.", f"{module}: {a.shape} and {b.shape} are no pair.")
        out[f"{module.removeprefix(PREFIX)}.weight"] = (a, b)
    return out


def check_fit(adapter: Lora | MergedWeights, base: Weights) -> None:
    """Raises OperationError where ``adapter`` changes a weight that ``base`` lacks or has in another shape, or is to
    replace all of them and lacks one."""
    fix = "Name the base that it was trained on with --base."
    shapes = adapter.shapes
    if gone := [name for name in shapes if name not in base]:
        raise OperationError("The adapter does not fit this base.", f"The base has no {names(gone)}.", fix)
    whole = isinstance(adapter, MergedWeights)
    if whole and (gone := [name for name in base if name not in shapes and name != HEAD]):
        raise OperationError("The adapter does not fit this base.", f"The adapter has no {names(gone)}.", fix)
    for name, shape in shapes.items():
        if base.shape(name) != shape:
            why = f"{name} is {base.shape(name)} in the base, {shape} in the adapter."
            raise OperationError("The adapter does not fit this base.", why, fix)


def merged(adapter: Lora | MergedWeights, base: Weights) -> Callable[[str], Array]:
    """Reads a weight of ``base`` with what ``adapter`` adds to it or puts in its place.

    Raises:
        OperationError: it does not fit.
    """
    check_fit(adapter, base)
    if isinstance(adapter, MergedWeights):
        return adapter.read
    lora = adapter

    def read(name: str) -> Array:
        weight = base.read(name)
        return weight + lora.change(name) if name in lora.pairs else weight

    return read


def save_merged(folder: Path, adapter: Lora | MergedWeights, out: Path, kind: str = "float32") -> None:
    """A folder of a Hugging Face model at ``out`` (an existing, empty folder): the base in ``folder`` with ``adapter``
    in it, in numbers of ``kind``. The base's own files are split as they were."""
    base = Weights.of_folder(folder)
    read = merged(adapter, base)
    for file, tensors in base.files.items():
        write(out / file, {name: base.shape(name) for name in tensors}, read, KINDS[kind])
    if len(base.files) > 1:
        (out / "model.safetensors.index.json").write_text(_index(base), encoding="utf-8")
    config: dict[str, object] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config.pop("torch_dtype", None)
    config["dtype"] = kind
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    for name in COPIED:
        if (folder / name).is_file():
            shutil.copyfile(folder / name, out / name)


def _index(base: Weights) -> str:
    placed = {name: file for file, names in base.files.items() for name in names}
    return json.dumps({"metadata": {}, "weight_map": placed}, indent=1) + "\n"


QUERIES = "q_proj"


def write_trial(folder: Path, out: Path, rank: int) -> None:
    """Write an adapter of the first layer's queries of the model in ``folder`` to ``out``, by peft's names. Its weights
    are large, so that it has opinions."""
    base = Weights.of_folder(folder)
    weight = min(name for name in base if name.endswith(f".{QUERIES}.weight"))
    rows, columns = base.shape(weight)
    module, rng = PREFIX + weight.removesuffix(".weight"), np.random.default_rng(0)
    shapes = {f"{module}.lora_A.weight": (rank, columns), f"{module}.lora_B.weight": (rows, rank)}
    write(out / WEIGHTS, shapes, lambda name: rng.normal(0, 1, shapes[name]).astype(np.float32), "F32")
    settings = {"peft_type": LORA, "task_type": "CAUSAL_LM", **lora_settings(rank, 2 * rank)}
    (out / CONFIG).write_text(json.dumps(settings | {"target_modules": [QUERIES]}), encoding="utf-8")
