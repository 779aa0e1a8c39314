"""One training job, inside the worker process. Nothing of a job stays behind: same job, same adapter."""

import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from agent0.errors import OperationError
from agent0.objectives.policy_gradient import clipped_surrogate, likelihood, token_logprobs
from agent0.ports import Sample, TrainJob
from events.base import sha256
from infra.models.engine import load
from infra.models.engine_adapter import Adapter, lora_settings, pack, unpack
from infra.models.engine_saving import HalfDone

LOGITS = 1 << 27
"""Logits held at once (numbers): larger minibatches are taken in parts, their gradients summed."""
GRADIENT_NORM = 1.0

Kind = Literal["policy", "replay"]


@dataclass(frozen=True)
class Recipe:
    """The settings that training reads, with their defaults."""

    lr: float = 2.5e-3
    rank: int = 16
    alpha: int = 32
    epochs: int = 1
    minibatch: int = 32
    replay_steps: int = 8
    weight_decay: float = 0.0
    clip_low: float = 0.2
    temperature: float = 1.0

    @classmethod
    def of(cls, job: TrainJob) -> "Recipe":
        return cls(**{name: job.settings[name] for name in cls.__dataclass_fields__ if name in job.settings})


@dataclass
class _Tally:
    loss: float = 0.0
    replay_loss: float = 0.0
    steps: int = 0
    replay_steps: int = 0
    skipped: int = 0
    tokens: int = 0
    ratios: float = 0.0
    clipped: float = 0.0
    start: float = field(default_factory=time.monotonic)

    def add(self, kind: Kind, loss: float) -> None:
        """One step was taken."""
        if kind == "policy":
            self.loss, self.steps = self.loss + loss, self.steps + 1
        else:
            self.replay_loss, self.replay_steps = self.replay_loss + loss, self.replay_steps + 1

    def counts(self) -> dict[str, float]:
        """Everything but when it began."""
        return {name: float(value) for name, value in vars(self).items() if name != "start"}

    def take_up(self, counts: Mapping[str, float]) -> None:
        """Go on from these."""
        for name, value in counts.items():
            setattr(self, name, type(getattr(self, name))(value))

    def metrics(self) -> dict[str, float]:
        """Means over steps (losses) and over policy tokens (ratio, clip_share)."""
        tokens = max(1, self.tokens)
        return {
            "loss": self.loss / max(1, self.steps),
            "replay_loss": self.replay_loss / max(1, self.replay_steps),
            "steps": float(self.steps + self.replay_steps),
            "skipped": float(self.skipped),
            "tokens": float(self.tokens),
            "ratio": self.ratios / tokens,
            "clip_share": self.clipped / tokens,
            "seconds": time.monotonic() - self.start,
        }


class Training:
    """The frozen base model; each job puts its own adapter on it and takes it off again."""

    def __init__(self, path: str, threads: int = 1, device: str = "cpu", quantization: str = "") -> None:
        torch.set_num_threads(threads)
        self._device = device
        self._base, tokenizer = load(path, device, quantization)
        self._pad = int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id)
        if device != "cpu":
            self._base.gradient_checkpointing_enable()
            self._base.enable_input_require_grads()

    def environment(self) -> dict[str, str]:
        """What bit-equality depends on."""
        return {
            "threads": str(torch.get_num_threads()),
            "torch": torch.__version__,
            "cpu": torch.backends.cpu.get_cpu_capability(),
            "device": self._device,
        }

    def train(
        self, job: TrainJob, parent: bytes, kept: str = "", every_s: float = 10.0
    ) -> tuple[bytes, dict[str, float]]:
        """The adapter's tar and the numbers of its making. What is half done is kept in the file ``kept`` every
        ``every_s`` seconds, and gone on with from there.

        Raises:
            OperationError: the parent does not fit, or no sample has a token of the policy's own.
        """
        from peft import get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict

        recipe = Recipe.of(job)
        torch.manual_seed(job.seed % 2**63)
        start = unpack(parent) if parent else Adapter(lora_settings(recipe.rank, recipe.alpha), {}, {})
        model: Any = get_peft_model(self._base, start.config())
        try:
            outcome: Any = set_peft_model_state_dict(model, start.weights) if parent else None
            if outcome and outcome.unexpected_keys:
                raise OperationError("The parent adapter does not fit this model.")
            half = HalfDone(Path(kept) if kept else None, digest_of(job, parent), every_s)
            tally = self._run(model, job, recipe, half)
            weights = {name: value.detach().cpu().float() for name, value in get_peft_model_state_dict(model).items()}
        finally:
            self._base = model.unload()
        return pack(Adapter(start.settings, weights, dict(job.metadata))), tally.metrics()

    def _run(self, model: Any, job: TrainJob, recipe: Recipe, half: HalfDone) -> _Tally:
        model.train()
        own = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(own, lr=recipe.lr, weight_decay=recipe.weight_decay)
        tally = _Tally()
        done, counts = half.restore(model, optimizer)
        tally.take_up(counts)
        for place, (kind, batch) in enumerate(schedule(job, recipe)):
            if place < done:
                continue
            optimizer.zero_grad(set_to_none=True)
            loss = self._gradients(model, kind, batch, recipe, tally)
            norm = torch.nn.utils.clip_grad_norm_(own, GRADIENT_NORM)
            if torch.isfinite(norm) and torch.isfinite(loss):
                optimizer.step()
                tally.add(kind, float(loss))
            else:
                tally.skipped += 1
            if half.due():
                half.save(model, optimizer, place + 1, tally.counts())
        return tally

    def _gradients(
        self, model: Any, kind: Kind, batch: Sequence[Sample], recipe: Recipe, tally: _Tally
    ) -> torch.Tensor:
        total = max(1, sum(sum(sample.trajectory.mask) for sample in batch))
        loss = torch.zeros((), device=self._device)
        for part in self._parts(model, batch):
            ids, seen, mask, behaviour = self._tensors(part)
            logits = model(input_ids=ids, attention_mask=seen, use_cache=False).logits
            logprobs = token_logprobs(logits, ids, recipe.temperature if kind == "policy" else 1.0)
            weight = self._column([sample.weight for sample in part])
            if kind == "policy":
                found = clipped_surrogate(
                    logprobs,
                    behaviour,
                    mask,
                    self._column([sample.advantage for sample in part]),
                    weight,
                    clip_low=recipe.clip_low,
                    clip_high=self._column([sample.clip_high for sample in part]),
                )
                share = found.loss / total
                tally.tokens += int(mask.sum())
                tally.ratios += float(found.ratio_sum)
                tally.clipped += float(found.clipped)
            else:
                share = likelihood(logprobs, mask, weight) / total
            share.backward()  # type: ignore[no-untyped-call]
            loss = loss + share.detach()
        return loss

    def _parts(self, model: Any, batch: Sequence[Sample]) -> Iterator[Sequence[Sample]]:
        longest = max(len(sample.trajectory.token_ids) for sample in batch)
        rows = max(1, LOGITS // (longest * int(model.config.vocab_size)))
        for at in range(0, len(batch), rows):
            yield batch[at : at + rows]

    def _tensors(self, part: Sequence[Sample]) -> tuple[torch.Tensor, ...]:
        longest = max(len(sample.trajectory.token_ids) for sample in part)

        def padded(values: Sequence[float], filler: float) -> list[float]:
            return [*values, *[filler] * (longest - len(values))]

        paths = [sample.trajectory for sample in part]
        ids = torch.tensor([padded(path.token_ids, self._pad) for path in paths], dtype=torch.long)
        seen = torch.tensor([padded([1] * len(path.token_ids), 0) for path in paths], dtype=torch.long)
        mask = torch.tensor([padded(path.mask, 0) for path in paths])
        behaviour = torch.tensor([padded(path.logprobs, 0) for path in paths], dtype=torch.float32)
        return tuple(tensor.to(self._device) for tensor in (ids, seen, mask, behaviour))

    def _column(self, values: Sequence[float]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self._device)


def digest_of(job: TrainJob, parent: bytes) -> str:
    """Names a job by all that its outcome depends on."""
    parts = [
        [sample.trajectory.model_dump_json(), sample.advantage, sample.clip_high, sample.weight]
        for sample in (*job.samples, *job.replay)
    ]
    told = [parts, len(job.samples), job.seed, dict(job.settings), dict(job.metadata), sha256(parent)]
    return sha256(json.dumps(told, sort_keys=True, default=str))


def schedule(job: TrainJob, recipe: Recipe) -> list[tuple[Kind, list[Sample]]]:
    """Minibatches in the order they are taken: replay steps are spread evenly among the policy's.

    Raises:
        OperationError: no sample has a token of the policy's own.
    """
    rng = random.Random(f"schedule {job.seed}")
    samples = [sample for sample in job.samples if any(sample.trajectory.mask)]
    replay = [sample for sample in job.replay if any(sample.trajectory.mask)]
    steps: list[tuple[float, Kind, list[Sample]]] = []
    for epoch in range(recipe.epochs if samples else 0):
        shuffled = rng.sample(samples, len(samples))
        for at in range(0, len(shuffled), recipe.minibatch):
            steps.append((epoch + at / len(shuffled), "policy", shuffled[at : at + recipe.minibatch]))
    for step in range(recipe.replay_steps if replay else 0):
        batch = rng.sample(replay, min(recipe.minibatch, len(replay)))
        steps.append(((step + 1) * recipe.epochs / (recipe.replay_steps + 1), "replay", batch))
    if not steps:
        raise OperationError("There is nothing to train on.", "No trajectory holds a token that the policy sampled.")
    return [(kind, batch) for _, kind, batch in sorted(steps, key=lambda step: step[0])]
