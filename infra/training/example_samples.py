"""Encode training examples as samples: conversations in this model's own tokens, loss on the assistant's only."""

from collections.abc import Sequence

from agent0.events.values import Trajectory
from agent0.infra.engine.chat_template import Chat
from agent0.ports.training import Sample, Source, TrainingExample


def samples_of(
    examples: Sequence[TrainingExample], chat: Chat, context: int, source: Source = "made"
) -> tuple[tuple[Sample, ...], dict[str, float]]:
    """(samples, counts for the metrics). Left out, and counted: what is longer than ``context`` tokens, or has no word
    of the assistant's."""
    samples = []
    for example in examples:
        ids, mask = chat.training_example(example.turns)
        if len(ids) <= context and any(mask):
            path = Trajectory(token_ids=tuple(ids), mask=tuple(mask), logprobs=(0.0,) * len(ids))
            samples.append(Sample(path, 1.0, weight=example.weight, source=source))
    left_out = len(examples) - len(samples)
    counts = {"examples": float(len(samples))} | ({"examples_left_out": float(left_out)} if left_out else {})
    return tuple(samples), counts
