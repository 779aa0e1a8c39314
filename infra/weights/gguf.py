"""Models and adapters of the Qwen2, Qwen3 and Llama families as GGUF files, the form that llama.cpp and Ollama serve.

Everything is float32, so that what is served is what was trained, but for files that a server is to quantise. A matrix
keeps its shape, because GGUF names its columns first. transformers turns the halves of a head against each other; for
Qwen2 llama.cpp does so, too, for Llama it turns neighbours, so there the rows of queries and keys change their places.
Same weights, same bytes.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agent0.errors import DependencyError, OperationError
from agent0.infra.weights.merge import Lora, MergedWeights, check_fit, not_separable
from agent0.infra.weights.model_config import ModelConfig
from agent0.infra.weights.safetensors_io import Array, Weights, names

if TYPE_CHECKING:
    from gguf import GGUFWriter, TensorNameMap

FAMILIES = {"Qwen2ForCausalLM": "qwen2", "Qwen3ForCausalLM": "qwen3", "LlamaForCausalLM": "llama"}
"""A configuration's name of an architecture -> llama.cpp's."""
NEIGHBOURS = "llama"
"""The one whose heads turn neighbours."""
QWEN3 = "qwen3"
"""The one whose heads may be wider than their share of a layer."""
QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TINY_SPLIT = r" ?[A-Z]?[a-z]+|[A-Z]|[0-9]{1,2}|, |[^\sA-Za-z0-9]|\s"
DIGITS_APART = "each digit, then as GPT-2"
SPLITS = {QWEN2_SPLIT: "qwen2", DIGITS_APART: "smollm"}
"""How a tokenizer cuts text before its merges -> llama.cpp's name for it: only names can be told, not expressions."""
NEAREST = {TINY_SPLIT: "superbpe"}
"""The name that comes nearest, of those tried by ``benchmarks.serving``: some texts are then cut elsewhere. Token ids
are taken as they are."""
OTHERS = "gpt-2"
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5
FULL, HALF = 0, 1
"""llama.cpp's numbers for files whose matrices are float32, and float16."""


def write_base(folder: Path, out: Path, read: Callable[[str], Array] | None = None, half: bool = False) -> None:
    """The model in ``folder``, tokenizer and chat template included, as the file ``out``; its weights as ``read``
    gives them, where that is given (a base with an adapter in it); its matrices in float16 where ``half``.

    Raises:
        OperationError: it is of another family, or of a form that llama.cpp computes otherwise.
    """
    config = _config(folder)
    weights = Weights.of_folder(folder)
    check_config(config)
    writer = _writer(out, config)
    writer.add_name(folder.name)
    writer.add_file_type(HALF if half else FULL)
    for key, value in model_metadata(config).items():
        if isinstance(value, float):
            writer.add_float32(f"{architecture(config)}.{key}", value)
        else:
            writer.add_uint32(f"{architecture(config)}.{key}", value)
    _add_tokenizer(writer, folder, config)
    named = _names(config)
    names = {_gguf_name(named, n): n for n in weights if not (n == "lm_head.weight" and config.tie_word_embeddings)}
    read_weight = read or weights.read
    shapes = {new: weights.shape(name) for new, name in names.items()}
    _write(writer, shapes, lambda n: _placed(read_weight(names[n]), names[n], config), half)


def write_adapter(lora: Lora | MergedWeights, folder: Path, out: Path) -> None:
    """``lora``, which fits the base in ``folder``, as the file ``out``.

    Raises:
        OperationError: it does not fit, is no LoRA, or the base is of another family.
    """
    if isinstance(lora, MergedWeights):
        raise not_separable()
    config = _config(folder)
    if not architecture(config):
        check_config(config)
    check_fit(lora, Weights.of_folder(folder))
    writer = _writer(out, config)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", _alpha(lora))
    named = _names(config)
    arrays: dict[str, Array] = {}
    for name, (a, b) in lora.pairs.items():
        gguf_name = _gguf_name(named, name)
        arrays |= {f"{gguf_name}.lora_a": a, f"{gguf_name}.lora_b": _placed(b, name, config)}
    _write(writer, {name: array.shape for name, array in arrays.items()}, arrays.__getitem__)


def _alpha(lora: Lora) -> float:
    """The one alpha of a file; scale is alpha / r there."""
    alphas = {lora.alpha_of(name) for name in lora.pairs}
    if len(alphas) > 1:
        raise OperationError("This adapter cannot be exported.", "Its ranks differ and it is rank-stabilised.")
    return alphas.pop() if alphas else lora.alpha


def _placed(values: Array, name: str, config: ModelConfig) -> Array:
    """``values``, whose rows are outputs of the weight ``name``, in the order that llama.cpp has them in."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.groups}
    layer = name.split(".")[-2]
    if architecture(config) != NEIGHBOURS or layer not in heads:
        return values
    halves = values.reshape(heads[layer], 2, values.shape[0] // heads[layer] // 2, *values.shape[1:])
    return halves.swapaxes(1, 2).reshape(values.shape)


def architecture(config: ModelConfig) -> str:
    """llama.cpp's name for the architecture of ``config``; empty where it is not written here."""
    return FAMILIES.get(config.architecture, "")


def check_config(config: ModelConfig) -> None:
    """Raises OperationError where a model with ``config`` (of config.json) would be computed otherwise by llama.cpp."""
    rope, wide = config.rotation, config.head_width != config.head_share
    odd = {
        "architecture": not architecture(config) and config.architecture,
        "biases": architecture(config) == NEIGHBOURS and bool(config.attention_bias or config.mlp_bias),
        "heads": architecture(config) != QWEN3 and wide and f"of {config.head_width}",
        "sliding window": bool(config.use_sliding_window),
        "activation": config.hidden_act != "silu" and config.hidden_act,
        "rope": rope.kind != "default" and (rope.rope_type or "scaled"),
        "context": not config.max_position_embeddings and "of no known length",
    }
    if unsupported := [f"{key} {value}" for key, value in odd.items() if value]:
        fix = "Export it with --format merged: that form keeps whatever the base has."
        raise OperationError("This base cannot be written as GGUF here.", f"It has {', '.join(unsupported)}.", fix)


def check_folder(folder: Path) -> None:
    """Raises OperationError where the model in ``folder`` cannot be written as GGUF here."""
    config = _config(folder)
    check_config(config)
    tokens(_json(folder / "tokenizer.json"), config.vocab_size)


def model_metadata(config: ModelConfig) -> dict[str, int | float]:
    """Convert a model's ``config`` to llama.cpp's metadata: key without the architecture -> value."""
    width = config.head_width
    wide = {"attention.key_length": width, "attention.value_length": width} if width != config.head_share else {}
    return wide | {
        "context_length": config.max_position_embeddings or 0,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.groups,
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "rope.freq_base": config.theta,
    }


def tokens(tokenizer: Mapping[str, Any], size: int) -> tuple[list[str], list[int], list[str]]:
    """Texts and kinds of tokens by id, and the merges, of ``tokenizer`` (of tokenizer.json); ids up to ``size`` that
    have no text get one.

    Raises:
        OperationError: it is no byte-level BPE, or has more tokens than the model.
    """
    model = tokenizer["model"]
    if model["type"] != "BPE" or "ByteLevel" not in json.dumps(tokenizer.get("pre_tokenizer")):
        raise OperationError("This tokenizer cannot be written as GGUF here.", "It is no byte-level BPE.")
    by_id = {int(i): (text, NORMAL) for text, i in model["vocab"].items()}
    for added in tokenizer["added_tokens"]:
        by_id[int(added["id"])] = (added["content"], CONTROL if added["special"] else USER_DEFINED)
    if max(by_id) >= size:
        raise OperationError("The tokenizer does not fit the model.", f"Token {max(by_id)}, of {size} embeddings.")
    listed = [by_id.get(i, (f"[PAD{i}]", UNUSED)) for i in range(size)]
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    return [text for text, _ in listed], [kind for _, kind in listed], merges


def split_name(tokenizer: Mapping[str, Any]) -> tuple[str, bool]:
    """llama.cpp's name for how ``tokenizer`` cuts text, and whether it is exactly that."""
    patterns = list(_patterns(tokenizer.get("pre_tokenizer")))
    exact = next((SPLITS[pattern] for pattern in patterns if pattern in SPLITS), "")
    return exact or next((NEAREST[pattern] for pattern in patterns if pattern in NEAREST), OTHERS), bool(exact)


def _patterns(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if node.get("type") == "Split":
            yield str(node["pattern"].get("Regex", ""))
        match node.get("pretokenizers"):
            case [
                {"type": "Digits", "individual_digits": True},
                {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            ]:
                yield DIGITS_APART
        for child in node.get("pretokenizers", ()):
            yield from _patterns(child)


def _add_tokenizer(writer: "GGUFWriter", folder: Path, config: ModelConfig) -> None:
    tokenizer, tokenizer_config = _json(folder / "tokenizer.json"), _json(folder / "tokenizer_config.json")
    texts, kinds, merges = tokens(tokenizer, config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(split_name(tokenizer)[0])
    writer.add_token_list(texts)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    for name, add in (("eos_token", writer.add_eos_token_id), ("pad_token", writer.add_pad_token_id)):
        text = tokenizer_config.get(name)
        text = text.get("content") if isinstance(text, Mapping) else text
        if text in texts:
            add(texts.index(str(text)))
    writer.add_add_bos_token(False)
    if template := chat_template(folder):
        writer.add_chat_template(template)


def chat_template(folder: Path) -> str:
    """The chat template of the model in ``folder``; empty where it has none."""
    beside = folder / "chat_template.jinja"
    if beside.is_file():
        return beside.read_text(encoding="utf-8")
    template = _json(folder / "tokenizer_config.json").get("chat_template")
    return template if isinstance(template, str) else ""


def _json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    return content


def _config(folder: Path) -> ModelConfig:
    try:
        return ModelConfig.of_folder(folder)
    except (OSError, ValueError) as error:
        raise _unreadable(folder / "config.json", error) from error


def _unreadable(path: Path, error: Exception) -> DependencyError:
    fix = "Name a folder that a Hugging Face model was saved to."
    return DependencyError(f"The model in {path.parent}", f"{path.name}: {error}"[:200], fix)


def _writer(out: Path, config: ModelConfig) -> "GGUFWriter":
    try:
        from gguf import GGUFWriter
    except ImportError as error:
        raise DependencyError("The package that writes GGUF", f"{error}.", "make setup") from error
    return GGUFWriter(out, architecture(config))


def _names(config: ModelConfig) -> "TensorNameMap":
    from gguf import MODEL_ARCH, get_tensor_name_map

    kind = MODEL_ARCH[architecture(config).upper()]
    return get_tensor_name_map(kind, config.num_hidden_layers)


def _gguf_name(tensor_names: "TensorNameMap", name: str) -> str:
    gguf_name: str | None = tensor_names.get_name(name, try_suffixes=(".weight", ".bias"))
    if gguf_name is None:
        raise OperationError("This cannot be written as GGUF here.", f"llama.cpp has no {names([name])}.")
    return gguf_name


def _write(
    writer: "GGUFWriter", shapes: Mapping[str, tuple[int, ...]], read: Callable[[str], Array], half: bool = False
) -> None:
    kinds = {name: np.dtype(np.float16 if half and len(shape) > 1 else np.float32) for name, shape in shapes.items()}
    for name, shape in shapes.items():
        writer.add_tensor_info(name, shape, kinds[name], kinds[name].itemsize * int(np.prod(shape)))
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for name in shapes:
            writer.write_tensor_data(np.ascontiguousarray(read(name), dtype=kinds[name]))
    finally:
        writer.close()
