"""Lessons as samples: conversations in this model's own tokens, of which only the assistant's are learned."""

from collections.abc import Sequence

from agent0.ports.training import Sample, TrainingExample
from events.values import Trajectory
from infra.engine.chat_template import Chat


def samples_of(
    lessons: Sequence[TrainingExample], chat: Chat, context: int
) -> tuple[tuple[Sample, ...], dict[str, float]]:
    """(samples, counts for the metrics). Left out, and counted: what is longer than ``context`` tokens, or has no word
    of the assistant's."""
    samples = []
    for lesson in lessons:
        ids, mask = chat.lesson(lesson.turns)
        if lesson.learned is not None:
            mask = _learned(lesson, ids, mask, chat)
        if len(ids) <= context and any(mask):
            path = Trajectory(token_ids=tuple(ids), mask=tuple(mask), logprobs=(0.0,) * len(ids))
            samples.append(Sample(path, 1.0, weight=lesson.weight))
    left_out = len(lessons) - len(samples)
    told = {"lessons": float(len(samples))} | ({"lessons_left_out": float(left_out)} if left_out else {})
    return tuple(samples), told


def _learned(lesson: TrainingExample, ids: Sequence[int], mask: Sequence[int], chat: Chat) -> list[int]:
    """1 at tokens of the last turn that reach into a place that is learned, and at its end where it is closed."""
    said = chat.written(lesson.turns[-1].content)
    start = len(ids) - len(said) - mask[-1]
    ends = chat.ends(said)
    begins = [0, *ends[:-1]]
    places = lesson.learned or ()
    own = [int(any(b < end and e > first for first, end in places)) for b, e in zip(begins, ends, strict=True)]
    return [*[0] * start, *own, *[int(lesson.closed)] * (len(ids) - start - len(said))]
