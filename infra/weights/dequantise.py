"""The model of a GGUF file as a folder that transformers loads: configuration, tokenizer, chat template, and weights
in float16, which rounds them 30 times less than the coarsest kind of numbers in such files does."""

import json
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from agent0.errors import DependencyError, OperationError
from agent0.infra.storage.files import known_digest, whole_file
from agent0.infra.weights.gguf_header import DOWNLOAD, GgufHeader, GgufTensor, Value, read_header
from agent0.infra.weights.gguf_text import tokenizer_files, unknown_tokenizer
from agent0.infra.weights.model_config import ModelConfig
from agent0.infra.weights.safetensors_io import Array, write

if TYPE_CHECKING:
    from gguf import GGMLQuantizationType

FAMILIES = {"qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "llama": "LlamaForCausalLM"}
"""llama.cpp's name of an architecture -> that of a configuration."""
TOP = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""A tensor's name in a GGUF file -> that of transformers, of the model and of each of its layers."""
FREQUENCIES = "rope_freqs.weight"
"""By what Llama 3's rotation divides its frequencies; a configuration names the formula instead."""
HEAD, EMBEDDING = "output.weight", "token_embd.weight"
SAME = 0.25
"""Of head and embedding: difference by size below which they are one matrix, rounded twice. Two kinds of four bits
differ by .1, two matrices by 1.4."""
COMPARED, ROWS = 1024, 8192
"""Rows that are compared, and rows that are dequantised at once."""
NOTE, WEIGHTS = "made_of.json", "model.safetensors"
UNKNOWN = "This model is of a form that is not known here."
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
PLAIN = {"F32": np.float32, "F16": np.float16}
"""Kinds of numbers that are no blocks."""


def unusable(file: Path) -> str:
    """Why the model of a GGUF ``file`` cannot be written as a folder; empty where it can.

    Raises:
        DependencyError: it is no GGUF file, or is cut short.
    """
    return _unusable(file.absolute(), *_stamp(file).values())


@lru_cache(maxsize=16)
def _unusable(file: Path, size: int, mtime_ns: int) -> str:
    header = _header(file)
    for name, tensor in header.tensors.items():
        with suppress(OperationError):  # numbers whose size is not known
            if tensor.start + _bytes(tensor) > size:
                raise DependencyError(f"The model {file.name}", f"It ends within {name}.", DOWNLOAD)
    family = str(header.fields.get("general.architecture", "unknown"))
    if family not in FAMILIES:
        return f"Its architecture is {family}; {', '.join(FAMILIES)} are known."
    if why := unknown_tokenizer(header.fields):
        return why
    try:
        _names(header)
        for tensor in header.tensors.values():
            _kind(tensor)
        configuration(file)
    except OperationError as error:
        return error.why
    return ""


def folder_of(file: Path) -> Path:
    """Where the folder of a GGUF ``file`` is, once it was made: beside it."""
    return file.with_name(f"{file.stem}-float16")


def has_weights(file: Path) -> bool:
    """Whether the folder of a GGUF ``file`` is there with its weights, and of this file."""
    return (folder_of(file) / WEIGHTS).is_file() and _is_of(folder_of(file), file)


def text_folder(file: Path) -> Path:
    """The folder of a GGUF ``file`` with at least configuration, tokenizer and chat template, made where it is missing
    or of another file.

    Raises:
        OperationError: the file's model is of a kind that is not known here.
        DependencyError: it is cut short, or the folder cannot be written.
    """
    folder = folder_of(file)
    if _is_of(folder, file):
        return folder
    if why := unusable(file):
        raise OperationError(f"{file.name} cannot be written as a folder.", why, "It can be served, not trained.")
    fresh = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    texts = {"config.json": json.dumps(configuration(file), indent=1), **tokenizer_files(_header(file).fields)}
    texts[NOTE] = json.dumps({"sha256": known_digest(file), **_stamp(file)}, indent=1)
    try:
        fresh.mkdir()
        for name, text in texts.items():
            (fresh / name).write_text(text, encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        fresh.replace(folder)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        fix = "Copy the file to a folder that you can write to: `agent0 model get` has one."
        raise DependencyError(f"The folder {folder}", f"{error.strerror}.", fix) from error
    return folder


def dequantised(file: Path) -> Path:
    """The whole folder of a GGUF ``file``, weights included, made where it is missing; errors as for ``text_folder``.
    Same file, same bytes."""
    folder = text_folder(file)
    if not (folder / WEIGHTS).is_file():
        _write_weights(file, folder)
    return folder


def _header(file: Path) -> GgufHeader:
    return _read(file.absolute(), *_stamp(file).values())


@lru_cache(maxsize=4)
def _read(file: Path, size: int, mtime_ns: int) -> GgufHeader:
    return read_header(file)


def _stamp(file: Path) -> dict[str, int]:
    status = file.stat()
    return {"bytes": status.st_size, "mtime_ns": status.st_mtime_ns}


def _is_of(folder: Path, file: Path) -> bool:
    """Whether ``folder`` was made of ``file`` as it is now."""
    try:
        note = json.loads((folder / NOTE).read_bytes())
        return _stamp(file).items() <= note.items() or bool(note["sha256"] == known_digest(file))
    except (OSError, ValueError, KeyError, AttributeError):
        return False


def _write_weights(file: Path, folder: Path) -> None:
    tensors, names = _header(file).tensors, _names(_header(file))
    config = ModelConfig.of_folder(folder)
    if HEAD in names and config.tie_word_embeddings:
        coarser = min(HEAD, EMBEDDING, key=lambda name: _bytes(tensors[name]))
        del names[coarser]
        names[HEAD if coarser == EMBEDDING else EMBEDDING] = TOP[EMBEDDING]
    sources = {new: name for name, new in sorted(names.items(), key=lambda pair: pair[1])}
    shapes = {new: tensors[name].shape for new, name in sources.items()}
    _require_room(folder, 2 * sum(map(prod, shapes.values())))
    try:
        with whole_file(folder / WEIGHTS) as fresh:
            write(fresh, shapes, lambda new: _placed(_values(file, tensors[sources[new]]), sources[new], config), "F16")
    except OSError as error:
        raise DependencyError(f"The folder {folder}", f"{error.strerror}.", "Free some space.") from error


def _require_room(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < size * 1.05:
        why = f"{folder.parent} has {free >> 20:,} MiB, the weights of {folder.name} need {size >> 20:,}."
        raise DependencyError("disk space", why, "Free some space.")


def _names(header: GgufHeader) -> dict[str, str]:
    """Name of every tensor in the file -> its name for transformers.

    Raises:
        OperationError: one has no name there, or one is missing.
    """
    names, odd = dict[str, str](), list[str]()
    biased = {"attn_q", "attn_k", "attn_v"} if header.fields["general.architecture"] == "qwen2" else set()
    for name in header.tensors:
        part, _, end = name.rpartition(".")
        number, _, layer = part.removeprefix("blk.").partition(".")
        if name in TOP:
            names[name] = TOP[name]
        elif part.startswith("blk.") and layer in LAYER and (end == "weight" or layer in biased):
            names[name] = f"model.layers.{number}.{LAYER[layer]}.{end}"
        elif name != FREQUENCIES:
            odd.append(name)
    if odd:
        raise OperationError(UNKNOWN, f"It has a tensor {odd[0]}, not known here.")
    if missing := {EMBEDDING, "output_norm.weight"} - names.keys():
        raise OperationError(UNKNOWN, f"It has no tensor {min(missing)}.")
    return names


def configuration(file: Path) -> dict[str, object]:
    """The config.json of the model in a GGUF ``file``.

    Raises:
        OperationError: a part of it is computed in a way that is not known here.
    """
    header = _header(file)
    fields, family = header.fields, str(header.fields["general.architecture"])

    def number(name: str, otherwise: float | None = None) -> float:
        value = fields.get(f"{family}.{name}", otherwise)
        if not isinstance(value, int | float):
            raise OperationError(UNKNOWN, f"It says nothing of {family}.{name}.")
        return value

    hidden, heads = int(number("embedding_length")), int(number("attention.head_count"))
    head = int(number("attention.key_length", hidden // heads))
    _require_plain(fields, family, head)
    theta = number("rope.freq_base", 10_000.0)
    return {
        "architectures": [FAMILIES[family]],
        "model_type": family,
        "dtype": "float16",
        "hidden_act": "silu",
        "hidden_size": hidden,
        "head_dim": head,
        "num_hidden_layers": int(number("block_count")),
        "intermediate_size": int(number("feed_forward_length")),
        "num_attention_heads": heads,
        "num_key_value_heads": int(number("attention.head_count_kv", heads)),
        "rms_norm_eps": float(f"{number('attention.layer_norm_rms_epsilon'):.6g}"),  # stored in single precision
        "max_position_embeddings": int(number("context_length")),
        "rope_parameters": {"rope_theta": theta, **_rope(file, theta, head)},
        "tie_word_embeddings": _is_tied(file),
        "vocab_size": header.tensors[EMBEDDING].shape[0],
        "bos_token_id": fields.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": fields.get("tokenizer.ggml.eos_token_id"),
    }


def _require_plain(fields: Mapping[str, Value], family: str, head: int) -> None:
    """Raises OperationError where the model has what its family does not have by itself."""
    odd = {
        "experts": fields.get(f"{family}.expert_count"),
        "a sliding window": fields.get(f"{family}.attention.sliding_window"),
        "a rotation of a part of each head": fields.get(f"{family}.rope.dimension_count", head) != head,
        "a scaled rotation": fields.get(f"{family}.rope.scaling.type", "none") != "none",
    }
    if unsupported := [name for name, value in odd.items() if value]:
        raise OperationError(UNKNOWN, f"It has {', '.join(unsupported)}.")


def _rope(file: Path, theta: float, head: int) -> dict[str, object]:
    """How the rotation of positions is scaled: by Llama 3's formula, of which a file holds what comes out.

    Raises:
        OperationError: by another one.
    """
    tensor = _header(file).tensors.get(FREQUENCIES)
    if tensor is None:
        return {"rope_type": "default"}
    divisors, wavelength = _values(file, tensor), 2 * np.pi * theta ** (np.arange(0, head, 2) / head)
    smooth = np.clip((LLAMA3["original_max_position_embeddings"] / wavelength - 1) / 3, 0, 1)
    for factor in (8.0, 32.0):
        if np.allclose(divisors, 1 / ((1 - smooth) / factor + smooth), rtol=1e-3):
            return {"rope_type": "llama3", "factor": factor, **LLAMA3}
    raise OperationError(UNKNOWN, f"Its {FREQUENCIES} is not of Llama 3's formula.")


def _is_tied(file: Path) -> bool:
    """Whether head and embedding are one matrix: the file has no head, or one that is equal up to rounding."""
    tensors = _header(file).tensors
    if HEAD not in tensors:
        return True
    step = max(1, tensors[HEAD].shape[0] // COMPARED)
    head, embedding = (_values(file, tensors[name], step) for name in (HEAD, EMBEDDING))
    return bool(np.linalg.norm(head - embedding) < SAME * np.linalg.norm(head))


def _values(file: Path, tensor: GgufTensor, step: int = 1) -> Array:
    """Every ``step``-th row of a tensor as float32."""
    from gguf.quants import dequantize

    data, kind = np.memmap(file, np.uint8, "r"), _kind(tensor)
    raw = data[tensor.start : tensor.start + _bytes(tensor)].reshape(prod(tensor.shape[:-1]), -1)[::step]
    values = np.empty((len(raw), tensor.shape[-1]), np.float32)
    for row in range(0, len(raw), ROWS):
        part = np.ascontiguousarray(raw[row : row + ROWS])
        values[row : row + ROWS] = dequantize(part.view(PLAIN.get(kind.name, np.uint8)), kind)
    return values.reshape(-1, *tensor.shape[1:]) if len(tensor.shape) > 1 else values.reshape(-1)


def _bytes(tensor: GgufTensor) -> int:
    from gguf import GGML_QUANT_SIZES

    block, size = GGML_QUANT_SIZES[_kind(tensor)]
    return prod(tensor.shape) // int(block) * int(size)


def _kind(tensor: GgufTensor) -> "GGMLQuantizationType":
    """Raises OperationError where the package gguf does not know the kind of numbers."""
    from gguf import GGMLQuantizationType

    try:
        return GGMLQuantizationType(tensor.kind)
    except ValueError as error:
        raise OperationError(UNKNOWN, f"It has numbers of the kind {tensor.kind}, not known here.") from error


def _placed(values: Array, name: str, config: ModelConfig) -> Array:
    """``values`` of the tensor ``name`` with rows as transformers has them: of Llama llama.cpp turns neighbours."""
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.groups}
    layer = name.split(".")[-2]
    if config.model_type != "llama" or layer not in heads:
        return values
    neighbours = values.reshape(heads[layer], -1, 2, *values.shape[1:])
    return neighbours.swapaxes(1, 2).reshape(values.shape)
