"""Encode search traces as samples: conversations in this model's own tokens, loss on the assistant's only."""

from collections.abc import Sequence

from agent0.ports.training import Sample, Source, TrainingExample
from events.values import Trajectory
from infra.engine.chat_template import Chat


def samples_of(
    examples: Sequence[TrainingExample], chat: Chat, context: int, source: Source = "made"
) -> tuple[tuple[Sample, ...], dict[str, float]]:
    """(samples, counts for the metrics). Left out, and counted: what is longer than ``context`` tokens, or has no word
    of the assistant's."""
    samples = []
    for example in examples:
        ids, mask = chat.training_example(example.turns)
        if example.learned is not None:
            mask = _learned(example, ids, mask, chat)
        if len(ids) <= context and any(mask):
            path = Trajectory(token_ids=tuple(ids), mask=tuple(mask), logprobs=(0.0,) * len(ids))
            samples.append(Sample(path, 1.0, weight=example.weight, source=source))
    left_out = len(examples) - len(samples)
    counts = {"lessons": float(len(samples))} | ({"lessons_left_out": float(left_out)} if left_out else {})
    return tuple(samples), counts


def _learned(example: TrainingExample, ids: Sequence[int], mask: Sequence[int], chat: Chat) -> list[int]:
    """1 at tokens of the last turn that reach into a place that is learned, and at its end where it is closed."""
    said = chat.written(example.turns[-1].content)
    start = len(ids) - len(said) - mask[-1]
    ends = chat.ends(said)
    begins = [0, *ends[:-1]]
    places = example.learned or ()
    own = [int(any(b < end and e > first for first, end in places)) for b, e in zip(begins, ends, strict=True)]
    return [*[0] * start, *own, *[int(example.closed)] * (len(ids) - start - len(said))]
