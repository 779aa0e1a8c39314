"""The gradients of one minibatch, part by part: samples to tensors, tensors to log-probabilities, these to a loss."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from agent0.events.values import Trajectory
from agent0.infra.engine.formats.packed_need import TOKENS, recomputed
from agent0.infra.engine.qwen2_functional import Weights, hidden, packed
from agent0.infra.training.batches import Padded, filled, padded, parts_of, paths_of
from agent0.infra.training.forward import forward_of
from agent0.infra.training.launch.distributed import Team
from agent0.infra.training.launch.recipe import Kind, Recipe
from agent0.infra.training.metrics import OF, check_mismatch, differences, mismatch
from agent0.infra.training.packed_lora import PackedLora
from agent0.infra.training.step_records import MISMATCH, token_sums
from agent0.ports.training import Sample
from agent0.training.objectives import Loss, MinibatchRows
from agent0.training.objectives.policy_gradient import (
    by_attempt,
    correction,
    divergence,
    entropy_bonus,
    likelihood,
)


class Step:
    """How the model in training is moved by one minibatch after the other."""

    def __init__(
        self, model: Any, recipe: Recipe, team: Team, pad: int, seed: int = 0, among: Tensor | None = None
    ) -> None:
        """``seed`` and a step's place decide by how much its positions are stretched; a bonus is paid on the entropy
        ``among`` these tokens."""
        self._model, self._recipe, self._team, self._pad = model, recipe, team, pad
        self._seed, self._draws = seed, torch.Generator()
        self._objective, self._forward = recipe.optimised, forward_of(model, team.casting, among)
        self._parent: dict[int, list[list[float]]] = {}
        self._base: dict[int, list[list[float]]] = {}
        self._prefix: SharedPrefix | None = None

    def remember(self, batches: Iterable[Sequence[Sample]]) -> None:
        """Note how likely the model, as it is now, finds the samples of minibatches: it stands for the parent from here
        on. Each is computed beside those that it is first trained beside, since other company rounds otherwise."""
        self._parent = self._every(batches)

    def remember_base(self, batches: Iterable[Sequence[Sample]]) -> None:
        """As ``remember``, of a model that has not taken up its parent yet: what the penalty is measured from."""
        self._base = self._every(batches)

    def _every(self, batches: Iterable[Sequence[Sample]]) -> dict[int, list[list[float]]]:
        every: dict[int, list[list[float]]] = {}
        for batch in map(self._team.share, batches):
            if any(id(sample) not in every for sample in batch):
                every = self._likelihoods(batch, self._recipe.heat) | every
        return every

    def mismatch(self, samples: Sequence[Sample]) -> dict[str, float]:
        """How differently ``samples`` of the model as it is now are computed here and where they were sampled.

        Raises:
            OperationError: the objective is a policy gradient, and they differ by more than ``mismatch_limit``.
        """
        rows = self._likelihoods(samples, self._recipe.temperature)
        metrics = mismatch([*differences([rows[id(sample)][0] for sample in samples], samples)], self._recipe)
        check_mismatch(metrics, self._recipe)
        return metrics

    def _likelihoods(self, samples: Sequence[Sample], heat: float) -> dict[int, list[list[float]]]:
        """Log-probabilities of each sample, and of what it is preferred to, by the sample's ``id``."""
        every: dict[int, list[list[float]]] = {}
        with torch.no_grad(), self._sharing(samples):
            for part in self._parts(samples):
                logprobs, batch, _ = self._logprobs(part, heat)
                rows = [
                    row[:length]
                    for row, length in zip(logprobs.tolist(), batch.attention.sum(-1).tolist(), strict=True)
                ]
                for index, sample in enumerate(part):
                    every[id(sample)] = rows[index :: len(part)]
        return every

    def gradients(self, kind: Kind, batch: Sequence[Sample], index: int = 0) -> dict[str, float]:
        """Accumulate the gradients of a minibatch, the one at ``index`` of its training.

        Returns the ``loss`` of the whole minibatch, and for the policy its ``tokens`` and ``rows``, the objective's own
        metrics and, of a policy gradient, ``token_sums``.
        """
        self._draws.manual_seed((self._seed * 1_000_003 + index) % 2**63)
        learned = sum(sum(path.mask) for path in paths_of(batch))
        per = self._objective.per if kind == "policy" else "token"
        total = max(1, self._divisor(per, learned, len(batch)))
        loss, metrics = torch.zeros((), device=self._team.device), dict[str, float]()
        mine = self._team.share(batch)
        with self._sharing(mine):
            for part in self._parts(mine):
                if kind == "policy":
                    part_loss, sums = self._policy(part, learned / len(batch), index)
                else:
                    part_loss, sums = self._replay(part), {}
                share = part_loss.loss / total
                self._team.backward(share)
                loss = loss + share.detach()
                if any(sample.stale for sample in batch):
                    sums.pop(MISMATCH, None)  # another checkpoint's log-probabilities are to differ
                for name, value in ({f"{OF}{name}": value for name, value in part_loss.metrics.items()} | sums).items():
                    metrics[name] = metrics.get(name, 0.0) + float(value)
        counts = {"tokens": float(learned), "rows": float(len(batch))} if kind == "policy" else {}
        return self._team.merged({"loss": float(loss), **metrics}) | counts

    def _divisor(self, per: str, learned: int, rows: int) -> int:
        """What a minibatch's sum is divided by (``Objective.per``); attempts that count alike are weighed so."""
        return {"row": rows, "budget": rows * self._recipe.max_tokens}.get(per, learned)

    def _policy(self, part: Sequence[Sample], mean: float, index: int) -> tuple[Loss, dict[str, Tensor]]:
        """The loss of some rows of the minibatch at ``index``, which learns ``mean`` tokens of each, and their
        ``token_sums``."""
        logprobs, batch, entropy = self._logprobs(part, self._recipe.heat, stretched=self._objective.likelihood)
        rows = self._rows(part, logprobs, batch, slice(0, len(part)))
        if part[0].over:
            over = self._rows(part, logprobs, batch, slice(len(part), None))
            rows = replace(rows, over=over)
        if self._objective.per == "attempt":
            rows = replace(rows, weight=by_attempt(rows.weight, rows.mask, mean))
        loss = self._objective.loss(rows, self._recipe)
        sums = self._token_sums(rows, batch.behaviour, index)
        if entropy is not None:
            bonus = entropy_bonus(entropy[: len(part)], rows.mask, rows.weight)
            loss = Loss(loss.loss - self._recipe.entropy * bonus, {**loss.metrics, "entropy": bonus.detach()})
        if not self._recipe.penalised:
            return loss, sums
        reference = self._remembered(self._base, part, logprobs) if self._recipe.from_base else rows.reference
        assert reference is not None  # noqa: S101 - who penalises has remembered
        gap = divergence(rows.logprobs, reference, rows.mask, rows.weight)
        return Loss(loss.loss + self._recipe.kl * gap, {**loss.metrics, "kl": gap.detach()}), sums

    def _token_sums(self, rows: MinibatchRows, sampler: Tensor, index: int) -> dict[str, Tensor]:
        """Only a policy gradient has them: its samples are the parent's, at one temperature with its likelihoods."""
        if not self._objective.ratio or self._recipe.heat != self._recipe.temperature:
            return {}
        return token_sums(rows.logprobs, sampler, rows.reference, rows.mask, first=index == 0)

    def _replay(self, part: Sequence[Sample]) -> Loss:
        logprobs, batch, _ = self._logprobs(part, 1.0, stretched=True)
        return Loss(likelihood(logprobs, batch.mask, self._column([sample.weight for sample in part])))

    def _rows(self, part: Sequence[Sample], logprobs: Tensor, batch: Padded, which: slice) -> MinibatchRows:
        """``which`` rows of what was run through the model: the samples, or what they are preferred to."""
        side = 0 if which.start == 0 else 1
        reference = self._remembered(self._parent, part, logprobs, side) if self._parent else None
        rows = MinibatchRows(
            logprobs[which],
            batch.behaviour[which],
            batch.mask[which],
            advantage=self._column([sample.advantage for sample in part]),
            weight=self._column([sample.weight for sample in part]),
            clip_high=self._column([sample.clip_high for sample in part]),
            reference=reference,
        )
        return self._corrected(rows) if self._recipe.corrects else rows

    def _remembered(
        self, every: Mapping[int, list[list[float]]], part: Sequence[Sample], logprobs: Tensor, side: int = 0
    ) -> Tensor:
        """What was noted of the samples, or (``side`` 1) of what they are preferred to, padded as ``logprobs`` are."""
        return filled([every[id(sample)][side] for sample in part], logprobs.shape[1], self._team.device)

    def _corrected(self, rows: MinibatchRows) -> MinibatchRows:
        """``rows`` as if the trainer had sampled them, their tokens weighed by how likely that was, if at all."""
        assert rows.reference is not None  # noqa: S101 - who corrects remembers the parent
        if self._recipe.correction == "recompute":
            return replace(rows, behaviour=rows.reference)
        knobs = self._recipe.correction, self._recipe.correction_cap
        by_token = correction(rows.reference, rows.behaviour, rows.mask, *knobs)
        return replace(rows, behaviour=rows.reference, weight=rows.weight[:, None] * by_token)

    def _logprobs(
        self, part: Sequence[Sample], temperature: float, *, stretched: bool = False
    ) -> tuple[Tensor, Padded, Tensor | None]:
        """``stretched``: with the recipe's stretch, which is for likelihood only: no policy samples so."""
        batch = padded(paths_of(part), self._pad, self._team.device)
        if self._prefix:
            batch = replace(batch, prefix=self._prefix.layers)
        if stretched and (most := self._recipe.stretch) > 1:
            drawn = torch.rand(len(batch.ids), generator=self._draws).to(batch.ids.device)
            batch = replace(batch, stretch=1 + (most - 1) * drawn)
        logprobs, entropy = self._forward(batch, temperature)
        return logprobs, batch, entropy

    @contextmanager
    def _sharing(self, batch: Sequence[Sample]) -> Iterator[None]:
        """Compute what all of ``batch`` begins with once, where matrices are packed and no position is stretched."""
        length = shared_length(paths_of(batch))
        if not length or not isinstance(self._model, PackedLora) or self._recipe.stretch > 1:
            yield
            return
        ids = batch[0].trajectory.token_ids[:length]
        twice = recomputed(self._model.get_base_model().gradient_checkpointing, length)
        self._prefix = SharedPrefix(self._model.under(), ids, twice=twice)
        try:
            yield
            self._prefix.backward()
        finally:
            self._prefix = None

    def _parts(self, batch: Sequence[Sample]) -> Iterator[Sequence[Sample]]:
        tokens, shared = 0, 0
        if isinstance(self._model, PackedLora):
            shared = self._prefix.length if self._prefix else 0
            tokens = max(1, TOKENS - shared)
        return parts_of(batch, int(self._model.config.vocab_size), self._recipe.micro_batch, tokens, shared)

    def _column(self, values: Sequence[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self._team.device)


SHORTEST = 32
"""Tokens below which it is not worth a pass of its own."""


def shared_length(paths: Sequence[Trajectory]) -> int:
    """Tokens that all ``paths`` begin with and none learns, without the one that the first learned token is predicted
    from; 0 where they are too few."""
    contexts = [path.token_ids[: max(0, (*path.mask, 1).index(1) - 1)] for path in paths]
    places = enumerate(zip(*contexts, strict=False))
    length = next((place for place, tokens in places if len({*tokens}) > 1), min(map(len, contexts), default=0))
    return length if length >= SHORTEST and len(paths) > 1 else 0


class SharedPrefix:
    """Keys and values of each layer of tokens that stand before every row. Gradients that reach them are gathered, and
    taken back through the tokens at once."""

    def __init__(self, weights: Weights, ids: Sequence[int], *, twice: bool = False) -> None:
        """``twice``: what a gradient needs of a layer is computed again rather than kept."""
        self.length = len(ids)
        row, layers = torch.tensor([ids]), list[Tensor]()
        hidden(weights, packed(row, torch.ones_like(row)), layers, twice=twice)
        self._outputs = [*layers]  # with ``twice`` more are appended on the way back
        self.layers = [layer.detach().requires_grad_(layer.requires_grad) for layer in layers]
        """[1, 2 groups, tokens, width] each."""

    def backward(self) -> None:
        """Take the gradients back to what the weights were made of."""
        reached = [
            (layer, leaf.grad) for layer, leaf in zip(self._outputs, self.layers, strict=True) if leaf.grad is not None
        ]
        if reached:
            torch.autograd.backward(*map(list, zip(*reached, strict=True)))
