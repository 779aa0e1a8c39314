"""Samples as padded tensors, in parts that memory holds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from agent0.errors import OperationError
from agent0.events.values import Trajectory
from agent0.infra.engine.chat_template import Chat
from agent0.ports.training import Sample, Source, TrainingExample

LOGITS = 1 << 27
"""Logits held at once (numbers): larger minibatches are taken in parts, their gradients summed."""


@dataclass(frozen=True)
class Padded:
    """Trajectories side by side, [rows, T] each, the shorter ones filled up at the end."""

    ids: Tensor
    attention: Tensor
    mask: Tensor
    behaviour: Tensor
    stretch: Tensor | None = None
    """Factors [rows] by which positions are multiplied."""
    prefix: Sequence[Tensor] = ()
    """Keys and values of each layer, [1, 2 groups, tokens, width], of what all rows begin with."""


def paths_of(part: Sequence[Sample]) -> list[Trajectory]:
    """What is run through the model: the samples, then what they are preferred to."""
    return [sample.trajectory for sample in part] + [sample.over for sample in part if sample.over]


def longest_of(batch: Sequence[Sample]) -> int:
    """Return the number of tokens of the longest trajectory in ``batch``."""
    return max(len(path.token_ids) for path in paths_of(batch))


def rows_of(longest: int, vocabulary: int, micro_batch: int, tokens: int = 0) -> int:
    """Return how many trajectories fit in one forward pass: ``micro_batch`` where it is set; of ``tokens`` together at
    most, where that is; else as many as logits are held of."""
    return micro_batch or max(1, tokens // longest if tokens else LOGITS // (longest * vocabulary))


def parts_of(
    batch: Sequence[Sample], vocabulary: int, micro_batch: int, tokens: int = 0, shared: int = 0
) -> Iterator[Sequence[Sample]]:
    """``batch`` in parts of as many trajectories as ``rows_of`` says, a pair never torn. ``shared`` tokens of each are
    computed elsewhere."""
    if not batch:
        return
    rows = rows_of(longest_of(batch) - shared, vocabulary, micro_batch, tokens)
    rows = max(1, rows // 2) if batch[0].over else rows
    for at in range(0, len(batch), rows):
        yield batch[at : at + rows]


def padded(paths: Sequence[Trajectory], pad: int, device: str) -> Padded:
    """Pad trajectories to the longest and return them as tensors of shape [rows, T] on ``device``."""
    longest = max(len(path.token_ids) for path in paths)

    def rows(values: Iterator[Sequence[float]], filler: float) -> list[list[float]]:
        return [[*row, *[filler] * (longest - len(row))] for row in values]

    ids = torch.tensor(rows((path.token_ids for path in paths), pad), dtype=torch.long)
    attention = torch.tensor(rows(([1] * len(path.token_ids) for path in paths), 0), dtype=torch.long)
    mask = torch.tensor(rows((path.mask for path in paths), 0))
    behaviour = torch.tensor(rows((path.logprobs for path in paths), 0), dtype=torch.float32)
    return Padded(*(tensor.to(device) for tensor in (ids, attention, mask, behaviour)))


def filled(values: Sequence[Sequence[float]], longest: int, device: str) -> Tensor:
    """Numbers side by side, zeros at the end: [rows, ``longest``]."""
    rows = [[*row, *[0.0] * (longest - len(row))] for row in values]
    return torch.tensor(rows, dtype=torch.float32, device=device)


def check_words(samples: Sequence[Sample], vocabulary: int) -> None:
    """Raises OperationError where a trajectory holds a token that the model does not have."""
    highest = max((max(path.token_ids) for path in paths_of(samples)), default=0)
    if highest >= vocabulary:
        why = f"Token {highest} is beyond the vocabulary of {vocabulary}."
        raise OperationError("These trajectories were written by another model.", why)


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
