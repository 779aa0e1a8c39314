"""A course that goes on from a packaged model: its layers as they are, and its embeddings of the tokens that both
have."""

from pathlib import Path
from typing import Any

from agent0.infra.engine.chat_template import tokenizer_of


def go_on_from(folder: Path, model: Any, tokenizer: Any) -> None:
    """Give ``model``, whose shape is that of the one in ``folder``, its weights. Tokens of ``tokenizer`` that it has
    none for keep what was drawn for them, scaled to the spread of its embeddings."""
    import torch
    from safetensors.torch import load_file

    weights = {name: weight.float() for name, weight in load_file(folder / "model.safetensors").items()}
    vocabulary = tokenizer_of(str(folder)).get_vocab()
    before = weights.pop("model.embed_tokens.weight")
    model.load_state_dict(weights, strict=False)
    embeddings = model.get_input_embeddings().weight
    with torch.no_grad():
        embeddings.mul_(before.std() / embeddings.std())
        for text, token_id in tokenizer.get_vocab().items():
            if text in vocabulary:
                embeddings[token_id] = before[vocabulary[text]]
