"""How likely texts are that a model did not write: one pass over the context with each text behind it, inside the
worker process."""

from collections.abc import Sequence
from typing import Any

import torch

from agent0.errors import OperationError
from agent0.ports import Likely
from events.values import Turn
from infra.models.engine_chat import Chat

AT_ONCE = 16
"""Texts in one pass."""


def likelihoods(
    model: Any, chat: Chat, context: int, device: str, turns: Sequence[Turn], texts: Sequence[str]
) -> list[Likely]:
    """How likely each of ``texts`` is as the beginning of the assistant's next turn after ``turns``.

    Raises:
        OperationError: a text is empty, or does not fit into ``context`` tokens.
    """
    prompt, written = chat.prompt(turns), [chat.written(text) for text in texts]
    if not all(written):
        raise OperationError("An empty text has no likelihood.")
    if len(prompt) + max(map(len, written)) > context:
        raise OperationError("The texts do not fit into the model's context.", f"It has {context} tokens.")
    sums: list[float] = []
    for start in range(0, len(written), AT_ONCE):
        sums += _sums(model, prompt, written[start : start + AT_ONCE], chat.pad, device)
    return [Likely(total, len(ids), len(text)) for total, ids, text in zip(sums, written, texts, strict=True)]


def _sums(model: Any, prompt: list[int], batch: list[list[int]], pad: int, device: str) -> list[float]:
    """Padded on the right, so every position is that of its text alone; shapes [texts, tokens, vocabulary]."""
    longest = max(map(len, batch))
    rows = [prompt + ids + [pad] * (longest - len(ids)) for ids in batch]
    seen = [[1] * (len(prompt) + len(ids)) + [0] * (longest - len(ids)) for ids in batch]
    logits = model(
        input_ids=torch.tensor(rows, device=device),
        attention_mask=torch.tensor(seen, device=device),
        use_cache=False,
        logits_to_keep=longest + 1,
    ).logits[:, :-1]
    logs = torch.log_softmax(logits.float(), dim=-1)
    return [sum(float(logs[row, place, token]) for place, token in enumerate(ids)) for row, ids in enumerate(batch)]
