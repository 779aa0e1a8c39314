"""The tokenizer and chat template of a GGUF file as the files that transformers reads."""

import json
from collections.abc import Mapping
from typing import Any

from agent0.infra.weights.gguf import CONTROL, NORMAL, QWEN2_SPLIT, USER_DEFINED
from agent0.infra.weights.gguf_header import Value, special_texts

LLAMA3_SPLIT = QWEN2_SPLIT.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
SPLITS = {
    "qwen2": [{"type": "Split", "pattern": {"Regex": QWEN2_SPLIT}, "behavior": "Isolated", "invert": False}],
    "llama-bpe": [{"type": "Split", "pattern": {"Regex": LLAMA3_SPLIT}, "behavior": "Isolated", "invert": False}],
    "smollm": [{"type": "Digits", "individual_digits": True}],
    "gpt-2": [],
}
"""llama.cpp's name for how text is cut before its merges -> what comes before bytes in tokenizer.json. (The inverse of
``agent0.infra.weights.gguf.SPLITS``.)"""
OWN_REGEX = ("smollm", "gpt-2")
"""Those that go on with GPT-2's expression."""
WHOLE = ("llama-bpe",)
"""Those that take a piece of text that is a token as that token, whatever its merges."""


def unknown_tokenizer(fields: Mapping[str, Value]) -> str:
    """Why the tokenizer in the metadata of a file cannot be written; empty where it can."""
    kind, split = fields.get("tokenizer.ggml.model"), fields.get("tokenizer.ggml.pre")
    if kind != "gpt2" or split not in SPLITS:
        return f"Its tokenizer is {kind} {split or ''}".rstrip() + f"; gpt2 with {', '.join(SPLITS)} is known."
    if not isinstance(fields.get("tokenizer.ggml.merges"), list):
        return "Its tokenizer has no merges."
    return ""


def tokenizer_files(fields: Mapping[str, Value]) -> dict[str, str]:
    """Name -> text of the files of a tokenizer whose kind is known (``unknown_tokenizer``)."""
    specials = special_texts(fields)
    specials.setdefault("pad_token", specials.get("eos_token", ""))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False} | specials
    files = {"tokenizer.json": json.dumps(_tokenizer(fields)), "tokenizer_config.json": json.dumps(config, indent=1)}
    template = fields.get("tokenizer.chat_template")
    return files | ({"chat_template.jinja": template} if isinstance(template, str) else {})


def _tokenizer(fields: Mapping[str, Value]) -> dict[str, object]:
    split = str(fields["tokenizer.ggml.pre"])
    texts = [text.decode(errors="replace") for text in _list(fields, "tokens")]
    kinds = _list(fields, "token_type") or [NORMAL] * len(texts)
    tokens = list(enumerate(zip(texts, kinds, strict=True)))
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
    before = [*SPLITS[split], byte_level | {"use_regex": split in OWN_REGEX}]
    return {
        "version": "1.0",
        "added_tokens": [_added(i, text, kind == CONTROL) for i, (text, kind) in tokens if kind in ADDED],
        "normalizer": {"type": "NFC"} if split == "qwen2" else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": before},
        "post_processor": None,
        "decoder": byte_level | {"use_regex": True},
        "model": {
            "type": "BPE",
            "ignore_merges": split in WHOLE,
            "vocab": {text: i for i, (text, kind) in tokens if kind == NORMAL},
            "merges": [pair.decode(errors="replace").split(" ", 1) for pair in _list(fields, "merges")],
        },
    }


ADDED = (CONTROL, USER_DEFINED)


def _list(fields: Mapping[str, Value], name: str) -> Any:
    return fields.get(f"tokenizer.ggml.{name}", ())


def _added(number: int, text: str, special: bool) -> dict[str, object]:
    kept = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": number, "content": text, "special": special, **kept}
