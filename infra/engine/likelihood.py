"""How likely texts are that a model did not write: one pass over the context with each text behind it, inside the
worker process."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from agent0.errors import OperationError
from agent0.events.values import Turn
from agent0.infra.engine.chat_template import Chat
from agent0.ports.models import Likely

AT_ONCE = 16
"""Texts in one pass."""

Score = Callable[[Tensor, Tensor, int], Tensor]
"""From token ids and where they are no padding, both [rows, T], to log-probabilities of the last so many of each row,
[rows, so many]."""


def likelihoods(
    score: Score, chat: Chat, context: int, device: str, turns: Sequence[Turn], texts: Sequence[str]
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
        sums += _sums(score, prompt, written[start : start + AT_ONCE], chat.pad, device)
    return [Likely(total, len(ids), len(text)) for total, ids, text in zip(sums, written, texts, strict=True)]


def _sums(score: Score, prompt: list[int], batch: list[list[int]], pad: int, device: str) -> list[float]:
    """Padded on the right, so every position is that of its text alone."""
    longest = max(map(len, batch))
    rows = [prompt + ids + [pad] * (longest - len(ids)) for ids in batch]
    attention = [[1] * (len(prompt) + len(ids)) + [0] * (longest - len(ids)) for ids in batch]
    logprobs = score(torch.tensor(rows, device=device), torch.tensor(attention, device=device), longest).tolist()
    return [sum(each[: len(ids)]) for each, ids in zip(logprobs, batch, strict=True)]
