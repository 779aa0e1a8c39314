"""What is being written, side by side: each row's next token, drawn from a random stream of its own."""

from collections.abc import Callable, Collection, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from agent0.infra.engine.requests import Written
from agent0.ports.models import Sampling

WIDE, BLOCK = 1 << 14, 512
"""Vocabularies above the first are drawn from by blocks of the second."""


class Row:
    """One request while it is decoded, with room for ``left`` tokens. Its random numbers are drawn at once from its
    own seed. ``bias`` is added to the logits of some tokens, before the temperature. ``margins``: they are kept.
    ``is_over`` tells from all tokens whether one of ``sampling.stop`` has been written. ``ended``: nothing more is."""

    def __init__(
        self,
        written: Written,
        sampling: Sampling,
        left: int,
        bias: Sequence[tuple[int, float]] = (),
        margins: bool = False,
        is_over: Callable[[Sequence[int]], bool] = lambda _: False,
    ) -> None:
        self.is_over, self.ended = is_over, False
        self.written, self.sampling, self.left, self.bias, self.margins = written, sampling, left, bias, margins
        self.draws = np.random.default_rng(sampling.seed % 2**64).random(left)

    def add(self, token: int, logprob: float, stops: Collection[int]) -> bool:
        """Append; whether the turn goes on."""
        self.written.ids.append(token)
        self.written.logprobs.append(logprob)
        self.left -= 1
        ends = token in stops or self.is_over(self.written.ids)
        if ends:
            self.written.finish = "stop"
        self.ended = ends or self.left == 0
        return not self.ended


class Batch:
    """Rows side by side, all from their first token on; each ends with one of ``stops``, or when it is full."""

    def __init__(self, rows: Sequence[Row], stops: Collection[int], device: str = "cpu") -> None:
        self._rows: list[Row | None] = list(rows)
        self._stops, self._step = stops, 0
        draws = np.zeros((max(row.left for row in rows), len(rows)), np.float32)
        for index, row in enumerate(rows):
            draws[: row.left, index] = row.draws[len(row.draws) - row.left :]
        heat = [row.sampling.temperature for row in rows]
        self._draws, self._heat = torch.from_numpy(draws).to(device), torch.tensor(heat, device=device)
        self._cut = torch.tensor([row.sampling.top_p for row in rows], device=device)
        self._greedy, self._sampled, self._temperate = not any(heat), all(heat), {*heat} <= {0.0, 1.0}
        self._uncut = all(row.sampling.top_p >= 1 for row in rows)
        self._bias = self._biases()
        self._margins = any(row.margins for row in rows)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> list[Row]:
        """Those that are still written."""
        return [row for row in self._rows if row is not None]

    @property
    def places(self) -> list[Row | None]:
        """All, None where one has ended."""
        return list(self._rows)

    def take(self, logits: Tensor) -> tuple[Tensor, list[int]]:
        """(next tokens [rows], places of the rows that go on), from ``logits`` [rows, vocabulary]."""
        logs = self._logs(self._biased(logits.float()))
        chosen, logprobs = self._choose(logs, self._draws[self._step])
        if self._margins:
            self._keep_margins(logs)
        self._step += 1
        alive = []
        for index, (row, token, logprob) in enumerate(zip(self._rows, chosen.tolist(), logprobs.tolist(), strict=True)):
            if row is None:
                continue
            if row.add(token, logprob, self._stops):
                alive.append(index)
            else:
                self._rows[index] = None
        return chosen, alive

    def keep(self, places: Tensor) -> None:
        """Hold on to these only; whoever ended and is held gets tokens that nobody reads."""
        self._rows = [self._rows[index] for index in places.tolist()]
        self._draws, self._heat, self._cut = self._draws[:, places], self._heat[places], self._cut[places]
        self._bias = self._biases()

    def _biases(self) -> tuple[Tensor, Tensor, Tensor] | None:
        """(rows, tokens, what is added) of the rows that have any; None where no row has."""
        entries = [(index, *bias) for index, row in enumerate(self._rows) if row for bias in row.bias]
        if not entries:
            return None
        rows, tokens, values = zip(*entries, strict=True)
        device = self._draws.device
        return (
            torch.tensor(rows, device=device),
            torch.tensor(tokens, device=device),
            torch.tensor(values, device=device),
        )

    def _biased(self, logits: Tensor) -> Tensor:
        if self._bias is None:
            return logits
        rows, tokens, values = self._bias
        return logits.index_put((rows, tokens), values, accumulate=True)

    def _logs(self, logits: Tensor) -> Tensor:
        """Log-probabilities at the sampling temperature (1 for greedy), with any bias, before any top-p cut."""
        if not self._temperate:
            logits = logits / self._heat.where(self._heat > 0, 1.0)[:, None]
        return torch.log_softmax(logits, dim=-1)

    def _keep_margins(self, logs: Tensor) -> None:
        first, second = logs.topk(2, dim=-1).values.exp().unbind(-1)
        for row, margin in zip(self._rows, (first - second).tolist(), strict=True):
            if row and row.margins:
                row.written.margins.append(margin)

    def _choose(self, logs: Tensor, draws: Tensor) -> tuple[Tensor, Tensor]:
        """Next tokens and their log-probabilities, by inverse transform on each row's own uniform draw; shapes
        [rows, vocabulary] to [rows]."""
        if self._greedy:
            chosen = logs.argmax(-1)
        else:
            drawn = _uncut(logs.exp(), draws) if self._uncut else _nucleus(logs.exp(), draws, self._cut)
            chosen = drawn if self._sampled else torch.where(self._heat > 0, drawn, logs.argmax(-1))
        return chosen, logs.gather(-1, chosen[:, None])[:, 0]


def _uncut(chances: Tensor, draws: Tensor) -> Tensor:
    if chances.shape[-1] > WIDE:
        return _uncut_by_blocks(chances, draws)
    heap = chances.cumsum(-1)
    return torch.searchsorted(heap, (draws * heap[:, -1])[:, None])[:, 0].clamp(max=chances.shape[-1] - 1)


def _uncut_by_blocks(chances: Tensor, draws: Tensor) -> Tensor:
    """As ``_uncut``: first a block of tokens, then one of it, so that only one block is added up token by token."""
    blocks = pad(chances, (0, -chances.shape[-1] % BLOCK)).view(len(chances), -1, BLOCK)
    heap = blocks.sum(-1).cumsum(-1)
    level = (draws * heap[:, -1])[:, None]
    block = torch.searchsorted(heap, level).clamp(max=heap.shape[-1] - 1)
    below = pad(heap, (1, 0)).gather(-1, block)
    inner = blocks[torch.arange(len(blocks)), block[:, 0]].cumsum(-1)
    token = torch.searchsorted(inner, (level - below).clamp(min=0)).clamp(max=BLOCK - 1)
    return (block * BLOCK + token)[:, 0].clamp(max=chances.shape[-1] - 1)


def _nucleus(chances: Tensor, draws: Tensor, top_p: Tensor) -> Tensor:
    ordered, names = chances.sort(dim=-1, descending=True, stable=True)
    ordered = ordered * (ordered.cumsum(-1) - ordered < top_p[:, None])
    return names.gather(-1, _uncut(ordered, draws)[:, None])[:, 0]
