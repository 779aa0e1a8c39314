"""Small models with random weights. To load transformers' models and peft takes longer than most tests: it is done by
those who ask for one, not by those who collect tests."""

from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast

from agent0.infra.engine.adapter import Adapter, lora_settings


def qwen2(**config: Any) -> Any:
    """A Qwen2 of transformers with new weights."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    return Qwen2ForCausalLM(Qwen2Config(**config))


def llama(**config: Any) -> Any:
    """A Llama of transformers with new weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(**config))


def read_qwen2(folder: Path, **how: Any) -> Any:
    """The Qwen2 that was saved to ``folder``."""
    from transformers import Qwen2ForCausalLM

    return Qwen2ForCausalLM.from_pretrained(folder, **how)


def saved(path: Path, tokenizer: PreTrainedTokenizerFast, **sizes: int) -> Path:
    """A model and its tokenizer in ``path``, always the same; its weights are large, so that it has opinions."""
    torch.manual_seed(0)
    model = qwen2(
        vocab_size=len(tokenizer), num_attention_heads=4, num_key_value_heads=2,
        tie_word_embeddings=True, initializer_range=0.2, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id, bos_token_id=None,
        **({"max_position_embeddings": 400, "num_hidden_layers": 2} | sizes),
    )  # fmt: skip
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def with_lora(model: Any, rank: int, alpha: int) -> Any:
    """``model`` under peft, with an adapter of the trainer's kind."""
    from peft import get_peft_model

    return get_peft_model(model, Adapter(lora_settings(rank, alpha), {}, {}).config())
